"""Compare an attempt with the base of the plan, if earlier tasks edited what decides the expectations of tests.

Each task is checked against the commit before it. So one task could edit a test while nothing breaks yet, and the next
one could break what that test no longer notices. Therefore the base's oracle is also run on the attempt as it was when
the plan began. What a person accepted for an earlier task holds for the files that this task changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.agents.roles.models.gate import FailureReason
from proofstone.check.context import CheckRequest, RunContext
from proofstone.check.rules.acceptance import is_serious
from proofstone.check.run import CheckRun
from proofstone.check.subject import CheckSubject
from proofstone.common.models import Acceptance
from proofstone.gate.context import GateContext
from proofstone.git.snapshot import snapshot_of_tree
from proofstone.machine.files import remove_folder
from proofstone.plans.models import PlanTask

_RULES: Final = frozenset(("edited-expectation", "edited-check", "old-tests-unrunnable"))


@dataclass(frozen=True)
class PlanBaseCheck:
    """Compares an attempt with the commit at which the plan began."""

    gate: GateContext

    def examine(
        self,
        task: PlanTask,
        attempt: int,
        onto: str,
        tree: str,
        verify: Sequence[str],
        accepted: Sequence[Acceptance],
        scratch: Path,
    ) -> tuple[FailureReason, ...]:
        """Return why the attempt, whose tree this is, does not meet what the plan's base expects. Nothing runs unless
        a task before it edited an expectation."""
        base = self.gate.setup.base_commit
        if onto == base:
            return ()
        world = self.gate.context_at(base, f"{task.id}-plan-base", attempt, scratch)
        try:
            if not self._is_oracle_edited(world, onto, verify):
                return ()
            return self._run(world, tree, verify, (*accepted, *self._list_earlier(task.id)))
        finally:
            remove_folder(scratch)

    def _is_oracle_edited(self, world: RunContext, onto: str, verify: Sequence[str]) -> bool:
        """Return whether the tasks before this one edited what decides the expectations of the base's tests."""
        earlier = snapshot_of_tree(world.store, world.base_tree, world.store.git().find_tree(onto))
        return bool(CheckSubject(world, CheckRequest(tree=earlier, verify=tuple(verify))).oracle.find())

    def _run(
        self, world: RunContext, tree: str, verify: Sequence[str], accepted: Sequence[Acceptance]
    ) -> tuple[FailureReason, ...]:
        request = CheckRequest(
            tree=snapshot_of_tree(world.store, world.base_tree, tree),
            verify=tuple(verify),
            accepted=tuple(accepted),
            expectations_only=True,
        )
        report = CheckRun(world, request).run_checks()
        return tuple(
            FailureReason(
                check=finding.rule,
                layer=finding.layer,
                detail=f"compared with the base of the plan ({world.base_commit[:12]}), because an earlier task edited "
                f"what tests expect: {finding.detail}",
                artifact=finding.artifact,
            )
            for finding in report.findings
            if finding.rule in _RULES and is_serious(finding)
        )

    def _list_earlier(self, task_id: str) -> Iterator[Acceptance]:
        """Yield what persons accepted for other tasks, for the files that those tasks changed."""
        git = self.gate.context.store.git()
        for record in self.gate.journal.records.values():
            accepted = record.evidence.accepted if record.evidence is not None else ()
            if record.id == task_id or record.commit is None or not accepted:
                continue
            trees = (git.find_tree(f"{record.commit}^"), git.find_tree(record.commit))
            changed = snapshot_of_tree(self.gate.context.store, *trees).change.paths
            for acceptance in accepted:
                if acceptance.subject:
                    yield acceptance
                    continue
                for path in changed:
                    yield acceptance.model_copy(update={"subject": path.path})
