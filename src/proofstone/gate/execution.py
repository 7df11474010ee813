"""Execute an attempt: create a private work tree, run the executor in it, and freeze the result.

The executor's report is a claim; the event that this module returns is what Proofstone observed.

The repository's own pre-commit hook runs in the sandbox, before the checks, in a separate work tree made from the
frozen tree. So nothing that the executor did to its `.git` reaches the hook. The hook's edits become part of the work.
If the hook refuses, the attempt has failed a check.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from proofstone.agents.executors.context import ExecutionContext, ExecutionOutcome, SandboxedShell, ShellCommand
from proofstone.agents.executors.people import HumanExecutor
from proofstone.agents.gate_agents import AgentExecutor
from proofstone.agents.roles.models.gate import (
    CLAIM_MISMATCH,
    AttemptFailure,
    ExecutorResult,
    ExecutorStatus,
    FailureReason,
    FailureType,
)
from proofstone.agents.sandbox_shell import WorkShellSetup, build_work_shell, find_sandbox_root, find_secret_files
from proofstone.check.rules.disputes import describe_disputes
from proofstone.common.models import Assurance, Verdict, VerdictDispute
from proofstone.config.backends import is_coding_agent
from proofstone.errors import RepositoryError
from proofstone.faults import fault_point
from proofstone.gate.context import GateContext
from proofstone.gate.models import AttemptExecuted, AttemptFailed, TaskBlocked, TaskRecord
from proofstone.gate.rules.assignment import build_assignment
from proofstone.git.pending_commit import find_commit_hooks
from proofstone.git.snapshot import Snapshot
from proofstone.git.store import pin
from proofstone.git.user_hooks import find_user_hook
from proofstone.git.work_tree import (
    WorkTree,
    create_work_tree,
    find_oversized_file,
    freeze_work_tree,
    open_work_tree,
    remove_work_tree,
)
from proofstone.ledger.artifacts import ArtifactWriter
from proofstone.plans.models import PlanTask
from proofstone.sandbox.job import BindMount
from proofstone.supervision.view import WorkTreeChanges

_HOOK: Final = "pre-commit"


def run_commit_hook(
    execution: AttemptRunner, record: TaskRecord, frozen: Snapshot, scratch: Path
) -> tuple[Snapshot, FailureReason | None]:
    """Return the work as the hook left it, and the reason if the hook refuses it."""
    world = execution.gate.context
    hooks = find_commit_hooks(world.repository)
    program = find_user_hook(hooks.folder, _HOOK) if hooks.folder else None
    if program is None or hooks.folder is None:
        return frozen, None
    root = world.repository.root
    is_in_tree = program.is_relative_to(root) and not program.is_relative_to(world.repository.common_dir)
    place = create_work_tree(
        world.store,
        scratch / "hooks",
        base_commit=str(record.base_commit),
        tree=frozen.tree,
        sandboxed=world.sandbox.level is Assurance.BUBBLEWRAP,
    )
    with world.artifacts.open_writer(world.settings.limits.output_mb << 20) as writer:
        shell = execution.open_shell(record, place, scratch, writer)
        hook_files = (
            tuple(BindMount(file, file) for file in hooks.folder.rglob("*") if file.is_file()) if is_in_tree else ()
        )
        shell = replace(shell, view=replace(shell.view, includes=(*shell.view.includes, *hook_files)))
        result = shell(_make_hook_job(program, program.relative_to(root) if is_in_tree else None))
        output = writer.finish()
    world.ledger.append(output.to_row())
    after = freeze_work_tree(world.store, place, frozen.base)
    remove_work_tree(place.folder)
    if result.exit_code == 0:
        return after, None
    ending = (
        f"exit code {result.exit_code}"
        if result.exit_code is not None
        else result.limit or result.setup_error or "no end"
    )
    return frozen, _make_refusal(f"the repository's {_HOOK} hook refused it ({ending})", output.hash)


def _make_hook_job(program: Path, inside: Path | None) -> ShellCommand:
    """Build the job that runs the hook on the staged files, as at a commit.

    If the hook is in the work tree, it runs from there, because it may need its neighbours. The person's own files are
    mounted over it, because the executor may have edited them. If the hook is in the person's `.git`, it is passed in.
    """
    if inside is not None:
        return ShellCommand(command=f"git add --all && exec {shlex.quote(f'./{inside}')}")
    return ShellCommand(command='git add --all && exec "$PROOFSTONE_HOOK"', reads={"PROOFSTONE_HOOK": program})


def _make_refusal(detail: str, artifact: str | None) -> FailureReason:
    return FailureReason(check=f"hook:{_HOOK}", layer="cascade", verdict=Verdict.FAIL, detail=detail, artifact=artifact)


def locate_work_folder(home: Path, run_id: str, task_id: str) -> Path:
    """Return the folder of a task's private work tree. The folder survives a crash of the process."""
    return home / "work" / run_id / task_id


DRIFT_CHECK: Final = "continuity"
"""The check that fails if an agent was stopped in the middle of its work."""


class AttemptStoppedError(Exception):
    """The run is being stopped. The attempt will be repeated."""


@dataclass
class AttemptRunner:
    """Runs executors."""

    gate: GateContext
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def is_by_person(self) -> bool:
        """Whether a person executes the tasks."""
        return isinstance(self.gate.executor, HumanExecutor)

    def prepare_work_tree(self, record: TaskRecord) -> None:
        """Create the work tree for a person who will work in it later."""
        self._open_work_tree(record)

    def run_attempt(self, task: PlanTask, record: TaskRecord) -> AttemptExecuted | AttemptFailed | TaskBlocked:
        """Run the attempt that the record says has begun, from its start."""
        fault_point("gate.before-execute")
        place = self._open_work_tree(record)
        try:
            scratch = self.gate.context.scratch / f"attempt-{next(self._numbers)}"
            base = self.gate.context_at(str(record.base_commit), task.id, record.attempt, scratch)
            with self.gate.lock_terminal(self.is_by_person):
                ran, artifact = self._run_executor(task, record, place, scratch, base.base_tree)
            fault_point("gate.after-execute")
            if ran.cancelled or self.gate.context.cancel.is_set():
                raise AttemptStoppedError
            event = self._judge_result(task, record, place, ran, artifact, base.base_tree, scratch)
            if event.tree is not None:
                pin(self.gate.context.store, self.gate.context.run_id, f"{task.id}-tree", event.tree)
            fault_point("gate.after-freeze")
        finally:
            if not self.is_by_person:
                remove_work_tree(place.folder)
        return event

    def clear_work_tree(self, task_id: str) -> None:
        """Remove a person's work tree, whose content is recorded now."""
        remove_work_tree(self._folder(task_id))

    def _folder(self, task_id: str) -> Path:
        return locate_work_folder(self.gate.context.home, self.gate.context.run_id, task_id)

    def _open_work_tree(self, record: TaskRecord) -> WorkTree:
        """Create a work tree, or open the one in which a person already works."""
        store, folder = self.gate.context.store, self._folder(record.id)
        if self.is_by_person:
            existing = open_work_tree(store, folder)
            if existing is not None and existing.base_commit == record.base_commit:
                return existing
        is_sandboxed = self.gate.context.sandbox.level is Assurance.BUBBLEWRAP and not self.is_by_person
        return create_work_tree(
            store, folder, base_commit=str(record.base_commit), tree=str(record.tree), sandboxed=is_sandboxed
        )

    def _run_executor(
        self, task: PlanTask, record: TaskRecord, place: WorkTree, scratch: Path, base_tree: str
    ) -> tuple[ExecutionOutcome, str | None]:
        gate, world = self.gate, self.gate.context
        seconds = None if self.is_by_person else gate.executor_seconds(record)
        executor_assignment = build_assignment(
            gate.plan,
            task,
            record,
            gate.journal.records.values(),
            run_id=world.run_id,
            base_commit=str(record.base_commit),
            seconds=seconds,
        )
        with world.artifacts.open_writer(world.settings.limits.output_mb << 20) as writer:
            shell = self.open_shell(record, place, scratch, writer, lambda data: gate.observer.on_output(task.id, data))
            site = ExecutionContext(
                work_tree=place.files,
                scratch=scratch,
                run=shell,
                is_done=lambda: (
                    gate.journal.find_done_command(task.id) is not None or gate.journal.has_pending_override(task.id)
                ),
                say=lambda line: gate.observer.on_message(task.id, line),
                on_text=lambda text: gate.observer.on_output(task.id, text.encode("utf-8", "replace")),
                on_progress=lambda line: gate.observer.on_activity(task.id, line),
                scope=executor_assignment.files,
                sandbox_path=find_sandbox_root(shell),
                level=world.sandbox.level,
                secret=world.settings.tools.secret,
                observer=WorkTreeChanges(world.store, place, base_tree),
                cancel=world.cancel,
                mask=world.secrets,
            )
            ran = gate.executor.execute(executor_assignment, site)
            output = writer.finish()
        world.ledger.append(output.to_row())
        return ran, output.hash if output.size else None

    def open_shell(
        self,
        record: TaskRecord,
        place: WorkTree,
        scratch: Path,
        sink: ArtifactWriter,
        on_output: Callable[[bytes], None] | None = None,
    ) -> SandboxedShell:
        """Return a sandboxed shell in the work tree, with the project's dependencies and without its credentials."""
        world = self.gate.context
        at = WorkShellSetup(
            work_tree=place,
            base_commit=str(record.base_commit),
            scratch=scratch,
            limits=world.job_limits(self.gate.executor_seconds(record), self._idle_seconds),
            hidden=find_secret_files(world, str(record.tree)) if isinstance(self.gate.executor, AgentExecutor) else (),
            on_output=on_output,
        )
        return build_work_shell(world, at, sink)

    @property
    def _idle_seconds(self) -> float | None:
        return self.gate.settings.idle_seconds if is_coding_agent(self.gate.executor.spec) else None

    def _judge_result(
        self,
        task: PlanTask,
        record: TaskRecord,
        place: WorkTree,
        ran: ExecutionOutcome,
        artifact: str | None,
        base_tree: str,
        scratch: Path,
    ) -> AttemptExecuted | AttemptFailed | TaskBlocked:
        """Turn the outcome into an event. The tree is frozen in any case: a retry continues from there."""
        claim = ran.claim
        if why := find_oversized_file(place.files):
            return _make_failure(
                record, FailureType.EXECUTION_FAILURE, f"its work tree cannot be frozen: {why}", None, claim
            )
        try:
            frozen = freeze_work_tree(self.gate.context.store, place, base_tree)
            if claim is not None and claim.status is ExecutorStatus.SUCCESS and self.gate.setup.hooks == "run":
                frozen, refusal = run_commit_hook(self, record, frozen, scratch)
                if refusal is not None:
                    return _make_failure(
                        record, FailureType.VERIFY_FAILURE, refusal.detail, frozen.tree, claim, (refusal,)
                    )
        except RepositoryError as error:  # the tree cannot be frozen
            return _make_failure(record, FailureType.EXECUTION_FAILURE, error.message, None, claim)
        if ran.timed_out:
            return _make_failure(record, FailureType.TIMEOUT, ran.end_reason, frozen.tree, None, artifact=artifact)
        if ran.drifted:
            return _make_failure(
                record, FailureType.EXECUTION_FAILURE, ran.end_reason, None, None, _list_drift_reasons(ran)
            )
        if ran.malformed:
            return _make_failure(record, FailureType.MALFORMED, ran.malformed, frozen.tree, None, artifact=artifact)
        if claim is None:
            return _make_failure(
                record, FailureType.EXECUTION_FAILURE, ran.end_reason, frozen.tree, None, artifact=artifact
            )
        if claim.disputes:
            disputes = tuple(
                VerdictDispute(subject=dispute.subject, claim=dispute.because, raised_by=self.gate.executor.spec)
                for dispute in claim.disputes
            )
            return TaskBlocked(error=describe_disputes(disputes), tree=frozen.tree, disputes=disputes)
        if claim.status is ExecutorStatus.BLOCKED:
            return TaskBlocked(error=str(claim.error), tree=frozen.tree)
        if claim.status is ExecutorStatus.FAILURE or claim.done_criteria_met is False:
            why = claim.error or "the executor reports that a done criterion is not met"
            return _make_failure(
                record,
                FailureType.EXECUTION_FAILURE,
                why,
                frozen.tree,
                claim,
                artifact=artifact,
                missing_program=ran.missing_program,
            )
        return AttemptExecuted(
            claim=claim,
            tree=frozen.tree,
            findings=(*frozen.findings, *ran.findings),
            artifact=artifact,
            duration_ms=ran.duration_ms,
            corrections=ran.corrections,
        )


def _list_drift_reasons(ran: ExecutionOutcome) -> tuple[FailureReason, ...]:
    """Return the reasons for stopping an agent that drifted.

    Its work is dropped, and the next attempt is told to try another approach. A fact that it hid is a claim that
    contradicts what Proofstone observed.
    """
    mismatches = (finding for finding in ran.findings if finding.rule == CLAIM_MISMATCH)
    return (
        FailureReason(check=DRIFT_CHECK, layer="gate", detail=f"{ran.end_reason}; take another approach"),
        *(FailureReason(check=CLAIM_MISMATCH, layer="gate", detail=mismatch.detail) for mismatch in mismatches),
    )


def _make_failure(
    record: TaskRecord,
    type: FailureType,
    error: str,
    tree: str | None,
    claim: ExecutorResult | None,
    reasons: tuple[FailureReason, ...] = (),
    *,
    artifact: str | None = None,
    missing_program: str = "",
) -> AttemptFailed:
    # Without a claim there is no statement about the work to contradict.
    verdict = Verdict.FAIL if claim else Verdict.UNVERIFIABLE
    all_reasons = reasons or (
        FailureReason(check="executor", layer="gate", verdict=verdict, detail=error, artifact=artifact),
    )
    failure = AttemptFailure(
        attempt=record.attempt,
        type=type,
        error=error.splitlines()[0] if error else type,
        reasons=all_reasons,
        missing_program=missing_program,
    )
    return AttemptFailed(failure=failure, tree=tree, claim=claim)
