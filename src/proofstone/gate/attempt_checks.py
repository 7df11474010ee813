"""Check an attempt on the exact tree that may be committed: merged onto the current tip of the branch.

If the branch has moved since the task began, the merged tree is checked. The module also finds the tip of the run's
branch, which the next commit follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from proofstone.agents.roles.models.gate import (
    CLAIM_MISMATCH,
    AttemptFailure,
    ExecutorResult,
    FailureReason,
    FailureType,
)
from proofstone.check.context import CheckRequest
from proofstone.check.models import CheckReport
from proofstone.check.rules.acceptance import build_acceptances, expand_test_changes
from proofstone.check.rules.file_requests import grant_files
from proofstone.check.rules.protected import find_roles
from proofstone.check.run import CheckRun
from proofstone.common.models import Acceptance, AcceptanceMethod, ChangeKind, Finding, Phase, Verdict
from proofstone.common.risk import PathChange, Risk, assess_risk
from proofstone.errors import RepositoryError
from proofstone.faults import fault_point
from proofstone.gate.context import GateContext, GateJournal
from proofstone.gate.models import AttemptChecked, AttemptFailed, Evidence, GateSetup, TaskRecord
from proofstone.gate.plan_base import PlanBaseCheck
from proofstone.gate.rules import pass_rule
from proofstone.gate.rules.criterion_commands import find_commands_of_criteria
from proofstone.gate.rules.judgements import list_added_files
from proofstone.gate.rules.pass_rule import build_evidence, classify_failure, find_missing_tool, find_unmet_by_checks
from proofstone.gate.rules.questions import build_task_message
from proofstone.gate.rules.state_machine import starts_clean
from proofstone.git.commit import CommitIdentity, CommitIntent, find_branch_tip, to_ref, write_commit
from proofstone.git.merge import CleanMerge, MergeConflict, merge_trees
from proofstone.git.objects import read_files_at
from proofstone.git.repository import Repository
from proofstone.git.snapshot import Snapshot, snapshot_of_tree
from proofstone.git.store import pin
from proofstone.ledger.models import CheckRow
from proofstone.machine.files import remove_folder
from proofstone.plans.models import PlanTask

_MAX_CONFLICTS = 5


@dataclass
class AttemptChecker:
    """Runs the checks of attempts."""

    gate: GateContext
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def check(
        self, task: PlanTask, record: TaskRecord, onto: str, findings: Sequence[Finding]
    ) -> AttemptChecked | AttemptFailed:
        """Check the attempt on top of the commit `onto`. `findings` are those of freezing the work tree."""
        if record.claim is None or record.tree is None or record.base_commit is None:
            raise AssertionError(f"{record.id} has nothing to check")
        fault_point("gate.before-check")
        merged = merge_trees(self.gate.context.store, base_commit=record.base_commit, tip=onto, tree=record.tree)
        if not isinstance(merged, CleanMerge):
            return _build_conflict_failure(record, merged, onto)
        event = self._check_tree(task, record, record.claim, onto, merged.tree, findings)
        fault_point("gate.after-check")
        return event

    def _check_tree(
        self,
        task: PlanTask,
        record: TaskRecord,
        claim: ExecutorResult,
        onto: str,
        tree: str,
        findings: Sequence[Finding],
    ) -> AttemptChecked | AttemptFailed:
        gate = self.gate
        scratch = gate.context.scratch / f"checks-{next(self._numbers)}"
        world = gate.context_at(onto, task.id, record.attempt, scratch)
        frozen = snapshot_of_tree(world.store, world.base_tree, tree, findings)
        allowed = _find_allowed_files(task, claim, frozen)
        verify = (*task.verify, *find_commands_of_criteria(task.done, task.verify))
        accepted = (*record.accepted, *_accept_declared_changes(gate, task))
        request = CheckRequest(
            tree=frozen,
            verify=verify,
            must_pass=task.must_pass,
            files=(*task.files, *allowed),
            heldout=task.heldout,
            heldout_files=Path(folder) if task.heldout and (folder := gate.setup.heldout_files) else None,
            verify_seconds=gate.verify_seconds(record),
            flaky_allowed=task.flaky_allowed,
            accepted=accepted,
        )
        run = CheckRun(world, request)
        unstable = self._find_earlier_failures(task.id, run.subject.snapshot.tree)
        report = run.run_checks()
        remove_folder(scratch)
        evidence = build_evidence(
            task,
            claim,
            report,
            present=_present_paths(frozen),
            touched=_touched_paths(frozen),
            large=run.is_large,
            allowed=allowed,
            added=list_added_files(task.id, gate.journal.amendments),
            unstable=unstable,
            continued=not starts_clean(record.attempt) or gate.setup.hooks == "run",
        )
        unmet = find_unmet_by_checks(evidence) or PlanBaseCheck(gate).examine(
            task, record.attempt, onto, report.tree, verify, accepted, scratch
        )
        if unmet:
            return _build_failure(record, task, report, unmet, evidence)
        rules = pass_rule.review_evidence(task, evidence, report.findings, deleted=_deleted_paths(frozen))
        return AttemptChecked(evidence=evidence, commit=self._write_candidate(task, onto, report), rules=rules)

    def _find_earlier_failures(self, task_id: str, tree: str) -> dict[str, str]:
        """Return the checks that failed on this very tree in an earlier attempt, with a sentence about each.

        A failure from before a person's retry or acceptance does not count: the person may have repaired the machine
        since, or has accepted the finding that failed it.
        """
        since = self.gate.journal.find_last_human_decision(task_id)
        rows = self.gate.context.ledger.read(
            CheckRow, run_id=self.gate.context.run_id, task_id=task_id, tree=tree, after=since
        )
        return {
            stored.row.check_name: f"{stored.row.check_name} failed on this very tree in attempt {stored.row.attempt} "
            "and passes now: it is flaky, so its pass proves nothing"
            for stored in rows
            if stored.row.phase is Phase.AFTER and stored.row.state is Verdict.FAIL
        }

    def _write_candidate(self, task: PlanTask, onto: str, report: CheckReport) -> str:
        """Write the commit that will be published if it is approved. No branch refers to it yet."""
        setup = self.gate.setup
        intent = CommitIntent(
            tree=report.tree,
            parent=onto,
            message=build_task_message(
                self.gate.plan, task, report.changed, run_id=self.gate.context.run_id, accepted=report.accepted
            ),
            author=CommitIdentity(setup.author_name, setup.author_email),
            date=f"{int(datetime.now(UTC).timestamp())} +0000",
        )
        commit = write_commit(self.gate.context.store, intent, sign=setup.sign)
        pin(self.gate.context.store, self.gate.context.run_id, task.id, commit)
        return commit


def _accept_declared_changes(gate: GateContext, task: PlanTask) -> tuple[Acceptance, ...]:
    """Return what the plan accepts by the attribute `test-changes`. It counts as a setting of the base, so only if the
    base holds exactly this plan: what an agent planned in this run accepts nothing."""
    root, setup = gate.context.repository.root, gate.setup
    if not task.test_changes or not gate.plan_file.is_relative_to(root):
        return ()
    path = str(gate.plan_file.relative_to(root))
    committed = read_files_at(gate.context.repository.git, setup.base_commit, (path,)).get(path)
    if committed is None or committed != gate.context.artifacts.read(setup.plan_artifact):
        return ()
    source = f"{path} at {setup.base_commit[:12]}"
    return build_acceptances(expand_test_changes(task.test_changes), source, AcceptanceMethod.SETTING)


def _find_allowed_files(task: PlanTask, claim: ExecutorResult, frozen: Snapshot) -> tuple[str, ...]:
    """Return the undeclared files that the executor asked for and may change. An `__init__.py`, a protected file and a
    🔴 file must be new: what exists already is the plan author's to declare.
    """
    kinds = {path.path: path.kind for path in frozen.change.paths}
    granted_paths = grant_files(claim.files_requested, task.files)
    new = [path for path in granted_paths if kinds.get(path) is ChangeKind.ADDED]
    return tuple(new) + tuple(
        path for path in granted_paths if kinds.get(path) is ChangeKind.MODIFIED and not _must_be_declared(path)
    )


def _must_be_declared(path: str) -> bool:
    is_red = assess_risk(PathChange(path=path, kind=ChangeKind.MODIFIED)).risk is Risk.RED
    return path.endswith("__init__.py") or is_red or bool(find_roles(path))


def _present_paths(frozen: Snapshot) -> list[str]:
    return [path.path for path in frozen.change.paths if path.kind is not ChangeKind.DELETED]


def _touched_paths(frozen: Snapshot) -> list[str]:
    return [path.path for path in frozen.change.paths]


def _deleted_paths(frozen: Snapshot) -> list[str]:
    return [path.path for path in frozen.change.paths if path.kind is ChangeKind.DELETED]


def _build_failure(
    record: TaskRecord,
    task: PlanTask,
    report: CheckReport,
    unmet: Sequence[FailureReason],
    evidence: Evidence,
) -> AttemptFailed:
    mismatches = tuple(
        FailureReason(check=CLAIM_MISMATCH, layer="gate", detail=detail) for detail in evidence.mismatches
    )
    failure = AttemptFailure(
        attempt=record.attempt,
        type=classify_failure(report, task),
        error=unmet[0].detail,
        reasons=(*unmet, *mismatches),
        passed=evidence.passing,
        missing_program=find_missing_tool(evidence.verify),
    )
    return AttemptFailed(failure=failure, tree=record.tree, claim=record.claim, evidence=evidence)


def _build_conflict_failure(record: TaskRecord, conflicts: Sequence[MergeConflict], onto: str) -> AttemptFailed:
    """Name the conflicts with both sides, so that nothing is lost. The next attempt starts from the branch."""
    reasons = tuple(
        FailureReason(
            check="merge-conflict",
            layer="gate",
            detail=f"{conflict.path} ({conflict.kind}): on the branch\n{conflict.ours}\n"
            f"in this task\n{conflict.theirs}",
        )
        for conflict in conflicts[:_MAX_CONFLICTS]
    )
    names = ", ".join(conflict.path for conflict in conflicts[:_MAX_CONFLICTS])
    error = f"it conflicts with the latest commits ({onto[:12]}) in {names}"
    failure = AttemptFailure(attempt=record.attempt, type=FailureType.VERIFY_FAILURE, error=error, reasons=reasons)
    return AttemptFailed(failure=failure, tree=record.tree, claim=record.claim)


class BranchTip(NamedTuple):
    """The tip of the run's branch."""

    commit: str
    """The parent of the next commit."""
    position: str | None
    """Where the branch is. Before the first commit of the run, it may not exist, or be an older branch of the same name
    without commits of its own.
    """


def find_run_tip(repository: Repository, setup: GateSetup, journal: GateJournal) -> BranchTip:
    """Return the last commit of the branch, even if a person added it; the run's base if nothing was committed yet."""
    branch_position = find_branch_tip(repository, setup.branch)
    last_commit = _last_commit(journal) or setup.base_commit
    if branch_position is not None and (
        branch_position == last_commit or _is_ancestor(repository, last_commit, branch_position)
    ):
        return BranchTip(branch_position, branch_position)
    if last_commit == setup.base_commit and (
        branch_position is None or _is_ancestor(repository, branch_position, last_commit)
    ):
        return BranchTip(last_commit, branch_position)
    raise RepositoryError(
        f"the branch {setup.branch} no longer contains {last_commit[:12]}, which this run committed to it",
        hint=f"restore it: git branch --force {setup.branch} {last_commit[:12]}",
    )


def find_foreign_commits(repository: Repository, setup: GateSetup, journal: GateJournal) -> tuple[str, ...]:
    """Return commits on the branch since the run's base that the run did not make and that replace no task yet."""
    if find_branch_tip(repository, setup.branch) is None:
        return ()
    listed = repository.git.run_line("rev-list", to_ref(setup.branch), "--not", setup.base_commit).splitlines()
    known = {commit for record in journal.records.values() for commit in (record.commit, record.settled_by)}
    return tuple(commit for commit in listed if commit not in known)


def _last_commit(journal: GateJournal) -> str | None:
    committed = [(step.seq, id) for id, steps in journal.steps.items() for step in steps if step.kind == "committed"]
    return journal.records[max(committed)[1]].commit if committed else None


def _is_ancestor(repository: Repository, older: str, newer: str) -> bool:
    return repository.git.run("merge-base", "--is-ancestor", older, newer, accept=range(256)).returncode == 0
