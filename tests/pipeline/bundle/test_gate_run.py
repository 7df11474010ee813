"""The bundle of a real run of `proofstone gate`: what it shows is what happened, and its rollback takes it back."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from proofstone.common.models import Verdict
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.pipeline.bundle_builder import build_bundle
from proofstone.pipeline.models.bundle import BundleCommit, EvidenceBundle
from proofstone.pipeline.rules.approvals import rollback_command
from tests.gate.stage import GateResult, Stage, agent, work
from tests.staging import plan, task

SECOND = f'[ "$PROOFSTONE_ATTEMPT" = 1 ] && printf "def two(): return 3" > shop/two.py && exit 0\n{work("two")}'
"""Nothing is tested the first time."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, GateResult]:
    stage = Stage.set_up(tmp_path_factory.mktemp("gate"), plan(task("One"), task("Two")))
    gated = stage.gate(agent(t1=work("one"), t2=SECOND))
    assert gated.exit == 0, gated.stderr
    return stage, gated


def bundled(stage: Stage, run_id: str) -> EvidenceBundle:
    with closing(SqliteLedger(ledger_path(stage.workshop.proofstone_home), "read")) as ledger:
        return build_bundle(ledger, run_id)


def test_it_ends_as_the_gate_says(stage: tuple[Stage, GateResult]) -> None:
    bundle, said = bundled(stage[0], stage[1].json["run_id"]), stage[1].json
    assert (bundle.ending.outcome, bundle.ending.confidence) == (said["outcome"], said["confidence"])
    assert [(one.id, one.name, one.state, one.attempts) for one in bundle.tasks] == [
        (one["id"], one["name"], one["state"], one["attempts"]) for one in said["tasks"]
    ]
    assert [one.commit for one in bundle.commits] == [one["commit"] for one in said["tasks"]]


def test_checks_are_those_of_the_trees_that_were_committed(stage: tuple[Stage, GateResult]) -> None:
    bundle = bundled(stage[0], stage[1].json["run_id"])
    assert [(tree.task, tree.attempt) for tree in bundle.checks] == [("task-01", 1), ("task-02", 2)]
    assert [tree.tree for tree in bundle.checks] == [one.tree for one in bundle.commits]
    for commit in bundle.commits:
        assert stage[0].git("rev-parse", f"{commit.commit}^{{tree}}") == commit.tree
    for tree in bundle.checks:
        (verify,) = (line for line in tree.lines if line.name == "verify")
        assert (verify.before, verify.after) == (Verdict.FAIL, Verdict.PASS)
        (tests,) = (line for line in tree.lines if line.name == "tests:unittest")
        assert (tests.before, tests.after) == (Verdict.PASS, Verdict.PASS)
        assert "must-fail" in {probe.what for probe in tests.probes}


def test_the_attempt_that_failed_is_told_with_its_loss_and_that_it_was_put_right(
    stage: tuple[Stage, GateResult],
) -> None:
    bundle = bundled(stage[0], stage[1].json["run_id"])
    assert [(one.of, one.number) for one in bundle.losses] == [("task-02", 1)]
    (fixed,) = bundle.fixed_issues
    assert fixed.source == "task-02, attempt 1"
    assert fixed.how == "attempt 2 passed"
    assert bundle.known_issues == ()


def test_the_rollback_leads_back_to_the_base(stage: tuple[Stage, GateResult], tmp_path: Path) -> None:
    """In a clone: others look at the branch too."""
    bundle, workshop = bundled(stage[0], stage[1].json["run_id"]), stage[0].workshop
    workshop.git(tmp_path, "clone", "--quiet", "--branch", stage[0].branch, str(stage[0].root), "clone")
    clone = tmp_path / "clone"
    assert workshop.git(clone, "rev-parse", "HEAD^{tree}") != workshop.git(clone, "rev-parse", "origin/main^{tree}")
    done = subprocess.run(shlex.split(bundle.rollback), cwd=clone, env=workshop.environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    tree = workshop.git(clone, "rev-parse", "HEAD^{tree}")
    assert tree == workshop.git(clone, "rev-parse", f"{bundle.subject.base_commit}^{{tree}}")
    assert workshop.git(clone, "status", "--porcelain") == ""


def test_nothing_of_it_comes_from_the_repository(stage: tuple[Stage, GateResult]) -> None:
    """The project, the run's folder, the plan and the artifacts are gone: the bundle is the same."""
    there, run_id = stage[0], stage[1].json["run_id"]
    before = bundled(there, run_id)
    gone = {
        folder: folder.with_name(f"{folder.name}.gone")
        for folder in (there.root, there.workshop.proofstone_home / "artifacts")
    }
    for folder, aside in gone.items():
        shutil.move(folder, aside)
    try:
        assert bundled(there, run_id) == before
    finally:
        for folder, aside in gone.items():
            shutil.move(aside, folder)


def test_the_command_prints_writes_and_dumps_it(stage: tuple[Stage, GateResult], tmp_path: Path) -> None:
    run_id = stage[1].json["run_id"]
    shown = stage[0].proofstone("bundle", "last")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("# Evidence bundle: PLAN.md\n\n**PASSED**")
    files = tmp_path / "b.html", tmp_path / "b.md"
    wrote = stage[0].proofstone("bundle", run_id[-6:], "--html", str(files[0]), "--output", str(files[1]))
    assert wrote.returncode == 0, wrote.stderr
    assert wrote.stdout == "".join(f"wrote {file}\n" for file in files)
    assert files[0].read_text("utf-8").startswith("<!doctype html>")
    assert files[1].read_text("utf-8") == shown.stdout
    dumped = json.loads(stage[0].proofstone("bundle", run_id, "--json").stdout)
    assert EvidenceBundle.model_validate(dumped) == bundled(stage[0], run_id)


def test_a_run_that_is_not_there_is_the_persons_mistake(stage: tuple[Stage, GateResult], tmp_path: Path) -> None:
    missing = stage[0].proofstone("bundle", "nosuchrun")
    assert missing.returncode == 2
    assert "names no run" in missing.stderr
    unwritable = stage[0].proofstone("bundle", "last", "--html", str(tmp_path / "no" / "b.html"))
    assert unwritable.returncode == 2


def test_a_run_that_failed_says_what_would_raise_its_confidence(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "site", plan(task("One", attributes='max_attempts="1"')))
    gated = stage.gate(agent(t1="exit 3"))
    bundle = bundled(stage, gated.json["run_id"])
    assert (bundle.ending.outcome, bundle.ending.confidence) == (gated.json["outcome"], gated.json["confidence"])
    (reason,) = bundle.ending.reasons
    assert "let task-01 pass" in reason.remedy
    assert [one.severity for one in bundle.known_issues] == ["critical"]
    assert (bundle.commits, bundle.rollback) == ((), "")


def made(commit: str, parent: str) -> BundleCommit:
    return BundleCommit(commit=commit, tree="t", parent=parent, rows=(1,))


@pytest.mark.parametrize(
    ("commits", "command"),
    [
        ((), ""),
        ((made("a", "0"),), "git revert --no-edit a"),
        ((made("a", "0"), made("b", "a")), "git revert --no-edit 0..b"),
        ((made("a", "0"), made("b", "x")), "git revert --no-edit b a"),
    ],
)
def test_a_range_holds_no_commit_of_anybody_else(commits: tuple[BundleCommit, ...], command: str) -> None:
    assert rollback_command(commits) == command
