"""`proofstone demo`: one run of it on a machine whose git is set up awkwardly; and that it fails if anything that must
happen in it did not. Each row of the table takes one thing out of the record of that run."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from proofstone.cli.demo import print_demo_result
from proofstone.cli.demo.moments import LIE_RULE, MOMENTS, Aftermath, DemoRecord, find_demo_problems, find_moments
from proofstone.cli.demo.stage import DemoStage
from proofstone.cli.demo.views import print_aftermath, print_moments, print_next, print_problems
from proofstone.cli.output import Output
from proofstone.gate.models import RunOutcome
from proofstone.ledger.schema import RowT, StoredRow
from proofstone.pipeline.models.run import RunReport
from proofstone.pipeline.records import RunRecord
from tests.workshop import proofstone

pytestmark = pytest.mark.ci
"""One demo takes as long as twenty checks, and other tests see each of its parts."""

CHALLENGED, HONEST, CAUGHT, TURNED, REVISED, COMMITTED = MOMENTS
SAID = (
    "Written without leading zeros, 5 cents look like 50.",
    "The receipt is written and tested.",
    "Fixed the rounding. All tests pass.",
    "refine after plan 1, break_symmetry after plan 2",
    "A discount over 100 % makes the total negative",
    "made one commit",
)
"""Of each moment, something that a person must read."""


class Shown(NamedTuple):
    """A demo that is over."""

    code: int
    document: Mapping[str, Any]
    progress: str
    stage: DemoStage

    @property
    def report(self) -> RunReport:
        return RunReport.model_validate(self.document["run"])

    @property
    def record(self) -> DemoRecord:
        return DemoRecord.read(self.stage.home, self.report.run_id)

    def git(self, *args: str) -> list[str]:
        done = subprocess.run(["git", *args], cwd=self.stage.repository, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The person's git signs with a key that is not there, has a hook that refuses, and knows no name; and their runs
    go to a collector that is down."""
    top = tmp_path_factory.mktemp("demo")
    hook = top / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (top / ".gitconfig").write_text(
        f"[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n[core]\n\thooksPath = {hook.parent}\n"
        f"[init]\n\ttemplateDir = {top}\n"
    )
    env = {"HOME": str(top), "XDG_CONFIG_HOME": str(top), "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = proofstone("demo", "--json", "--dir", str(top / "stage"), home=top / "unused", env=env)
    assert done.stdout, done.stderr
    assert not (top / "unused").exists(), "the demo leaves nothing in the person's own state"
    return Shown(done.returncode, json.loads(done.stdout), done.stderr, DemoStage(top / "stage"))


@pytest.fixture(scope="module")
def record(shown: Shown) -> DemoRecord:
    return shown.record


# --- one run of it --------------------------------------------------------------------------------------------------


def test_everything_happens_that_must(shown: Shown) -> None:
    document = shown.document
    assert (shown.code, document["as_it_must_be"], document["wrongs"]) == (0, True, [])
    assert list(document["moments"]) == list(MOMENTS)
    told_of = [f"{one['what']} {one['did']}" for one in document["moments"].values()]
    assert [words for words, text in zip(SAID, told_of, strict=True) if words not in text] == []
    assert all(one["rows"] for one in document["moments"].values())


def test_one_commit_is_left_and_the_persons_branch_is_as_it_was(shown: Shown) -> None:
    report = shown.report
    assert report.outcome is RunOutcome.PASSED
    assert shown.git("rev-list", f"main..{report.branch}") == [report.commit] == shown.document["commits"]
    assert shown.git("log", "-1", "--format=%s", "main") == ["A cart that adds up, nearly"]
    assert shown.git("status", "--short") == []
    changed = shown.git("diff", "--name-only", "main", report.branch)
    assert {"shop/cart.py", "shop/receipt.py"} <= set(changed)
    assert "        self.assertEqual(total([333], discount_percent=50), 166)" in shown.git(
        "show", f"{report.branch}:tests/test_cart.py"
    ), "the expectation that the lie had edited"


def test_the_evidence_is_there_to_be_read(shown: Shown) -> None:
    markdown, page = map(Path, shown.document["bundle"])
    assert shown.report.request in markdown.read_text()
    assert page.read_text().startswith("<!doctype html>")
    assert "verified: " in shown.document["ledger"] and "1 anchor matches" in shown.document["ledger"]


def test_whoever_watches_is_told_what_it_means(shown: Shown) -> None:
    for words in ("challenged: ", 'caught: it said "Fixed the rounding. All tests pass."', "turned: ", "sent back: "):
        assert shown.progress.count(f"  {words}") == 1, words
    assert "other agents challenge the plan before any code is written" in shown.progress


def test_nobody_else_is_told_of_it_whatever_the_person_has_set_up(shown: Shown) -> None:
    assert "export" not in shown.progress


@pytest.mark.parametrize("width", [46, 80, 400])
def test_what_happened_can_be_read_in_a_narrow_and_in_a_wide_terminal(
    shown: Shown, record: DemoRecord, width: int
) -> None:
    page = io.StringIO()
    console = Console(file=page, width=width, markup=False, highlight=False)
    left = replace(right(shown.report), verdict=shown.document["ledger"])
    print_moments(console, find_moments(record))
    print_aftermath(console, shown.stage, shown.report, left)
    print_next(console, shown.stage, shown.report.run_id)
    print_problems(console, list(find_demo_problems(shown.report, find_moments(record), left)))
    text = page.getvalue()
    if width != 80:  # where a table breaks the lines in the middle of what was said
        assert [words for words in SAID if words not in text] == []
    assert f"export PROOFSTONE_HOME={shown.stage.home}" in text
    assert f"proofstone status {shown.report.run_id} --cost\n" in text
    assert text.endswith("Everything happened as it must, and the ledger confirms it.\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda place: place.write_text("a file"), "File exists"),
        (lambda place: (place.mkdir(), (place / "mine").write_text("mine")), "is not empty"),
    ],
)
def test_a_directory_that_is_in_use_is_left_alone(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    make(place)
    done = proofstone("demo", "--dir", str(place), home=tmp_path / "home")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"proofstone: --dir {place}: {message}")


# --- a moment that did not happen -----------------------------------------------------------------------------------

Edit = Callable[[StoredRow[Any]], StoredRow[Any] | None]
"""What becomes of a row; None: it was never written."""


def edited(record: DemoRecord, edit: Edit) -> DemoRecord:
    """The record of a demo in which something went otherwise."""

    def rows(table: list[StoredRow[RowT]]) -> list[StoredRow[RowT]]:
        return [found for one in table if (found := edit(one)) is not None]

    def run(one: RunRecord) -> RunRecord:
        return replace(one, events=rows(one.events), checks=rows(one.checks))

    return DemoRecord(run(record.run), tuple(map(run, record.children)))


def payload_of(one: StoredRow[Any]) -> str:
    return str(one.values.get("payload", ""))


def never(*words: str) -> Edit:
    """No row in which all of these stand."""
    return lambda one: None if all(word in payload_of(one) for word in words) else one


def otherwise(old: str, new: str, *words: str) -> Edit:
    """In each row in which all of these stand, and the old text, it is the new one."""

    def edit(one: StoredRow[Any]) -> StoredRow[Any]:
        if not all(word in payload_of(one) for word in words):
            return one
        return replace(one, values={**one.values, "payload": payload_of(one).replace(old, new)})

    return edit


def check_otherwise(name: str, value: str | int, **where: object) -> Edit:
    """In each check of which that is true, this is the value of that column."""

    def edit(one: StoredRow[Any]) -> StoredRow[Any]:
        if not all(one.values.get(key) == wanted for key, wanted in where.items()):
            return one
        return replace(one, values={**one.values, name: value})

    return edit


def no_task_event(kind: str) -> Edit:
    return lambda one: None if one.values.get("type") == f"task.{kind}" else one


def gates_failed(one: StoredRow[Any]) -> StoredRow[Any]:
    """Nothing that was begun at the gate came to a good end."""
    if one.values.get("type") != "run.finished":
        return one
    return replace(one, values={**one.values, "payload": payload_of(one).replace("passed", "failed")})


def nothing_open(one: StoredRow[Any]) -> StoredRow[Any]:
    """The plan gate sent plans back, and gave no reason."""
    said = json.loads(payload_of(one) or "{}")
    if said.get("kind") != "plan-gate":
        return one
    return replace(one, values={**one.values, "payload": json.dumps({**said, "data": {**said["data"], "open": []}})})


def no_second_attempt(one: StoredRow[Any]) -> StoredRow[Any] | None:
    """Whatever failed once was left at that."""
    type = str(one.values.get("type", ""))
    if not type.startswith("task."):
        return one
    return None if type in _OF_ANY_ATTEMPT or '"attempt":1' not in payload_of(one) else one


_OF_ANY_ATTEMPT = ("task.retried", "task.executed", "task.checked", "task.approved", "task.committed")

NOTE_OF_THE_PLAN_GATE = '"kind":"plan-gate"'
TURN = '"directive":"break_symmetry"'
A_DIRECTION = '"kind":"direction"'
COMMIT_STEP = '"step":"commit"'
DID_NOT_HAPPEN: Mapping[str, tuple[str, Edit]] = {
    "no plan was sent back": (CHALLENGED, never(NOTE_OF_THE_PLAN_GATE, "REVISE")),
    "no plan was let through later": (CHALLENGED, never(NOTE_OF_THE_PLAN_GATE, "PROCEED")),
    "nothing was said against the plan": (CHALLENGED, nothing_open),
    "no task was accepted": (HONEST, no_task_event("committed")),
    "the lie was caught for another reason": (CAUGHT, otherwise(f'"check":"{LIE_RULE}"', '"check":"size"', LIE_RULE)),
    "whoever lied had said that it failed": (CAUGHT, otherwise('"status":"success"', '"status":"failure"', LIE_RULE)),
    "whoever lied was never asked again": (CAUGHT, no_second_attempt),
    "the controller never turned": (TURNED, otherwise(TURN, '"directive":"refine"', A_DIRECTION)),
    "the controller turned each time": (TURNED, otherwise('"directive":"refine"', TURN, A_DIRECTION)),
    "the other approach failed too": (TURNED, gates_failed),
    "no reviewer wanted anything": (REVISED, check_otherwise("verdict", "approve", verdict="needs_revision")),
    "the reviewer was not asked again": (REVISED, check_otherwise("round", 1, check_name="review-code-correctness")),
    "the reviewer was never content": (REVISED, check_otherwise("verdict", "needs_revision", round=2)),
    "what was found was not put right": (REVISED, gates_failed),
    "no commit is on record": (COMMITTED, never(COMMIT_STEP)),
    "another tree than the one that was checked": (COMMITTED, otherwise('"tree":"', '"tree":"0', COMMIT_STEP)),
    "a check of that tree failed": (COMMITTED, check_otherwise("state", "fail", check_name="size")),
}


@pytest.mark.parametrize(("name", "edit"), DID_NOT_HAPPEN.values(), ids=DID_NOT_HAPPEN)
def test_a_moment_that_did_not_happen_is_missed(shown: Shown, record: DemoRecord, name: str, edit: Edit) -> None:
    seen = find_moments(edited(record, edit))
    assert seen[name] is None
    assert f"the ledger does not show that {name}" in list(find_demo_problems(shown.report, seen, right(shown.report)))


def test_a_demo_in_which_all_of_it_happened_has_no_wrongs(shown: Shown, record: DemoRecord) -> None:
    assert list(find_demo_problems(shown.report, find_moments(record), right(shown.report))) == []


# --- what it leaves behind ------------------------------------------------------------------------------------------


def right(report: RunReport) -> Aftermath:
    assert report.commit and report.tree
    return Aftermath((report.commit,), report.tree, True, (Path("a.md"), Path("a.html")), True, "verified: 1 row")


WRONG: Mapping[str, tuple[Mapping[str, object], Mapping[str, object], str]] = {
    "the run failed": ({"outcome": RunOutcome.FAILED, "reason": "why"}, {}, "the run failed: why"),
    "no commit": ({"commit": None}, {}, "has 1 commits of the run instead of the one that it reports"),
    "two commits": ({}, {"commits": ("a", "b")}, "has 2 commits of the run instead of the one that it reports"),
    "another commit": ({}, {"commits": ("a",)}, "has 1 commits of the run instead of the one that it reports"),
    "another tree": ({}, {"tree": "0" * 40}, "the committed tree is not the one on which all checks passed"),
    "no final checks": ({"final": None}, {}, "the committed tree is not the one on which all checks passed"),
    "the person's files": ({}, {"is_untouched": False}, "main, or its files, were changed"),
    "one page": ({}, {"pages": (Path("a.md"),)}, "the evidence bundle was not written as Markdown and for a browser"),
    "the ledger": ({}, {"is_verified": False, "verdict": "row 3"}, "the ledger does not verify: row 3"),
}


@pytest.mark.parametrize(("reported", "left", "words"), WRONG.values(), ids=WRONG)
def test_whatever_is_left_otherwise_than_it_must_be_is_named(
    shown: Shown, record: DemoRecord, reported: Mapping[str, object], left: Mapping[str, Any], words: str
) -> None:
    report = shown.report
    found = find_demo_problems(
        report.model_copy(update=dict(reported)), find_moments(record), replace(right(report), **left)
    )
    assert [wrong for wrong in found if wrong.endswith(words)], words


def test_what_was_done_to_the_repository_and_the_ledger_afterwards_is_seen_and_the_demo_fails(
    shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, page = Path(shown.report.ledger), Path(shown.report.bundle).with_suffix(".html")
    whole, html = ledger.read_bytes(), page.read_bytes()
    at = whole.index(b"Fixed the rounding")
    try:
        ledger.write_bytes(whole[:at] + b"Faked" + whole[at + len(b"Faked") :])
        page.unlink()
        (shown.stage.repository / "shop" / "more.py").write_text("")
        code = print_demo_result(Output(json=True), shown.stage, shown.report)
    finally:
        ledger.write_bytes(whole)
        page.write_bytes(html)
        (shown.stage.repository / "shop" / "more.py").unlink()
    document = json.loads(capsys.readouterr().out)
    assert (code, document["as_it_must_be"]) == (1, False)
    assert [wrong.partition(":")[0] for wrong in document["wrongs"]] == [
        "main, or its files, were changed",
        "the evidence bundle was not written as Markdown and for a browser",
        "the ledger does not verify",
    ]
