"""Export a run of the gate as a script: everything that executors and architects said and did, so that it can be
replayed.

For agents in Proofstone's own loop, the conversation is recorded. For programs and people, the result is: the
difference between the work tree at the start of an attempt and at its end.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.gate_agents import is_agent_spec
from proofstone.agents.models import FaultKind
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    AttemptFailure,
    ExecutorResult,
    FailureType,
)
from proofstone.agents.script_file import ScriptEntry, ScriptFault, ScriptStep
from proofstone.agents.script_recorder import build_script_entries
from proofstone.agents.spending import DispatchRecord, read_dispatch_records
from proofstone.config.backends import is_coding_agent
from proofstone.errors import InputError
from proofstone.gate.context import GateJournal
from proofstone.gate.models import (
    AttemptApproved,
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    BranchMoved,
    CriteriaAdded,
    GateSetup,
    ReviewEscalated,
    ReviewFailed,
    TaskBlocked,
    TaskEvent,
)
from proofstone.gate.rules.pass_rule import RULES_ARCHITECT
from proofstone.git.objects import SYMLINK, GitEntry, list_tree, open_blob_reader
from proofstone.git.program import Git, GitCommandError

_EXECUTABLE: Final = "100755"
_CHUNK_SIZE: Final = 48_000
"""Bytes of a file in one command. The kernel accepts at most 128 KiB per argument."""
_ARCHITECT_CHECK: Final = "architect"


def export_gate_script(setup: GateSetup, journal: GateJournal, git: Git) -> list[ScriptEntry]:
    """Return the script entries for every dispatch and every attempt of the run."""
    recorded = read_dispatch_records(journal.ledger, journal.run_id).values()
    works_alone = is_coding_agent(setup.executor)
    executed_attempts = {
        attempt
        for dispatch in recorded
        if (attempt := _find_attempt(dispatch)) and (works_alone or not dispatch.can_resume)
    }
    entries = build_script_entries(
        dispatch for dispatch in recorded if _find_attempt(dispatch) not in executed_attempts
    )
    for task in journal.plan.tasks:
        events = journal.read_events(task.id)
        wanted_attempts = executed_attempts if is_agent_spec(setup.executor) else None
        entries += _AttemptRecorder(git, task.id, wanted_attempts).entries(events)
        if not is_agent_spec(setup.architect):
            entries += _list_verdicts(task.id, events)
    return entries


def _find_attempt(dispatch: DispatchRecord) -> tuple[str, int] | None:
    """Return the task and attempt for which an executor was dispatched."""
    occasion = dispatch.occasion
    if occasion is None or occasion.task is None or occasion.role != "executor":
        return None
    return occasion.task, occasion.attempt


@dataclass(frozen=True)
class _AttemptRecorder:
    """Builds the script entries for the attempts of a task."""

    git: Git
    task_id: str
    wanted: Collection[tuple[str, int] | None] | None
    """Only these attempts; None means all."""

    def entries(self, events: list[TaskEvent]) -> Iterator[ScriptEntry]:
        started: AttemptStarted | None = None
        for event in events:
            if isinstance(event, AttemptStarted):
                started = event
            elif isinstance(event, AttemptExecuted | AttemptFailed | TaskBlocked) and started is not None:
                if self.wanted is None or (self.task_id, started.attempt) in self.wanted:
                    yield self._make_entry(started, event)
                started = None  # a later failure comes from the checks, not from the executor

    def _make_entry(self, started: AttemptStarted, ended: AttemptExecuted | AttemptFailed | TaskBlocked) -> ScriptEntry:
        steps = tuple(self._list_edits(started.tree, ended.tree)) if ended.tree else ()
        match = {"task": (self.task_id,), "attempt": (str(started.attempt),)}
        if isinstance(ended, TaskBlocked):
            return ScriptEntry("executor", match, steps, output={"status": "blocked", "error": ended.error})
        if ended.claim is not None:
            return ScriptEntry("executor", match, steps, output=_dump_claim(ended.claim))
        if ended.failure.type is FailureType.MALFORMED:
            return ScriptEntry("executor", match, steps, raw=f"what it wrote was malformed: {ended.failure.error}")
        kind = FaultKind.TIMEOUT if ended.failure.type is FailureType.TIMEOUT else FaultKind.CRASHED
        return ScriptEntry(
            "executor", match, (*steps, ScriptStep("error", breakdown=ScriptFault(kind, ended.failure.error)))
        )

    def _list_edits(self, before: str, after: str) -> Iterator[ScriptStep]:
        """Yield the steps that turn one tree into the other."""
        try:
            old = {entry.path: entry for entry in list_tree(self.git, before)}
            new = {entry.path: entry for entry in list_tree(self.git, after)}
        except GitCommandError as error:
            raise InputError(f"{self.task_id}: the tree that it left no longer exists: {error}") from error
        for path in sorted(old):
            if path not in new or _entry_kind(old[path]) != _entry_kind(new[path]):
                yield ScriptStep("delete", {"path": _decode_path(path)})
        # A file replaces a folder: the folder's files are deleted already, but the folder still exists.
        folders = {b"/".join(parts[:n]) for parts in (path.split(b"/") for path in old) for n in range(1, len(parts))}
        for path in sorted(new.keys() & folders):
            yield ScriptStep("delete", {"path": _decode_path(path)})
        for path, new_entry in sorted(new.items()):
            old_entry = old.get(path)
            if old_entry is None or _entry_kind(old_entry) != _entry_kind(new_entry):
                yield from self._write_steps(new_entry, None)
            elif (old_entry.mode, old_entry.object_id) != (new_entry.mode, new_entry.object_id):
                yield from self._write_steps(new_entry, old_entry)

    def _write_steps(self, entry: GitEntry, before: GitEntry | None) -> Iterator[ScriptStep]:
        path = _decode_path(entry.path)
        with open_blob_reader(self.git) as reader:
            size, content = reader.read_with_size(entry.object_id)
        if content is None:
            raise InputError(f"{path}: {size} bytes are too large for a script")
        if entry.mode == SYMLINK:
            target = content.decode("utf-8", "surrogateescape")
            yield _run_step(f"{_make_parent_folder(path)} ln -sfn {shlex.quote(target)} {shlex.quote(path)}")
            return
        if before is None or before.object_id != entry.object_id:
            yield from _write_file(path, content)
        if entry.mode == _EXECUTABLE and (before is None or before.mode != entry.mode):
            yield _run_step(f"chmod +x {shlex.quote(path)}")
        elif before is not None and before.mode == _EXECUTABLE and entry.mode != _EXECUTABLE:
            yield _run_step(f"chmod -x {shlex.quote(path)}")


def _entry_kind(entry: GitEntry) -> str:
    """Return the kind of the entry. A link and a file of the same name are different entries."""
    return SYMLINK if entry.mode == SYMLINK else "file"


def _write_file(path: str, content: bytes) -> Iterator[ScriptStep]:
    try:
        yield ScriptStep("write", {"path": path, "content": content.decode("utf-8")})
    except UnicodeDecodeError:
        there = shlex.quote(path)
        yield _run_step(f"{_make_parent_folder(path)} : > {there}")
        for at in range(0, len(content), _CHUNK_SIZE):
            piece = base64.b64encode(content[at : at + _CHUNK_SIZE]).decode()
            yield _run_step(f"echo {piece} | base64 -d >> {there}")


def _make_parent_folder(path: str) -> str:
    folder = path.rpartition("/")[0]
    return f"mkdir -p {shlex.quote(folder)} &&" if folder else ""


def _run_step(command: str) -> ScriptStep:
    return ScriptStep("run", {"command": command})


def _decode_path(path: bytes) -> str:
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path!r}: the name is not UTF-8, so a script cannot contain this file") from None


def _dump_claim(claim: ExecutorResult) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = claim.model_dump(mode="json", exclude_defaults=True)
    return {"status": claim.status.value} | fields


def _list_verdicts(task_id: str, events: list[TaskEvent]) -> Iterator[ScriptEntry]:
    """Yield the verdict of the architect besides the rules, once for each attempt."""
    attempt = reviews = 0
    for event in events:
        if isinstance(event, AttemptStarted):
            attempt, reviews = event.attempt, 0
        reviews += isinstance(event, BranchMoved | CriteriaAdded | ReviewFailed)
        match = {"task": (task_id,), "attempt": (str(attempt),)}
        if (verdict := _find_verdict(event)) is not None:
            yield ScriptEntry("architect", match, output=verdict.model_dump(mode="json", exclude={"by"}))
        elif isinstance(event, ReviewFailed):
            yield ScriptEntry("architect", {**match, "round": (str(reviews),)}, (_make_missing_verdict(event.failure),))


def _find_verdict(event: TaskEvent) -> ArchitectVerdict | None:
    match event:
        case AttemptApproved():
            others = [verdict for verdict in event.verdicts if verdict.by != RULES_ARCHITECT]
            return others[-1] if others else None
        case ReviewEscalated():
            return event.verdict
        case AttemptFailed() if event.failure.verdicts:
            return event.failure.verdicts[-1]
        case AttemptFailed() if event.failure.type is FailureType.ARCHITECT_REJECTION:
            return _find_rejection(event.failure)
    return None


def _make_missing_verdict(failure: AttemptFailure) -> ScriptStep:
    """Return the step after which an architect gives no verdict, as it gave none."""
    kind = FaultKind.TIMEOUT if failure.type is FailureType.TIMEOUT else FaultKind.CRASHED
    return ScriptStep("error", breakdown=ScriptFault(kind, failure.error))


def _find_rejection(failure: AttemptFailure) -> ArchitectVerdict | None:
    """Return the verdict of a rejection; None if it came from the rules, which judge again during a replay."""
    details = [reason.detail for reason in failure.reasons if reason.check == _ARCHITECT_CHECK]
    feedback = [detail for detail in details if not detail.startswith(f"{RULES_ARCHITECT}:")]
    if not feedback:
        return None
    return ArchitectVerdict(verdict=ArchitectDecision.REJECTED, feedback="\n".join(feedback))
