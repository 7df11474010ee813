"""What the ledger holds of a review, of a task and of the merged tree, asked in SQL on a connection that can only read:
by run, task, attempt, round, tree and distinct reviewer or check."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.adapters.ledger.query import query
from proofstone.contracts.gate import TaskState
from proofstone.contracts.pipeline.review import Scope
from proofstone.contracts.pipeline.run import GateSummary
from proofstone.core.pipeline.evidence import CheckTally, ReviewTally
from proofstone.errors import LedgerError

FINAL: Final = "final"
"""The task that the merged tree is checked as."""

_REVIEWS: Final = """
SELECT COUNT(DISTINCT check_name),
       COUNT(DISTINCT CASE WHEN verdict = 'approve' THEN check_name END),
       COUNT(DISTINCT CASE WHEN verdict = 'blocker' THEN check_name END),
       COUNT(DISTINCT CASE WHEN severity = 'critical' THEN check_name END)
FROM checks
WHERE run_id = ?1 AND task_id = ?2 AND phase = 'review' AND round = ?3 AND verdict IS NOT NULL AND tree = ?4
"""
_PASSED: Final = """
SELECT DISTINCT check_name FROM checks
WHERE run_id = ?1 AND task_id = ?2 AND attempt = ?3 AND phase = 'after' AND passed = 1 AND tree = ?4
"""
_CHECKED: Final = """
SELECT json_extract(started.payload, '$.event.attempt'), json_extract(checked.payload, '$.event.evidence.tree'),
       json_extract(checked.payload, '$.event.evidence.passing')
FROM events AS checked
JOIN events AS started ON started.seq = (
    SELECT MAX(seq) FROM events
    WHERE run_id = ?1 AND task_id = ?2 AND type = 'task.started' AND seq < checked.seq)
WHERE checked.run_id = ?1 AND checked.task_id = ?2 AND checked.type = 'task.checked'
ORDER BY checked.seq DESC LIMIT 1
"""


def review_task(slug: str, scope: Scope) -> str:
    """What the rows of a review are about."""
    return f"{slug}-{scope}-review"


@dataclass(frozen=True)
class LedgerEvidence:
    ledger: Path
    run_id: str

    def of_review(self, slug: str, scope: Scope, round: int, tree: str) -> ReviewTally:
        ((submitted, approving, blocking, critical),) = query(
            self.ledger, _REVIEWS, (self.run_id, review_task(slug, scope), round, tree)
        ).rows
        return ReviewTally(*(int(str(count)) for count in (submitted, approving, blocking, critical)))

    def of_merged(self, tree: str, iteration: int, said: Sequence[str]) -> CheckTally:
        return CheckTally("the merged tree", tuple(said), self._passed(self.run_id, FINAL, iteration, tree))

    def of_tasks(self, gates: Sequence[GateSummary]) -> Iterator[CheckTally]:
        """Of each task that the task gate has accepted; a person's checkpoint is checked by nobody."""
        for gate in gates:
            for task in gate.tasks:
                if task.state is TaskState.APPROVED and task.attempts:
                    yield self._of_task(gate.run_id, task.id)

    def _of_task(self, run_id: str, task_id: str) -> CheckTally:
        about = f"{task_id} of {run_id}"
        found = query(self.ledger, _CHECKED, (run_id, task_id)).rows
        if not found:
            return CheckTally(about, (), ())
        attempt, tree, passing = found[0]
        if attempt is None or tree is None:
            raise LedgerError(f"{about}: the row of its checks does not say what they were about")
        rows = self._passed(run_id, task_id, int(str(attempt)), str(tree))
        return CheckTally(about, tuple(json.loads(str(passing))), rows)

    def _passed(self, run_id: str, task_id: str, attempt: int, tree: str) -> tuple[str, ...]:
        found = query(self.ledger, _PASSED, (run_id, task_id, attempt, tree)).rows
        return tuple(str(name) for (name,) in found)
