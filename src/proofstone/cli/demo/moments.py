"""Find in the ledger what must happen in the demo, and inspect what it left: the branch, the pages, the ledger.

What is not recorded has not happened. The demo is worth something only because it can fail: a lie that is caught for
the wrong reason, or a controller that never changes the approach, is a moment that is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.agents.roles.models.gate import AttemptFailure, ExecutorStatus, RetryDirection
from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.cli.demo.stage import DemoStage
from proofstone.common.models import Phase, ReviewVerdict
from proofstone.gate.models import AttemptExecuted, AttemptFailed, RunOutcome, TaskCommitted
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.pipeline.journal import PIPELINE_NOTE_EVENT, PIPELINE_STEP_EVENT
from proofstone.pipeline.models.run import PlanGateSummary, RunReport
from proofstone.pipeline.records import RunRecord, TaskEventRecord, TaskHistory, read_children

LIE_RULE: Final = "edited-expectation"
"""The rule that must catch the lie. Any other reason would be chance."""
_TURNS: Final = (DirectiveName.BREAK_SYMMETRY, DirectiveName.CHANGE_APPROACH)
_HASH_LENGTH: Final = 12


@dataclass(frozen=True)
class Moment:
    """Something that happened in the demo, and its evidence."""

    what: str
    """What happened."""
    did: str
    """What Proofstone did about it."""
    rows: tuple[int, ...]
    """The rows of the ledger that show it."""


@dataclass(frozen=True)
class DemoRecord:
    """The run and its child runs, as the ledger holds them."""

    run: RunRecord
    children: tuple[RunRecord, ...]

    @classmethod
    def read(cls, home: Path, run_id: str) -> DemoRecord:
        with closing(SqliteLedger(ledger_path(home), "read")) as ledger:
            started = read_children(ledger, run_id)
            parts = tuple(RunRecord.read(ledger, child.run_id, child.kind, child.iteration) for child in started)
            return cls(RunRecord.read(ledger, run_id, "run"), parts)

    @property
    def gates(self) -> list[RunRecord]:
        return [part for part in self.children if part.kind == "gate"]

    @property
    def tasks(self) -> list[TaskHistory]:
        return [task for gate in self.gates for task in gate.build_tasks()]

    def notes(self, kind: str) -> Iterator[tuple[int, str, JsonValue]]:
        """Yield row, text and data of the notes of one kind."""
        for row, payload in self.run.events_of_type(PIPELINE_NOTE_EVENT):
            if payload["kind"] == kind:
                yield row, str(payload["text"]), payload["data"]

    def has_passed_between(self, row: int, end: int) -> bool:
        """Return whether a plan was implemented between these rows and passed completely."""
        gates = [gate for gate in self.gates if row < gate.stages[0].seq < end]
        return any(gate.outcome is RunOutcome.PASSED for gate in gates)

    @property
    def end(self) -> int:
        return self.run.stages[-1].seq + 1


def find_challenge(record: DemoRecord) -> Moment | None:
    """Find the plan that was sent back, and the later one that was accepted."""
    summaries = [(row, PlanGateSummary.model_validate(data)) for row, _, data in record.notes("plan-gate")]
    rejection = next(((row, summary) for row, summary in summaries if summary.verdict in ("REVISE", "RETHINK")), None)
    if rejection is None or not rejection[1].open:
        return None
    row, summary = rejection
    accepted_row = next((later for later, other in summaries if later > row and other.verdict == "PROCEED"), None)
    if accepted_row is None:
        return None
    return Moment(
        f"A challenger said of the first plan: {_quote(summary.open[0].title)}",
        f"{summary.verdict}: sent it back before a line was written, and let the next one through",
        (row, accepted_row),
    )


def find_honest_work(record: DemoRecord) -> Moment | None:
    """Find a task that passed at the first attempt."""
    for task in record.tasks:
        claim = next((event.event.claim for event in task.events if isinstance(event.event, AttemptExecuted)), None)
        accepted = [event.seq for event in task.events if isinstance(event.event, TaskCommitted)]
        if claim and accepted and task.record.attempt == 1:
            return Moment(
                f"An honest implementer said: {_quote(claim.evidence)}",
                "ran the checks itself, and accepted the work at the first attempt",
                (*task.rows_of("checked"), *accepted),
            )
    return None


def find_caught_lie(record: DemoRecord) -> Moment | None:
    """Find a claimed success that rests on an edited test, was refused for that reason, and was retried."""
    for task in record.tasks:
        for number, happened in enumerate(task.events):
            if (lie := _find_lie(happened)) is None or not _is_retried(task, number):
                continue
            claim, evidence = lie
            return Moment(
                f"Another one said: {_quote(claim)}",
                f"caught it: {evidence}. Nothing of it was accepted, it had to try again",
                (happened.seq,),
            )
    return None


def _find_lie(happened: TaskEventRecord) -> tuple[str, str] | None:
    """Return the claim and the evidence against it."""
    event = happened.event
    if not isinstance(event, AttemptFailed) or event.claim is None or event.claim.status is not ExecutorStatus.SUCCESS:
        return None
    evidence = describe_lie(event.failure)
    return (event.claim.evidence, evidence) if evidence else None


def describe_lie(failure: AttemptFailure) -> str:
    """Return how the lie was found, without the advice; empty if the attempt failed for another reason."""
    return next((reason.detail.partition(". ")[0] for reason in failure.reasons if reason.check == LIE_RULE), "")


def _is_retried(task: TaskHistory, number: int) -> bool:
    return any(later.event.kind == "started" for later in task.events[number:])


def find_changed_approach(record: DemoRecord) -> Moment | None:
    """Find the one time when the controller asked for another approach, which then passed."""
    directions = [(row, RetryDirection.model_validate(data)) for row, _, data in record.notes("direction")]
    turns = [(row, direction) for row, direction in directions if direction.directive in _TURNS]
    if len(turns) != 1 or not record.has_passed_between(turns[0][0], record.end):
        return None
    row, turn = turns[0]
    before = [pair for pair in directions if pair[0] < row]
    decisions = [
        f"{direction.directive} after plan {number}"
        for number, (_, direction) in enumerate((*before, turns[0]), start=1)
    ]
    return Moment(
        f"{len(before) + 1} plans failed: {turn.failed_criterion}",
        f"controller: {', '.join(decisions)}. It told the planner to leave the approach; with another one it passed",
        (*(row for row, _ in before), row),
    )


def find_revision(record: DemoRecord) -> Moment | None:
    """Find a reviewer who asked for a revision and approved after it went through the gate."""
    reviews = [check for check in record.run.checks if check.row.check_name.startswith("review-code-")]
    rejected = next((review for review in reviews if review.row.verdict is ReviewVerdict.NEEDS_REVISION), None)
    if rejected is None:
        return None
    later_reviews = [
        review
        for review in reviews
        if review.row.check_name == rejected.row.check_name and review.row.round > rejected.row.round
    ]
    approving = [review.seq for review in later_reviews if review.row.verdict is ReviewVerdict.APPROVE]
    if not approving or not record.has_passed_between(rejected.seq, approving[-1]):
        return None
    why = next((text for row, text, _ in record.notes("review-gate") if row > rejected.seq), "").rpartition(": ")[2]
    return Moment(
        f"A reviewer said of the whole change: {_quote(why)}",
        "had it planned, done and checked like any other work, and asked the reviewers again: they approve",
        (rejected.seq, approving[-1]),
    )


def find_commit(record: DemoRecord) -> Moment | None:
    """Find the one commit, of a tree that is recorded as checked."""
    commits = [
        (row, payload) for row, payload in record.run.events_of_type(PIPELINE_STEP_EVENT) if payload["step"] == "commit"
    ]
    if len(commits) != 1:
        return None
    row, payload = commits[0]
    tree = str(payload["tree"])
    checks = [check for check in record.run.checks if check.row.tree == tree and check.row.phase is Phase.AFTER]
    if not checks or not all(check.row.passed for check in checks):
        return None
    return Moment(
        "Everything together was checked once more",
        f"made one commit, {str(payload['commit'])[:_HASH_LENGTH]}, of exactly that tree, {tree[:_HASH_LENGTH]}",
        (*(check.seq for check in checks), row),
    )


MOMENTS: Final[Mapping[str, Callable[[DemoRecord], Moment | None]]] = {
    "the plan was challenged": find_challenge,
    "honest work passed at once": find_honest_work,
    "the lie was caught": find_caught_lie,
    "the controller turned the approach once": find_changed_approach,
    "the review had something revised": find_revision,
    "the tree that was checked was committed once": find_commit,
}
"""The moments in the order in which they happen."""


def find_moments(record: DemoRecord) -> dict[str, Moment | None]:
    """Look for all moments."""
    return {name: find(record) for name, find in MOMENTS.items()}


def _quote(text: str) -> str:
    return f'"{text}"'


@dataclass(frozen=True)
class Aftermath:
    """What the demo left."""

    commits: tuple[str, ...]
    """The commits that only the branch of the run has."""
    tree: str
    """The tree of the last commit."""
    is_untouched: bool
    """Whether the person's branch and files are unchanged."""
    pages: tuple[Path, ...]
    """The evidence bundle, as Markdown and as HTML."""
    is_verified: bool
    """Whether another process verified the ledger."""
    verdict: str
    """The output of that process."""


def inspect_aftermath(stage: DemoStage, report: RunReport) -> Aftermath:
    """Inspect what the demo left."""
    git = stage.git
    tip = report.branch if report.commit else "main"
    verification = stage.run_proofstone(
        "ledger", "verify", "--full", "--home", str(stage.home), "--repo", str(stage.repository)
    )
    page = Path(report.bundle)
    return Aftermath(
        commits=tuple(git.run_line("rev-list", f"main..{tip}").split()),
        tree=git.find_tree(tip),
        is_untouched=git.run_line("rev-parse", "main") == report.base_commit
        and not git.run_line("status", "--porcelain"),
        pages=tuple(file for file in (page, page.with_suffix(".html")) if file.is_file()),
        is_verified=verification.returncode == 0,
        verdict=(verification.stdout + verification.stderr).strip(),
    )


def find_demo_problems(report: RunReport, seen: Mapping[str, Moment | None], left: Aftermath) -> Iterator[str]:
    """Yield what is not as it must be."""
    if report.outcome is not RunOutcome.PASSED:
        yield f"the run {report.outcome.value}: {report.reason}"
    yield from (f"the ledger does not show that {name}" for name, moment in seen.items() if moment is None)
    if report.commit is None or left.commits != (report.commit,):
        yield f"{report.branch} has {len(left.commits)} commits of the run instead of the one that it reports"
    if report.final is None or not report.final.passed or left.tree != report.final.tree:
        yield "the committed tree is not the one on which all checks passed"
    if not left.is_untouched:
        yield "main, or its files, were changed"
    if len(left.pages) != 2:
        yield "the evidence bundle was not written as Markdown and for a browser"
    if not left.is_verified:
        yield f"the ledger does not verify: {left.verdict}"
