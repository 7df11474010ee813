"""The merged tree of a run: shown as a diff, checked as a whole, and committed as it was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from proofstone.adapters.git.commit import Identity, Intent, position, publish, write_commit
from proofstone.adapters.git.shown_diff import shown_diff
from proofstone.adapters.git.snapshot import Snapshot, of_tree
from proofstone.adapters.scratch import remove
from proofstone.contracts.gate import ReviewedCheck
from proofstone.contracts.pipeline.part import RiskMark
from proofstone.contracts.pipeline.run import BlastRadius, FinalChecks
from proofstone.contracts.plan import Plan
from proofstone.contracts.report import CheckReport
from proofstone.contracts.verdict import Outcome
from proofstone.core.agent.secret_files import is_secret
from proofstone.core.risk import Risk, risk_of
from proofstone.engine.check_run import CheckRun
from proofstone.engine.inspection import path_changes
from proofstone.engine.progress import Progress
from proofstone.engine.subject import Subject
from proofstone.engine.world import CheckRequest, World

_MOST_DIFF: Final = 200_000
_MARKS: Final[dict[Risk, RiskMark]] = {Risk.GREEN: "🟢", Risk.YELLOW: "🟡", Risk.RED: "🔴"}


@dataclass(frozen=True)
class Merged:
    """What a run has made of its base, at one commit of its own."""

    world: World
    tip: str

    @property
    def tree(self) -> str:
        return self.world.store.git().tree_of(self.tip)

    @property
    def snapshot(self) -> Snapshot:
        return of_tree(self.world.store, self.world.base_tree, self.tree)

    def diff(self) -> str:
        """For agents: what may hold secrets is not shown."""
        git, more = self.world.store.git(), self.world.settings.tools.secret
        hidden = [path.path for path in self.snapshot.change.paths if is_secret(path.path, more)]
        return shown_diff(git, self.world.base_commit, self.tip, hidden, _MOST_DIFF)

    def patch(self) -> bytes:
        git = self.world.store.git()
        return git.out("diff-tree", "-p", "--binary", self.world.base_commit, self.tip)

    def blast_radius(self) -> tuple[BlastRadius, ...]:
        subject = Subject(self.world, CheckRequest(tree=self.snapshot))
        risks = {one.path: one.risk for one in map(risk_of, path_changes(subject.files))}
        return tuple(
            BlastRadius(path=one.path, change=one.kind, risk=_MARKS[risks.get(one.path, Risk.YELLOW)])
            for one in self.snapshot.change.paths
        )

    def checked(
        self, plans: Sequence[Plan], iteration: int, progress: Progress, *, large: bool
    ) -> tuple[FinalChecks, CheckReport]:
        """The whole cascade, and every verify command of every task, on the tree that would be committed. `large`: to
        the last tier, whatever its files are."""
        world = _with_all_large(self.world) if large else self.world
        scratch = world.scratch / f"final-{iteration}"
        scratch.mkdir(mode=0o700)
        tasks = [task for plan in plans for task in plan.tasks]
        frozen = self.snapshot
        run = CheckRun(
            replace(world, task_id="final", attempt=iteration, scratch=scratch, progress=progress, notes=()),
            CheckRequest(
                tree=frozen,
                verify=tuple(dict.fromkeys(command for task in tasks for command in task.verify)),
                files=tuple(path.path for path in frozen.change.paths),
                accept_test_changes="; ".join(dict.fromkeys(task.test_changes for task in tasks if task.test_changes)),
            ),
        )
        report = run.checked()
        remove(scratch)
        return (
            FinalChecks(
                tree=report.tree,
                passed=report.outcome is Outcome.PASSED and report.tree == frozen.tree,
                reason=report.reason,
                confidence=report.confidence,
                raises=report.caps,
                regressions=report.regressions,
            ),
            report,
        )


def _with_all_large(world: World) -> World:
    check = world.settings.check.model_copy(update={"large": ("**",)})
    return replace(world, settings=world.settings.model_copy(update={"check": check}))


def reviewed(report: CheckReport) -> tuple[ReviewedCheck, ...]:
    return tuple(ReviewedCheck(name=one.name, verdict=one.verdict, reason=one.reason) for one in report.checks)


def committed(merged: Merged, branch: str, message: str, author: Identity, date: str, *, sign: bool) -> str:
    """One commit of the merged tree, onto the base; published where the branch is expected, or not at all. Said again
    with the same words it is the same commit."""
    world = merged.world
    intent = Intent(tree=merged.tree, parent=world.base_commit, message=message, author=author, date=date)
    commit = write_commit(world.store, intent, sign=sign)
    publish(world.store, branch, commit, expected=position(world.repository, branch))
    return commit
