"""A run as the auditor sees it: what was said and what happened, in the order of the ledger.

Rows are taken as they are found: what somebody wrote into them in another form than ours is passed over, no error.
Names and words that an agent chose are of any length; a report holds the beginning of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

from pydantic import JsonValue, ValidationError

from proofstone.contracts.audit import AuditFinding, Detection
from proofstone.contracts.base import Contract
from proofstone.contracts.bus import Envelope
from proofstone.contracts.rows import EventRow
from proofstone.core.agent.tool_rules import shortened

NAME: Final = 100
_DETAIL: Final = 1000

Fields: TypeAlias = Mapping[str, JsonValue]
Form = TypeVar("Form", bound=Contract)


@dataclass(frozen=True)
class Happened:
    """An event, with its place in the ledger."""

    seq: int
    at: str
    row: EventRow


@dataclass(frozen=True)
class ObservedRun:
    run_id: str
    envelopes: tuple[Envelope, ...] = ()
    events: tuple[Happened, ...] = ()

    def said(self, *types: str) -> Iterator[Envelope]:
        return (envelope for envelope in self.envelopes if envelope.type in types)

    def happened(self, *types: str) -> Iterator[Happened]:
        return (event for event in self.events if event.row.type in types)

    def finding(
        self,
        kind: Detection,
        rule: str,
        shown: Sequence[Envelope | Happened],
        *,
        role: str,
        detail: str,
        task: str | None = None,
    ) -> AuditFinding:
        """What these messages and events show; the task is that of the last of them, if no other is named."""
        last = shown[-1]
        task = task or (task_of(last) if isinstance(last, Envelope) else last.row.task_id)
        return AuditFinding(
            kind=kind,
            rule=rule,
            run_id=self.run_id,
            task=None if task is None else shortened(task, NAME),
            role=shortened(role, NAME),
            detail=shortened(detail, _DETAIL),
            seqs=tuple(one.seq for one in shown),
            messages=tuple(one.id for one in shown if isinstance(one, Envelope)),
        )

    @property
    def tasks(self) -> frozenset[str]:
        named = {task_of(envelope) for envelope in self.envelopes} | {event.row.task_id for event in self.events}
        return frozenset(self.whole(task) for task in named if task is not None)

    def whole(self, task: str) -> str:
        """The task that a subtask is part of; any other is whole by itself."""
        return self._parents.get(task, task)

    @cached_property
    def _parents(self) -> Mapping[str, str]:
        found = ((task_of(said), text(said.payload, "parent_task_id")) for said in self.said("SubTask"))
        return {subtask: parent for subtask, parent in found if subtask and parent}


def task_of(envelope: Envelope) -> str | None:
    """The task that a message is about. Contracts of the control loop call it `task_id`, or name a subtask, whose id
    begins with that of the run; a dispatch calls that one by the rest."""
    for key in ("task", "subtask_id", "task_id"):
        if task := text(envelope.payload, key):
            return task.removeprefix(f"{envelope.run_id}-")
    return None


def read(form: type[Form], fields: Fields) -> Form | None:
    """None: it is not written in that form."""
    try:
        return form.model_validate(dict(fields))
    except ValidationError:
        return None


def part(fields: Fields, *path: str) -> Fields:
    """An object inside of an object; an empty one if there is none."""
    for key in path:
        value = fields.get(key)
        if not isinstance(value, Mapping):
            return {}
        fields = value
    return fields


def text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def texts(fields: Fields, key: str) -> tuple[str, ...]:
    value = fields.get(key)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else ()


def number(fields: Fields, key: str) -> float | None:
    value = fields.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
