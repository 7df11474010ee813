"""Executors and planners that cheat: what they leave or say fakes nothing, and harms nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.solve.stage import (
    COUNT,
    COUNTED,
    FILES,
    RIGHT,
    SolveResult,
    Stage,
    executor,
    holds,
    is_there,
    planner,
    runs,
    subtask,
    writes,
)

ONCE = ("--max-replans", "0")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage", {**FILES, ".gitignore": "build/\n", ".env": "TOKEN=geheim\n"})


def ran(command: str) -> dict[str, Any]:
    return {"run": {"command": command}}


def first_verdicts(came: SolveResult) -> list[str]:
    """On the criteria of the first subtask, in the first round."""
    return [one.verdict for one in came.report.rounds[0].outcomes[0].criteria_verdicts]


# What is not part of the result.


def test_a_file_that_git_ignores_is_no_part_of_the_result_and_proves_nothing(stage: Stage) -> None:
    criteria = runs("grep -qx 3 build/count.txt"), is_there("build/count.txt")
    came = stage.solve(
        planner(subtask("build it", *criteria, tools=["write"]), criteria=criteria),
        executor(writes("build/count.txt", "3\n")),
        args=ONCE,
    )
    assert (came.status, came.report.changed) == ("abandoned", ())
    assert first_verdicts(came) == ["fail", "fail"]


def test_what_an_executor_does_to_its_own_git_is_seen_by_no_criterion(stage: Stage) -> None:
    faked = subtask("commit it", runs("git log --format=%s | grep -q counted"), tools=["run"])
    came = stage.solve(planner(faked), executor(ran("git commit -q --allow-empty -m counted")), args=ONCE)
    assert first_verdicts(came) == ["fail"]


@pytest.mark.ci
def test_what_goes_on_in_the_background_is_ended(stage: Stage) -> None:
    later = ran("(sleep 1; echo 3 > count.txt) > /dev/null 2>&1 &")
    waits = subtask("count them", runs("sleep 2; grep -qx 3 count.txt"), tools=["run"])
    assert first_verdicts(stage.solve(planner(waits), executor(later), args=ONCE)) == ["fail"]


def test_what_was_so_before_anything_was_done_is_said_to_be(stage: Stage) -> None:
    there = is_there("notes.txt"), runs("grep -q one notes.txt"), holds("output_contains", text="three")
    came = stage.solve(planner(subtask("look", *there), criteria=[is_there("notes.txt")]), executor(said="three"))
    before = ["before anything was done" in one.evidence for one in came.report.rounds[0].outcomes[0].criteria_verdicts]
    assert before == [True, True, False]
    assert "before anything was done" in stage.asked(came.report.run_id, "r1/merge/meta_validator")
    changed = stage.solve(planner(subtask("count", *there), criteria=[COUNTED]), executor(RIGHT, said="three"))
    assert "before anything was done" not in changed.stdout


# Plans that prove nothing.


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize("command", ["true", "pytest -q || true", "cat count.txt | head -1"])
def test_a_plan_whose_command_succeeds_anyway_is_sent_back(stage: Stage, command: str) -> None:
    came = stage.solve(
        planner(subtask("count them", runs(command)), criteria=[runs(command)], attempt=1), planner(COUNT, attempt=2)
    )
    assert came.status == "accepted"
    assert [why.count(repr(command)) for why in came.report.rejected] == [1]
    assert "## Rejected" in stage.asked(came.report.run_id, "r1/p2/planner")


# Programs that stand in for others.


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize(
    ("place", "changed"),
    [("node_modules/.bin/grep", []), ("grep", ["grep"]), (".venv/bin/grep", [".venv/bin/grep"])],
    ids=["installed", "root", "environment"],
)
def test_a_program_of_the_work_tree_is_not_run_in_place_of_the_machines(
    stage: Stage, place: str, changed: list[str]
) -> None:
    """What a package manager installs is no part of the change."""
    fake = ran(f"mkdir -p $(dirname {place}) && printf '#!/bin/sh\nexit 0\n' > {place} && chmod +x {place}")
    came = stage.solve(planner(subtask("count them", COUNTED, tools=["run"])), executor(fake), args=ONCE)
    assert [one.path for one in came.report.changed] == changed
    assert first_verdicts(came) == ["fail"]


# What nobody is shown.


def test_files_that_may_hold_secrets_are_shown_to_nobody(stage: Stage) -> None:
    came = stage.solve(
        planner(subtask("look", runs("cat .env; grep -q TOKEN .env"))),
        executor(ran("cat .env"), {"read": {"path": ".env"}}, {"grep": {"pattern": "TOKEN"}}),
        args=ONCE,
    )
    assert first_verdicts(came) == ["fail"]
    told = [one.text for each in stage.dispatches(came.report.run_id).values() for one in each.results]
    assert len(told) >= 3
    assert not [text for text in (*told, came.stdout) if "geheim" in text]


# A work tree that is spoilt.

OWN_SETTINGS = '[core]\n\tfsmonitor = false\n\thooksPath = /tmp\n[filter "x"]\n\tclean = false\n'


@pytest.mark.few(1, ci=6)
@pytest.mark.parametrize(
    "harm",
    [
        "rm -rf .git; ln -s / .git",
        "rm -rf .git; printf 'gitdir: /\n' > .git",
        f"printf '{OWN_SETTINGS}' >> .git/config; printf '* filter=x\n' > .git/info/attributes",
        "printf 'count.txt filter=x\n' > .gitattributes",
        "mkdir -p deep && echo x > deep/x && chmod 000 deep",
        "mkfifo pipe; ln -s /etc/passwd password; ln -s . loop",
    ],
)
def test_a_work_tree_that_was_tampered_with_hangs_and_breaks_nothing(stage: Stage, harm: str) -> None:
    came = stage.solve(
        planner(subtask("count them", COUNTED, tools=["run", "write"])),
        executor(ran(harm), attempt=1, round=1),
        executor(RIGHT),
    )
    assert (came.exit, came.status) == (0, "accepted"), came.stderr
    assert stage.workshop.git(stage.root, "status", "--porcelain") == ""
    assert not list((stage.workshop.proofstone_home / "work").iterdir())


@pytest.mark.ci
def test_who_deletes_everything_leaves_the_person_their_files(stage: Stage) -> None:
    came = stage.solve(executor(ran("rm -rf ./* ./.[!.]*"), attempt=1), executor(RIGHT, attempt=2))
    assert came.status == "accepted"
    assert {one.path: one.kind for one in came.report.changed}["notes.txt"] == "deleted"
    assert (stage.root / "notes.txt").read_text() == "one\ntwo\nthree\n"


# The repository itself.


def test_nothing_is_written_through_a_link(stage: Stage) -> None:
    outside = stage.workshop.folder / "outside"
    outside.mkdir()
    (stage.root / ".proofstone").symlink_to(outside)
    refused = stage.solve()
    assert (refused.exit, list(outside.iterdir())) == (2, [])
    assert ".proofstone: is not a folder of this repository" in refused.stderr
    assert stage.runs == []
