"""A run of the gate as a script: what every executor and architect said and did, so that it can be had again.

Of agents in the engine's own loop, the conversation is on record. Of programs and people, what they left is: the
difference between the work tree at the beginning of an attempt and at its end.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from assay.adapters.git.blobs import blob_reader
from assay.adapters.git.listing import SYMLINK, Held, in_tree
from assay.adapters.git.program import Git
from assay.adapters.script_file import Breakdown, Entry, Step
from assay.contracts.agent import FaultKind
from assay.contracts.gate import ArchitectDecision, ArchitectVerdict, ExecutorResult, Failure, FailureType
from assay.contracts.gate_record import Approved, Asked, AttemptFailed, Blocked, Executed, Started, TaskEvent
from assay.contracts.gate_setup import GateSetup
from assay.core.gate.architect_rules import NAME as RULES
from assay.engine.agents.casting import is_agent
from assay.engine.agents.on_record import on_record
from assay.engine.agents.scripting import conversations
from assay.engine.gate.journal import Journal
from assay.errors import InputError

_EXECUTABLE: Final = "100755"
_BY_ARCHITECTS: Final = "architect"


def script_of(setup: GateSetup, journal: Journal, git: Git) -> list[Entry]:
    """Entries for every dispatch and every attempt of the run."""
    entries = conversations(on_record(journal.ledger, journal.run_id).values())
    for task in journal.plan.tasks:
        events = journal.events(task.id)
        if not is_agent(setup.executor):
            entries += _Attempts(git, task.id).entries(events)
        if not is_agent(setup.architect):
            entries += _verdicts(task.id, events)
    return entries


@dataclass(frozen=True)
class _Attempts:
    git: Git
    task_id: str

    def entries(self, events: list[TaskEvent]) -> Iterator[Entry]:
        started: Started | None = None
        for event in events:
            if isinstance(event, Started):
                started = event
            elif isinstance(event, Executed | AttemptFailed | Blocked) and started is not None:
                yield self._entry(started, event)
                started = None  # what fails later fails in the checks, not in the executor's hands

    def _entry(self, started: Started, ended: Executed | AttemptFailed | Blocked) -> Entry:
        steps = tuple(self._edits(started.tree, ended.tree)) if ended.tree else ()
        match = {"task": (self.task_id,), "attempt": (str(started.attempt),)}
        if isinstance(ended, Blocked):
            return Entry("executor", match, steps, output={"status": "blocked", "error": ended.error})
        if isinstance(ended, Executed):
            return Entry("executor", match, steps, output=_claim(ended.claim))
        if ended.claim is not None:
            return Entry("executor", match, steps, output=_claim(ended.claim))
        if ended.failure.type is FailureType.MALFORMED:
            return Entry("executor", match, steps, raw=f"what it wrote was malformed: {ended.failure.error}")
        kind = FaultKind.TIMEOUT if ended.failure.type is FailureType.TIMEOUT else FaultKind.CRASHED
        return Entry("executor", match, (*steps, Step("error", breakdown=Breakdown(kind, ended.failure.error))))

    def _edits(self, before: str, after: str) -> Iterator[Step]:
        """Steps that make the one tree of the other."""
        try:
            old = {one.path: one for one in in_tree(self.git, before)}
            new = {one.path: one for one in in_tree(self.git, after)}
        except OSError as error:
            raise InputError(f"{self.task_id}: what it left is no longer there: {error}") from error
        for path in old.keys() - new.keys():
            yield Step("delete", {"path": _named(path)})
        for path, held in new.items():
            if path not in old or (old[path].mode, old[path].thing) != (held.mode, held.thing):
                yield from self._written(held, old.get(path))

    def _written(self, held: Held, before: Held | None) -> Iterator[Step]:
        path = _named(held.path)
        with blob_reader(self.git) as reader:
            size, content = reader.measured(held.thing)
        if content is None:
            raise InputError(f"{path}: with its {size} bytes it is too large for a script")
        if held.mode == SYMLINK:
            target = content.decode("utf-8", "surrogateescape")
            yield _run(f"rm -rf {shlex.quote(path)}; mkdir -p $(dirname {shlex.quote(path)})")
            yield _run(f"ln -s {shlex.quote(target)} {shlex.quote(path)}")
            return
        if before is None or before.thing != held.thing:
            yield _file(path, content)
        if held.mode == _EXECUTABLE and (before is None or before.mode != held.mode):
            yield _run(f"chmod +x {shlex.quote(path)}")
        elif before is not None and before.mode == _EXECUTABLE and held.mode != _EXECUTABLE:
            yield _run(f"chmod -x {shlex.quote(path)}")


def _file(path: str, content: bytes) -> Step:
    try:
        return Step("write", {"path": path, "content": content.decode("utf-8")})
    except UnicodeDecodeError:
        there = shlex.quote(path)
        data = base64.b64encode(content).decode()
        return _run(f"mkdir -p $(dirname {there}) && echo {data} | base64 -d > {there}")


def _run(command: str) -> Step:
    return Step("run", {"command": command})


def _named(path: bytes) -> str:
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path!r}: a script cannot name a file whose name is not UTF-8") from None


def _claim(claim: ExecutorResult) -> dict[str, JsonValue]:
    said: dict[str, JsonValue] = claim.model_dump(mode="json", exclude_defaults=True)
    return {"status": claim.status.value} | said


def _verdicts(task_id: str, events: list[TaskEvent]) -> Iterator[Entry]:
    """What an architect beside the rules has said, once for each attempt."""
    attempt = 0
    for event in events:
        if isinstance(event, Started):
            attempt = event.attempt
        verdict = _verdict(event)
        if verdict is not None:
            said = verdict.model_dump(mode="json", exclude={"by"})
            yield Entry("architect", {"task": (task_id,), "attempt": (str(attempt),)}, output=said)


def _verdict(event: TaskEvent) -> ArchitectVerdict | None:
    match event:
        case Approved():
            others = [one for one in event.verdicts if one.by != RULES]
            return others[-1] if others else None
        case Asked():
            return event.verdict
        case AttemptFailed() if event.failure.type is FailureType.ARCHITECT_REJECTION:
            return _rejection(event.failure)
    return None


def _rejection(failure: Failure) -> ArchitectVerdict | None:
    """The words of a rejection; None if the rules have spoken it, who speak again by themselves."""
    said = [reason.detail for reason in failure.reasons if reason.check == _BY_ARCHITECTS]
    words = [one for one in said if not one.startswith(f"{RULES}:")]
    if not words:
        return None
    return ArchitectVerdict(verdict=ArchitectDecision.REJECTED, feedback="\n".join(words))
