"""A run of the gate as a script: what every executor and architect said and did, so that it can be had again.

Of agents in the engine's own loop, the conversation is on record. Of programs and people, what they left is: the
difference between the work tree at the beginning of an attempt and at its end.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.gate_agents import is_agent
from proofstone.agents.models import FaultKind
from proofstone.agents.recording import conversations
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    ExecutorResult,
    Failure,
    FailureType,
)
from proofstone.agents.script_file import Breakdown, Entry, Step
from proofstone.agents.spending import Recorded, on_record
from proofstone.config.backends import works_alone
from proofstone.errors import InputError
from proofstone.gate.context import Journal
from proofstone.gate.models import Approved, Asked, AttemptFailed, Blocked, Executed, GateSetup, Started, TaskEvent
from proofstone.gate.rules.passing import NAME as RULES
from proofstone.git.objects import SYMLINK, Held, blob_reader, in_tree
from proofstone.git.program import Git, GitFailedError

_EXECUTABLE: Final = "100755"
_PIECE: Final = 48_000
"""Bytes of a file in one command: the kernel takes no longer ones than 128 KiB."""
_BY_ARCHITECTS: Final = "architect"


def script_of(setup: GateSetup, journal: Journal, git: Git) -> list[Entry]:
    """Entries for every dispatch and every attempt of the run."""
    recorded = on_record(journal.ledger, journal.run_id).values()
    alone = works_alone(setup.executor)
    acted = {attempt for item in recorded if (attempt := _attempt(item)) and (alone or not item.can_go_on)}
    entries = conversations(item for item in recorded if _attempt(item) not in acted)
    for task in journal.plan.tasks:
        events = journal.events(task.id)
        wanted = acted if is_agent(setup.executor) else None
        entries += _Attempts(git, task.id, wanted).entries(events)
        if not is_agent(setup.architect):
            entries += _verdicts(task.id, events)
    return entries


def _attempt(one: Recorded) -> tuple[str, int] | None:
    """Of which task and attempt the dispatch of an executor was."""
    occasion = one.occasion
    if occasion is None or occasion.task is None or occasion.role != "executor":
        return None
    return occasion.task, occasion.attempt


@dataclass(frozen=True)
class _Attempts:
    git: Git
    task_id: str
    wanted: Collection[tuple[str, int] | None] | None
    """Only these; None: all."""

    def entries(self, events: list[TaskEvent]) -> Iterator[Entry]:
        started: Started | None = None
        for event in events:
            if isinstance(event, Started):
                started = event
            elif isinstance(event, Executed | AttemptFailed | Blocked) and started is not None:
                if self.wanted is None or (self.task_id, started.attempt) in self.wanted:
                    yield self._entry(started, event)
                started = None  # what fails later fails in the checks, not in the executor's hands

    def _entry(self, started: Started, ended: Executed | AttemptFailed | Blocked) -> Entry:
        steps = tuple(self._edits(started.tree, ended.tree)) if ended.tree else ()
        match = {"task": (self.task_id,), "attempt": (str(started.attempt),)}
        if isinstance(ended, Blocked):
            return Entry("executor", match, steps, output={"status": "blocked", "error": ended.error})
        if ended.claim is not None:
            return Entry("executor", match, steps, output=_claim(ended.claim))
        if ended.failure.type is FailureType.MALFORMED:
            return Entry("executor", match, steps, raw=f"what it wrote was malformed: {ended.failure.error}")
        kind = FaultKind.TIMEOUT if ended.failure.type is FailureType.TIMEOUT else FaultKind.CRASHED
        return Entry("executor", match, (*steps, Step("error", breakdown=Breakdown(kind, ended.failure.error))))

    def _edits(self, before: str, after: str) -> Iterator[Step]:
        """Steps that make the one tree of the other."""
        try:
            old = {item.path: item for item in in_tree(self.git, before)}
            new = {item.path: item for item in in_tree(self.git, after)}
        except GitFailedError as error:
            raise InputError(f"{self.task_id}: what it left is no longer there: {error}") from error
        for path in sorted(old):
            if path not in new or _kind(old[path]) != _kind(new[path]):
                yield Step("delete", {"path": _named(path)})
        # A file where a folder was: its files are deleted, and the folder is still there.
        folders = {b"/".join(parts[:n]) for parts in (path.split(b"/") for path in old) for n in range(1, len(parts))}
        for path in sorted(new.keys() & folders):
            yield Step("delete", {"path": _named(path)})
        for path, held in sorted(new.items()):
            before_it = old.get(path)
            if before_it is None or _kind(before_it) != _kind(held):
                yield from self._written(held, None)
            elif (before_it.mode, before_it.thing) != (held.mode, held.thing):
                yield from self._written(held, before_it)

    def _written(self, held: Held, before: Held | None) -> Iterator[Step]:
        path = _named(held.path)
        with blob_reader(self.git) as reader:
            size, content = reader.measured(held.thing)
        if content is None:
            raise InputError(f"{path}: with its {size} bytes it is too large for a script")
        if held.mode == SYMLINK:
            target = content.decode("utf-8", "surrogateescape")
            yield _run(f"{_in_its_folder(path)} ln -sfn {shlex.quote(target)} {shlex.quote(path)}")
            return
        if before is None or before.thing != held.thing:
            yield from _file(path, content)
        if held.mode == _EXECUTABLE and (before is None or before.mode != held.mode):
            yield _run(f"chmod +x {shlex.quote(path)}")
        elif before is not None and before.mode == _EXECUTABLE and held.mode != _EXECUTABLE:
            yield _run(f"chmod -x {shlex.quote(path)}")


def _kind(held: Held) -> str:
    """A link and a file of the same name are two things."""
    return SYMLINK if held.mode == SYMLINK else "file"


def _file(path: str, content: bytes) -> Iterator[Step]:
    try:
        yield Step("write", {"path": path, "content": content.decode("utf-8")})
    except UnicodeDecodeError:
        there = shlex.quote(path)
        yield _run(f"{_in_its_folder(path)} : > {there}")
        for at in range(0, len(content), _PIECE):
            piece = base64.b64encode(content[at : at + _PIECE]).decode()
            yield _run(f"echo {piece} | base64 -d >> {there}")


def _in_its_folder(path: str) -> str:
    folder = path.rpartition("/")[0]
    return f"mkdir -p {shlex.quote(folder)} &&" if folder else ""


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
        match = {"task": (task_id,), "attempt": (str(attempt),)}
        if (verdict := _verdict(event)) is not None:
            yield Entry("architect", match, output=verdict.model_dump(mode="json", exclude={"by"}))
        elif _is_late(event):
            yield Entry("architect", match, (Step("error", breakdown=Breakdown(FaultKind.TIMEOUT, "it was late")),))


def _verdict(event: TaskEvent) -> ArchitectVerdict | None:
    match event:
        case Approved():
            others = [verdict for verdict in event.verdicts if verdict.by != RULES]
            return others[-1] if others else None
        case Asked():
            return event.verdict
        case AttemptFailed() if event.failure.type is FailureType.ARCHITECT_REJECTION:
            return _rejection(event.failure)
    return None


def _is_late(event: TaskEvent) -> bool:
    """Whether an architect's time was over."""
    if not isinstance(event, AttemptFailed) or event.failure.type is not FailureType.TIMEOUT:
        return False
    return any(reason.check == _BY_ARCHITECTS for reason in event.failure.reasons)


def _rejection(failure: Failure) -> ArchitectVerdict | None:
    """The words of a rejection; None if the rules have spoken it, who speak again by themselves."""
    said = [reason.detail for reason in failure.reasons if reason.check == _BY_ARCHITECTS]
    words = [item for item in said if not item.startswith(f"{RULES}:")]
    if not words:
        return None
    return ArchitectVerdict(verdict=ArchitectDecision.REJECTED, feedback="\n".join(words))
