"""AC-5: what there is not enough evidence for does not go on.

A gate goes by the rows of the ledger: where they do not bear out what the record of a step says, nothing goes on. A run
that was killed just before its commit is resumed, each time with another thing missing from its ledger.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofstone.gate.rules.pass_rule import find_unmet_by_checks
from proofstone.ledger.connection import ledger_path
from tests.gate.records import evidence
from tests.pipeline.stage import PipelineResult, Stage, claim, planner, task

REVIEW = "phase = 'review' AND task_id LIKE '%{scope}-review'"
SECURITY = "phase = 'review' AND check_name = 'review-code-security'"
FINAL = "task_id = 'final' AND phase = 'after' AND check_name = 'tests:unittest'"
TASK = "task_id = 'task-01' AND phase = 'after' AND check_name = 'verify'"
NOT_BORNE_OUT = "the ledger does not confirm the {scope} review, round 1: "
ONE_LESS = "3 of the reviewers {word} by their answers, but 2 by their rows"

CASES = {
    "a reviewer's row is gone": (
        f"DELETE FROM checks WHERE {SECURITY}",
        NOT_BORNE_OUT.format(scope="code") + ONE_LESS.format(word="have submitted"),
    ),
    "a reviewer's row says something else": (
        f"UPDATE checks SET verdict = 'needs_revision', passed = 0, state = 'fail' WHERE {SECURITY}",
        NOT_BORNE_OUT.format(scope="code") + ONE_LESS.format(word="approve"),
    ),
    "a reviewer has found something critical": (
        f"UPDATE checks SET severity = 'critical' WHERE {SECURITY}",
        "0 of the reviewers have found something critical by their answers, but 1 by their rows",
    ),
    "a reviewer has spoken twice, and another not at all": (
        f"UPDATE checks SET check_name = 'review-code-correctness' WHERE {SECURITY}",
        ONE_LESS.format(word="have submitted"),
    ),
    "the reviews are of another round": (
        f"UPDATE checks SET round = 2 WHERE {REVIEW.format(scope='code')}",
        "3 of the reviewers have submitted by their answers, but 0 by their rows",
    ),
    "a review is of another tree": (
        f"UPDATE checks SET tree = '{'0' * 40}' WHERE {SECURITY}",
        ONE_LESS.format(word="have submitted"),
    ),
    "a review is of another run": (
        f"UPDATE checks SET run_id = 'another' WHERE {SECURITY}",
        ONE_LESS.format(word="have submitted"),
    ),
    "a review of the design is gone": (
        f"DELETE FROM checks WHERE {REVIEW.format(scope='design')} AND check_name LIKE '%security'",
        NOT_BORNE_OUT.format(scope="design") + ONE_LESS.format(word="have submitted"),
    ),
    "a check of the merged tree is gone": (
        f"DELETE FROM checks WHERE {FINAL}",
        "the ledger does not confirm it: the merged tree: no row proves that tests:unittest passed",
    ),
    "a check of the merged tree has failed": (
        f"UPDATE checks SET passed = 0, state = 'fail' WHERE {FINAL}",
        "the merged tree: no row proves that tests:unittest passed",
    ),
    "the merged tree was another one": (
        f"UPDATE checks SET tree = '{'0' * 40}' WHERE {FINAL}",
        "the merged tree: no row proves that tests:unittest passed",
    ),
    "a check of a task is gone": (
        f"DELETE FROM checks WHERE {TASK}",
        "task-01 of {run}-g1: no row proves that verify passed",
    ),
    "a check of a task is of another attempt": (
        f"UPDATE checks SET attempt = 2 WHERE {TASK}",
        "task-01 of {run}-g1: no row proves that verify passed",
    ),
}


@dataclass(frozen=True)
class Killed:
    """A run that was about to be committed."""

    stage: Stage
    run: str
    copy: Path

    @property
    def ledger(self) -> Path:
        return ledger_path(self.stage.workshop.proofstone_home)

    def resumed(self, tampering: str = "") -> PipelineResult:
        """From the ledger as it was, but for this."""
        for old in self.ledger.parent.glob(f"{self.ledger.name}*"):
            if old.is_file():
                old.unlink()
        shutil.copy(self.copy, self.ledger)
        if tampering:
            self._tamper(tampering)
        return self.stage.resume(self.run)

    def _tamper(self, statement: str) -> None:
        """As somebody would who can write to the file: what keeps rows from being changed is taken away meanwhile."""
        with closing(sqlite3.connect(self.ledger)) as ledger, ledger:
            kept = ledger.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'checks'"
            ).fetchall()
            for name, _ in kept:
                ledger.execute(f"DROP TRIGGER {name}")
            assert ledger.execute(statement).rowcount, "there is no such row"
            for _, trigger in kept:
                ledger.execute(trigger)

    @property
    def dispatches(self) -> int:
        """Of everybody, in all parts of the run."""
        with closing(sqlite3.connect(self.ledger)) as ledger:
            (count,) = ledger.execute("SELECT COUNT(*) FROM messages WHERE type = 'Dispatch'").fetchone()
        return int(count)

    @property
    def commits(self) -> int:
        return len(self.stage.git("log", "--branches", "--format=%s").splitlines())


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    folder = tmp_path_factory.mktemp("evidence")
    stage = Stage.set_up(folder / "stage")
    came = stage.run(env={"PROOFSTONE_FAULT": "commit.before-objects:2"})
    assert came.exit, "it was to be killed before it commits"
    it = Killed(stage, stage.runs[0], folder / "ledger.db")
    with closing(sqlite3.connect(it.ledger)) as ledger, closing(sqlite3.connect(it.copy)) as copy:
        ledger.backup(copy)
    yield it


@pytest.mark.few(4, ci=13)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.seed("pipeline", "gate-queries")
def test_ac_05_a_gate_is_shut_where_the_ledger_does_not_bear_it_out(killed: Killed, case: str) -> None:
    """AC-5: of a review and of checks, by run, task, attempt, round, tree and distinct reviewer."""
    statement, reason = CASES[case]
    asked = killed.dispatches
    came = killed.resumed(statement)
    assert (came.exit, came.outcome, came.report.commit) == (1, "halted", None)
    assert reason.format(run=killed.run) in came.report.reason
    assert killed.commits == 1
    assert killed.dispatches == asked, "nobody was asked again"


@pytest.mark.seed("pipeline", "gate-queries")
def test_ac_05_with_all_its_rows_it_is_committed(killed: Killed) -> None:
    """AC-5: so that it is the missing row that shuts the gate, and nothing else."""
    came = killed.resumed()
    assert (came.exit, came.outcome) == (0, "passed"), came.report.reason
    killed.stage.git("branch", "-D", came.report.branch)


@pytest.mark.seed("pipeline", "min-signals")
def test_ac_05_one_signal_where_two_are_needed_is_not_enough(tmp_path: Path) -> None:
    """AC-5, the seed's own case, in a whole run: in a project without tests one check passes, and one is no evidence.
    The task fails each time, and the run leaves its lane and asks before it goes on."""
    stage = Stage.set_up(tmp_path / "stage", files={"notes.txt": "A shop.\n"})
    only = [{"path": "notes.txt", "risk": "🟡"}]
    said = {"verify": ["grep -q counts notes.txt"], "done": ["notes.txt says that it counts"]}
    planned = planner({**task(files=only, risk="🟡", relevant_context=[]), **said})
    write = {"tool": {"write": {"path": "notes.txt", "content": "A shop. It counts.\n"}}}
    noted = {"role": "executor", "match": {}, "steps": [write], "output": claim("notes.txt")}
    came = stage.run(planned, noted, args=("--files", "notes.txt", "--mode", "interactive"))
    assert (came.exit, came.report.commit) == (3, None)
    (tried,) = came.report.gates[0].tasks
    assert tried.attempts == 3
    for failure in tried.failures:
        (reason,) = (one.detail for one in failure.reasons if one.check == "signals")
        assert reason == "1 of the 2 required passing checks (verify)"


@pytest.mark.parametrize(
    ("large", "passing", "enough"), [(False, 1, False), (False, 2, True), (True, 2, False), (True, 3, True)]
)
@pytest.mark.seed("pipeline", "min-signals")
def test_ac_05_a_standard_task_needs_two_signals_and_a_large_one_three(large: bool, passing: int, enough: bool) -> None:
    """AC-5. Distinct ones: the same twice is one."""
    names = ("verify", "syntax", "tests:unittest")[:passing]
    missing = find_unmet_by_checks(evidence(large=large, passing=(*names, *names)))
    assert ("signals" not in [one.check for one in missing]) is enough
