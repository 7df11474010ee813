"""The checks of one attempt, on the very tree that may be committed: merged onto where the branch is now.

A task whose base has moved is thereby checked on the merged tree before anything else happens to it.

Where the run's branch is: what the next commit follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from proofstone.agents.roles.models.gate import CLAIM_MISMATCH, ExecutorResult, Failure, FailureType, Reason
from proofstone.check.context import CheckRequest
from proofstone.check.models import CheckReport
from proofstone.check.rules.file_requests import granted
from proofstone.check.run import CheckRun
from proofstone.common.models import ChangeKind, Finding
from proofstone.errors import RepositoryError
from proofstone.faults import fault_point
from proofstone.gate.context import GateWorld, Journal
from proofstone.gate.models import AttemptFailed, Checked, Evidence, GateSetup, TaskRecord
from proofstone.gate.rules import passing as architect_rules
from proofstone.gate.rules.answers import message
from proofstone.gate.rules.machine import starts_clean
from proofstone.gate.rules.passing import evidence_of, failure_type, unmet_by_checks
from proofstone.git.commit import Identity, Intent, position, ref_of, write_commit
from proofstone.git.merge import Conflict, Merged, merge
from proofstone.git.repository import Repository
from proofstone.git.snapshot import Snapshot, of_tree
from proofstone.git.store import hold
from proofstone.machine.files import remove
from proofstone.plans.models import PlanTask

_MOST_CONFLICTS = 5


@dataclass
class Checking:
    gate: GateWorld
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def check(
        self, task: PlanTask, record: TaskRecord, onto: str, findings: Sequence[Finding]
    ) -> Checked | AttemptFailed:
        """`onto`: the commit that it would follow. `findings`: what freezing the work tree has shown."""
        if record.claim is None or record.tree is None or record.base_commit is None:
            raise AssertionError(f"{record.id} has nothing to check")
        fault_point("gate.before-check")
        merged = merge(self.gate.world.store, base_commit=record.base_commit, tip=onto, tree=record.tree)
        if not isinstance(merged, Merged):
            return _conflicting(record, merged, onto)
        event = self._checked(task, record, record.claim, onto, merged.tree, findings)
        fault_point("gate.after-check")
        return event

    def _checked(
        self,
        task: PlanTask,
        record: TaskRecord,
        claim: ExecutorResult,
        onto: str,
        tree: str,
        findings: Sequence[Finding],
    ) -> Checked | AttemptFailed:
        gate = self.gate
        scratch = gate.world.scratch / f"checks-{next(self._numbers)}"
        world = gate.at(onto, task.id, record.attempt, scratch)
        frozen = of_tree(world.store, world.base_tree, tree, findings)
        allowed = _allowed(task, claim, frozen)
        request = CheckRequest(
            tree=frozen,
            verify=task.verify,
            must_pass=task.must_pass,
            files=(*task.files, *allowed),
            heldout=task.heldout,
            heldout_files=Path(held) if task.heldout and (held := gate.setup.heldout_files) else None,
            verify_seconds=gate.verify_seconds(record),
            flaky_allowed=task.flaky_allowed,
            accept_test_changes=task.test_changes,
        )
        run = CheckRun(world, request)
        report = run.checked()
        remove(scratch)
        evidence = evidence_of(
            task,
            claim,
            report,
            present=_present(frozen),
            touched=_touched(frozen),
            large=run.is_large,
            allowed=allowed,
            continued=not starts_clean(record.attempt) or gate.setup.hooks == "run",
        )
        unmet = unmet_by_checks(evidence)
        if unmet:
            return _refused(record, task, report, unmet, evidence)
        rules = architect_rules.review(task, evidence, report.findings, deleted=_deleted(frozen))
        return Checked(evidence=evidence, commit=self._commit(task, onto, report), rules=rules)

    def _commit(self, task: PlanTask, onto: str, report: CheckReport) -> str:
        """The commit that will be published if it is approved. No branch names it yet."""
        setup = self.gate.setup
        intent = Intent(
            tree=report.tree,
            parent=onto,
            message=message(self.gate.plan, task, report.changed, run_id=self.gate.world.run_id),
            author=Identity(setup.author_name, setup.author_email),
            date=f"{int(datetime.now(UTC).timestamp())} +0000",
        )
        commit = write_commit(self.gate.world.store, intent, sign=setup.sign)
        hold(self.gate.world.store, self.gate.world.run_id, task.id, commit)
        return commit


def _allowed(task: PlanTask, claim: ExecutorResult, frozen: Snapshot) -> tuple[str, ...]:
    """Files beyond the declared ones that it asked for: they are files, and an `__init__.py` is a new one."""
    kinds = {path.path: path.kind for path in frozen.change.paths}
    wanted = granted(claim.files_requested, task.files)
    new = [path for path in wanted if kinds.get(path) is ChangeKind.ADDED]
    return tuple(new) + tuple(
        path for path in wanted if kinds.get(path) is ChangeKind.MODIFIED and not path.endswith("__init__.py")
    )


def _present(frozen: Snapshot) -> list[str]:
    return [path.path for path in frozen.change.paths if path.kind is not ChangeKind.DELETED]


def _touched(frozen: Snapshot) -> list[str]:
    return [path.path for path in frozen.change.paths]


def _deleted(frozen: Snapshot) -> list[str]:
    return [path.path for path in frozen.change.paths if path.kind is ChangeKind.DELETED]


def _refused(
    record: TaskRecord,
    task: PlanTask,
    report: CheckReport,
    unmet: Sequence[Reason],
    evidence: Evidence,
) -> AttemptFailed:
    lies = tuple(Reason(check=CLAIM_MISMATCH, layer="gate", detail=detail) for detail in evidence.mismatches)
    failure = Failure(
        attempt=record.attempt,
        type=failure_type(report, task),
        error=unmet[0].detail,
        reasons=(*unmet, *lies),
        passed=evidence.passing,
    )
    return AttemptFailed(failure=failure, tree=record.tree, claim=record.claim)


def _conflicting(record: TaskRecord, conflicts: Sequence[Conflict], onto: str) -> AttemptFailed:
    """Named, with both sides: nothing is lost, and the next attempt starts from where the branch is."""
    reasons = tuple(
        Reason(
            check="merge-conflict",
            layer="gate",
            detail=f"{item.path} ({item.kind}): on the branch\n{item.ours}\nin this task\n{item.theirs}",
        )
        for item in conflicts[:_MOST_CONFLICTS]
    )
    names = ", ".join(conflict.path for conflict in conflicts[:_MOST_CONFLICTS])
    error = f"it conflicts with what was committed meanwhile ({onto[:12]}) in {names}"
    failure = Failure(attempt=record.attempt, type=FailureType.VERIFY_FAILURE, error=error, reasons=reasons)
    return AttemptFailed(failure=failure, tree=record.tree, claim=record.claim)


class Tip(NamedTuple):
    commit: str
    """What the next commit follows."""
    position: str | None
    """Where the branch is: not there yet, or an older one of the same name with nothing of its own, before the first
    commit of the run."""


def tip_of(repository: Repository, setup: GateSetup, journal: Journal) -> Tip:
    """The branch's last commit, also if a person added some; the run's base where nothing was committed yet."""
    found = position(repository, setup.branch)
    ours = _last_commit(journal) or setup.base_commit
    if found is not None and (found == ours or _is_ancestor(repository, ours, found)):
        return Tip(found, found)
    if ours == setup.base_commit and (found is None or _is_ancestor(repository, found, ours)):
        return Tip(ours, found)
    raise RepositoryError(
        f"the branch {setup.branch} does not hold {ours[:12]} any more, which this run has committed to it",
        hint=f"bring it back: git branch --force {setup.branch} {ours[:12]}",
    )


def added_by_others(repository: Repository, setup: GateSetup, journal: Journal) -> tuple[str, ...]:
    """Commits on the branch, since the run's base, that the run did not make and that stand for no task yet."""
    if position(repository, setup.branch) is None:
        return ()
    listed = repository.git.line("rev-list", ref_of(setup.branch), "--not", setup.base_commit).splitlines()
    known = {commit for record in journal.records.values() for commit in (record.commit, record.settled_by)}
    return tuple(commit for commit in listed if commit not in known)


def _last_commit(journal: Journal) -> str | None:
    committed = [(step.seq, id) for id, steps in journal.steps.items() for step in steps if step.kind == "committed"]
    return journal.records[max(committed)[1]].commit if committed else None


def _is_ancestor(repository: Repository, older: str, newer: str) -> bool:
    return repository.git.run("merge-base", "--is-ancestor", older, newer, accept=range(256)).returncode == 0
