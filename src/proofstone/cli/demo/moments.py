"""What must happen in the demo, looked for in the ledger afterwards: whatever is not on record has not happened.

The demo would be worth nothing if it could not fail: a lie that is caught for another reason than its own, or a
controller that never turns, is a moment that is not found.

What the demo left behind, looked up afterwards: the branch, the pages, the ledger; and what is not as it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.agents.roles.models.gate import Direction, ExecutorStatus, Failure
from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.cli.demo.stage import Stage
from proofstone.common.models import Phase, ReviewVerdict
from proofstone.gate.models import AttemptFailed, Committed, Executed, RunOutcome
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.pipeline.journal import NOTE, STEP
from proofstone.pipeline.models.run import PlanGateSummary, RunReport
from proofstone.pipeline.records import Happened, RunRecord, TaskHistory, children

LIE: Final = "edited-expectation"
"""What the lie must be caught by: any other reason would be chance."""
_TURNS: Final = (DirectiveName.BREAK_SYMMETRY, DirectiveName.CHANGE_APPROACH)
_SHORT: Final = 12


@dataclass(frozen=True)
class Moment:
    what: str
    """That happened."""
    did: str
    """Proofstone, about it."""
    rows: tuple[int, ...]
    """Of the ledger, that say so."""


@dataclass(frozen=True)
class Record:
    """The run and its parts, as the ledger holds them."""

    own: RunRecord
    parts: tuple[RunRecord, ...]

    @classmethod
    def read(cls, home: Path, run_id: str) -> Record:
        with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
            begun = children(ledger, run_id)
            parts = tuple(RunRecord.read(ledger, item.run_id, item.kind, item.iteration) for item in begun)
            return cls(RunRecord.read(ledger, run_id, "run"), parts)

    @property
    def gates(self) -> list[RunRecord]:
        return [part for part in self.parts if part.kind == "gate"]

    @property
    def tasks(self) -> list[TaskHistory]:
        return [task for gate in self.gates for task in gate.tasks()]

    def notes(self, kind: str) -> Iterator[tuple[int, str, JsonValue]]:
        """Row, words and data of what the loop has decided."""
        for row, payload in self.own.of_type(NOTE):
            if payload["kind"] == kind:
                yield row, str(payload["text"]), payload["data"]

    def passed_between(self, row: int, end: int) -> bool:
        """Whether a plan was carried out in that time, and all of it passed."""
        of_them = [gate for gate in self.gates if row < gate.stages[0].seq < end]
        return any(gate.outcome is RunOutcome.PASSED for gate in of_them)

    @property
    def end(self) -> int:
        return self.own.stages[-1].seq + 1


def challenged(record: Record) -> Moment | None:
    """A plan was sent back, and a later one was let through."""
    words = [(row, PlanGateSummary.model_validate(data)) for row, _, data in record.notes("plan-gate")]
    refused = next(((row, word) for row, word in words if word.verdict in ("REVISE", "RETHINK")), None)
    if refused is None or not refused[1].open:
        return None
    row, word = refused
    let_through = next((later for later, other in words if later > row and other.verdict == "PROCEED"), None)
    if let_through is None:
        return None
    return Moment(
        f"A challenger said of the first plan: {_quoted(word.open[0].title)}",
        f"{word.verdict}: sent it back before a line was written, and let the next one through",
        (row, let_through),
    )


def honest(record: Record) -> Moment | None:
    """A task passed at the first attempt."""
    for task in record.tasks:
        claim = next((event.event.claim for event in task.events if isinstance(event.event, Executed)), None)
        accepted = [event.seq for event in task.events if isinstance(event.event, Committed)]
        if claim and accepted and task.record.attempt == 1:
            return Moment(
                f"An honest implementer said: {_quoted(claim.evidence)}",
                "ran the checks itself, and accepted the work at the first attempt",
                (*task.rows("checked"), *accepted),
            )
    return None


def caught(record: Record) -> Moment | None:
    """Somebody claimed a success that rests on an edited test; it was refused for just that, and tried again."""
    for task in record.tasks:
        for number, one in enumerate(task.events):
            if (lie := _lie(one)) is None or not _is_tried_again(task, number):
                continue
            said, seen = lie
            return Moment(
                f"Another one said: {_quoted(said)}",
                f"caught it: {seen}. Nothing of it was accepted, it had to try again",
                (one.seq,),
            )
    return None


def _lie(one: Happened) -> tuple[str, str] | None:
    """What was said, and what was seen."""
    event = one.event
    if not isinstance(event, AttemptFailed) or event.claim is None or event.claim.status is not ExecutorStatus.SUCCESS:
        return None
    seen = exposed(event.failure)
    return (event.claim.evidence, seen) if seen else None


def exposed(failure: Failure) -> str:
    """How the lie shows, without the advice; empty: it failed for something else."""
    return next((reason.detail.partition(". ")[0] for reason in failure.reasons if reason.check == LIE), "")


def _is_tried_again(task: TaskHistory, number: int) -> bool:
    return any(later.event.kind == "started" for later in task.events[number:])


def turned(record: Record) -> Moment | None:
    """The controller asked for another approach, once, and with that one it passed."""
    said = [(row, Direction.model_validate(data)) for row, _, data in record.notes("direction")]
    turns = [(row, one) for row, one in said if one.directive in _TURNS]
    if len(turns) != 1 or not record.passed_between(turns[0][0], record.end):
        return None
    row, turn = turns[0]
    before = [item for item in said if item[0] < row]
    asked = [f"{one.directive} after plan {number}" for number, (_, one) in enumerate((*before, turns[0]), start=1)]
    return Moment(
        f"{len(before) + 1} plans failed: {turn.failed_criterion}",
        f"controller: {', '.join(asked)}. It told the planner to leave the approach; with another one it passed",
        (*(row for row, _ in before), row),
    )


def revised(record: Record) -> Moment | None:
    """A reviewer wanted something revised; it went through the gate, and the same reviewer approves."""
    reviews = [check for check in record.own.checks if check.row.check_name.startswith("review-code-")]
    asked = next((review for review in reviews if review.row.verdict is ReviewVerdict.NEEDS_REVISION), None)
    if asked is None:
        return None
    again = [
        review
        for review in reviews
        if review.row.check_name == asked.row.check_name and review.row.round > asked.row.round
    ]
    approving = [item.seq for item in again if item.row.verdict is ReviewVerdict.APPROVE]
    if not approving or not record.passed_between(asked.seq, approving[-1]):
        return None
    why = next((text for row, text, _ in record.notes("review-gate") if row > asked.seq), "").rpartition(": ")[2]
    return Moment(
        f"A reviewer said of the whole change: {_quoted(why)}",
        "had it planned, done and checked like any other work, and asked the reviewers again: they approve",
        (asked.seq, approving[-1]),
    )


def committed(record: Record) -> Moment | None:
    """One commit was made, of a tree that is on record as checked."""
    made = [(row, said) for row, said in record.own.of_type(STEP) if said["step"] == "commit"]
    if len(made) != 1:
        return None
    row, said = made[0]
    tree = str(said["tree"])
    checks = [check for check in record.own.checks if check.row.tree == tree and check.row.phase is Phase.AFTER]
    if not checks or not all(check.row.passed for check in checks):
        return None
    return Moment(
        "Everything together was checked once more",
        f"made one commit, {str(said['commit'])[:_SHORT]}, of exactly that tree, {tree[:_SHORT]}",
        (*(check.seq for check in checks), row),
    )


MOMENTS: Final[Mapping[str, Callable[[Record], Moment | None]]] = {
    "the plan was challenged": challenged,
    "honest work passed at once": honest,
    "the lie was caught": caught,
    "the controller turned the approach once": turned,
    "the review had something revised": revised,
    "the tree that was checked was committed once": committed,
}
"""In the order in which they happen."""


def moments(record: Record) -> dict[str, Moment | None]:
    return {name: found(record) for name, found in MOMENTS.items()}


def _quoted(text: str) -> str:
    return f'"{text}"'


@dataclass(frozen=True)
class Aftermath:
    commits: tuple[str, ...]
    """That the run's branch has and the person's has not."""
    tree: str
    """Of the last of them."""
    untouched: bool
    """The person's branch and files are as they were."""
    pages: tuple[Path, ...]
    """The evidence bundle, as Markdown and for a browser."""
    verified: bool
    """Whether the ledger is whole, in the words of another process."""
    verdict: str
    """These words."""


def look(stage: Stage, report: RunReport) -> Aftermath:
    git = stage.git
    tip = report.branch if report.commit else "main"
    verified = stage.proofstone(
        "ledger", "verify", "--full", "--home", str(stage.home), "--repo", str(stage.repository)
    )
    page = Path(report.bundle)
    return Aftermath(
        commits=tuple(git.line("rev-list", f"main..{tip}").split()),
        tree=git.tree_of(tip),
        untouched=git.line("rev-parse", "main") == report.base_commit and not git.line("status", "--porcelain"),
        pages=tuple(item for item in (page, page.with_suffix(".html")) if item.is_file()),
        verified=verified.returncode == 0,
        verdict=(verified.stdout + verified.stderr).strip(),
    )


def wrongs(report: RunReport, seen: Mapping[str, Moment | None], left: Aftermath) -> Iterator[str]:
    """In what the demo is not what it must be."""
    if report.outcome is not RunOutcome.PASSED:
        yield f"the run {report.outcome.value}: {report.reason}"
    yield from (f"the ledger does not show that {name}" for name, moment in seen.items() if moment is None)
    if report.commit is None or left.commits != (report.commit,):
        yield f"{report.branch} has {len(left.commits)} commits of the run, not just the one that it reports"
    if report.final is None or not report.final.passed or left.tree != report.final.tree:
        yield "what is committed is not the tree on which all checks passed"
    if not left.untouched:
        yield "main, or its files, were changed"
    if len(left.pages) != 2:
        yield "the evidence bundle was not written as Markdown and for a browser"
    if not left.verified:
        yield f"the ledger does not verify: {left.verdict}"
