"""The merged tree of a run: its diff, its checks and its commit, and the evidence of it in the ledger.

The evidence is read in SQL over a read-only connection: by run, task, attempt, round, tree and distinct reviewer or
check.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from proofstone.agents.roles.models.gate import CheckSummary, TaskState
from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import ReviewScope
from proofstone.check.context import CheckRequest, Progress, RunContext
from proofstone.check.inspection import build_path_changes
from proofstone.check.models import CheckReport
from proofstone.check.run import CheckRun
from proofstone.check.subject import CheckSubject
from proofstone.common.models import Acceptance, Confidence, Outcome
from proofstone.common.risk import Risk, assess_risk
from proofstone.common.secrets import is_secret_path
from proofstone.errors import LedgerError
from proofstone.gate.rules.criterion_commands import find_commands_of_criteria
from proofstone.git.checkout import render_diff
from proofstone.git.commit import CommitIdentity, CommitIntent, find_branch_tip, publish_commit, write_commit
from proofstone.git.snapshot import Snapshot, snapshot_of_tree
from proofstone.ledger.query import run_query
from proofstone.machine.files import remove_folder
from proofstone.pipeline.models.run import BlastRadius, FinalChecks, GateSummary
from proofstone.pipeline.rules.reviews import CheckTally, ReviewTally
from proofstone.plans.models import Plan

FINAL_TASK: Final = "final"
"""The task id under which the merged tree is checked."""

_REVIEWS_QUERY: Final = """
SELECT COUNT(DISTINCT check_name),
       COUNT(DISTINCT CASE WHEN verdict = 'approve' THEN check_name END),
       COUNT(DISTINCT CASE WHEN verdict = 'blocker' THEN check_name END),
       COUNT(DISTINCT CASE WHEN severity = 'critical' THEN check_name END)
FROM checks
WHERE run_id = ?1 AND task_id = ?2 AND phase = 'review' AND round = ?3 AND verdict IS NOT NULL AND tree = ?4
"""
_PASSED_QUERY: Final = """
SELECT DISTINCT check_name FROM checks
WHERE run_id = ?1 AND task_id = ?2 AND attempt = ?3 AND phase = 'after' AND passed = 1 AND tree = ?4
"""
_CHECKED_QUERY: Final = """
SELECT json_extract(started.payload, '$.event.attempt'), json_extract(checked.payload, '$.event.evidence.tree'),
       json_extract(checked.payload, '$.event.evidence.passing')
FROM events AS checked
JOIN events AS started ON started.seq = (
    SELECT MAX(seq) FROM events
    WHERE run_id = ?1 AND task_id = ?2 AND type = 'task.started' AND seq < checked.seq)
WHERE checked.run_id = ?1 AND checked.task_id = ?2 AND checked.type = 'task.checked'
ORDER BY checked.seq DESC LIMIT 1
"""


_ACCEPTED_QUERY: Final = """
SELECT json_extract(checked.payload, '$.event.evidence.accepted')
FROM events AS checked
WHERE checked.run_id = ?1 AND checked.type = 'task.checked'
  AND json_extract(checked.payload, '$.event.evidence.accepted') IS NOT NULL
  AND checked.seq = (
      SELECT MAX(seq) FROM events
      WHERE run_id = checked.run_id AND task_id = checked.task_id AND type = 'task.checked')
"""


def review_task_id(slug: str, scope: ReviewScope) -> str:
    """Return the task id of the rows of a review."""
    return f"{slug}-{scope}-review"


@dataclass(frozen=True)
class LedgerEvidence:
    ledger: Path
    run_id: str

    def count_review(self, slug: str, scope: ReviewScope, round: int, tree: str) -> ReviewTally:
        ((submitted, approving, blocking, critical),) = run_query(
            self.ledger, _REVIEWS_QUERY, (self.run_id, review_task_id(slug, scope), round, tree)
        ).rows
        return ReviewTally(*(int(str(count)) for count in (submitted, approving, blocking, critical)))

    def count_merged_checks(self, tree: str, iteration: int, reported: Sequence[str]) -> CheckTally:
        return CheckTally(
            "the merged tree", tuple(reported), self._read_passed(self.run_id, FINAL_TASK, iteration, tree)
        )

    def count_task_checks(self, gates: Sequence[GateSummary]) -> Iterator[CheckTally]:
        """Yield the evidence of each accepted task; a checkpoint of the user has no checks."""
        for gate in gates:
            for task in gate.tasks:
                if task.state is TaskState.APPROVED and task.attempts:
                    yield self._read_task(gate.run_id, task.id)

    def read_acceptances(self, run_ids: Sequence[str]) -> tuple[Acceptance, ...]:
        """Return what persons accepted for the tasks of these runs of the gate, each once."""
        found: dict[Acceptance, None] = {}
        for run_id in run_ids:
            for (accepted,) in run_query(self.ledger, _ACCEPTED_QUERY, (run_id,)).rows:
                found |= {Acceptance.model_validate(payload): None for payload in json.loads(str(accepted))}
        return tuple(found)

    def _read_task(self, run_id: str, task_id: str) -> CheckTally:
        subject = f"{task_id} of {run_id}"
        rows_found = run_query(self.ledger, _CHECKED_QUERY, (run_id, task_id)).rows
        if not rows_found:
            return CheckTally(subject, (), ())
        attempt, tree, passing = rows_found[0]
        if attempt is None or tree is None:
            raise LedgerError(f"{subject}: the row of its checks names no attempt or no tree")
        rows = self._read_passed(run_id, task_id, int(str(attempt)), str(tree))
        return CheckTally(subject, tuple(json.loads(str(passing))), rows)

    def _read_passed(self, run_id: str, task_id: str, attempt: int, tree: str) -> tuple[str, ...]:
        rows = run_query(self.ledger, _PASSED_QUERY, (run_id, task_id, attempt, tree)).rows
        return tuple(str(name) for (name,) in rows)


_MAX_DIFF_CHARS: Final = 200_000
_RISK_MARKS: Final[dict[Risk, RiskMark]] = {Risk.GREEN: "🟢", Risk.YELLOW: "🟡", Risk.RED: "🔴"}


@dataclass(frozen=True)
class MergedTree:
    """The merged changes of a run, at one of its commits."""

    context: RunContext
    tip: str

    @property
    def tree(self) -> str:
        return self.context.store.git().find_tree(self.tip)

    @property
    def snapshot(self) -> Snapshot:
        return snapshot_of_tree(self.context.store, self.context.base_tree, self.tree)

    def build_diff(self) -> str:
        """Return the diff for agents, without files that may contain secrets."""
        git, patterns = self.context.store.git(), self.context.settings.tools.secret
        hidden = [path.path for path in self.snapshot.change.paths if is_secret_path(path.path, patterns)]
        return render_diff(git, self.context.base_commit, self.tip, hidden, _MAX_DIFF_CHARS)

    def build_patch(self) -> bytes:
        git = self.context.store.git()
        return git.run_output("diff-tree", "-p", "--binary", self.context.base_commit, self.tip)

    def blast_radius(self) -> tuple[BlastRadius, ...]:
        subject = CheckSubject(self.context, CheckRequest(tree=self.snapshot))
        risks = {change.path: change.risk for change in map(assess_risk, build_path_changes(subject.files))}
        return tuple(
            BlastRadius(path=path.path, change=path.kind, risk=_RISK_MARKS[risks.get(path.path, Risk.YELLOW)])
            for path in self.snapshot.change.paths
        )

    def run_checks(
        self,
        plans: Sequence[Plan],
        iteration: int,
        progress: Progress,
        *,
        large: bool,
        accepted: tuple[Acceptance, ...] = (),
    ) -> tuple[FinalChecks, CheckReport]:
        """Run all checks, and every verify command of every task, on the tree that would be committed. With `large`,
        run all tiers, whatever the files are. `accepted` is what persons accepted for the tasks.
        """
        world = _with_all_tiers(self.context) if large else self.context
        scratch = world.scratch / f"final-{iteration}"
        scratch.mkdir(mode=0o700)
        tasks = [task for plan in plans for task in plan.tasks]
        frozen = self.snapshot
        run = CheckRun(
            replace(world, task_id="final", attempt=iteration, scratch=scratch, progress=progress, notes=()),
            CheckRequest(
                tree=frozen,
                verify=tuple(
                    dict.fromkeys(
                        command
                        for task in tasks
                        for command in (*task.verify, *find_commands_of_criteria(task.done, task.verify))
                    )
                ),
                files=tuple(path.path for path in frozen.change.paths),
                accepted=accepted,
            ),
        )
        report = run.run_checks()
        remove_folder(scratch)
        return (
            FinalChecks(
                tree=report.tree,
                passed=report.outcome is Outcome.PASSED and report.tree == frozen.tree,
                reason=report.reason,
                confidence=report.confidence or Confidence.LOW,
                reasons=report.reasons,
                regressions=report.regressions,
                accepted=report.accepted,
            ),
            report,
        )


def _with_all_tiers(world: RunContext) -> RunContext:
    check = world.settings.check.model_copy(update={"large": ("**",)})
    return replace(world, settings=world.settings.model_copy(update={"check": check}))


def to_reviewed_checks(report: CheckReport) -> tuple[CheckSummary, ...]:
    return tuple(CheckSummary(name=check.name, verdict=check.verdict, reason=check.reason) for check in report.checks)


def commit_merged(
    merged: MergedTree, branch: str, message: str, author: CommitIdentity, date: str, *, sign: bool
) -> str:
    """Commit the merged tree onto the base, and publish it only if the branch is where it is expected. Repeating this
    with the same message gives the same commit.
    """
    world = merged.context
    intent = CommitIntent(tree=merged.tree, parent=world.base_commit, message=message, author=author, date=date)
    commit = write_commit(world.store, intent, sign=sign)
    publish_commit(world.store, branch, commit, expected=find_branch_tip(world.repository, branch))
    return commit
