"""A run as the auditor sees it: what was said and what happened, in the order of the ledger.

Rows are taken as they are found: what somebody wrote into them in another form than ours is passed over, no error.
Names and words that an agent chose are of any length; a report holds the beginning of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import JsonValue

from assay.contracts.audit import AuditFinding, Detection
from assay.contracts.bus import Envelope
from assay.contracts.rows import EventRow
from assay.core.agent.tool_rules import shortened

NAME: Final = 100
_DETAIL: Final = 1000

Fields: TypeAlias = Mapping[str, JsonValue]


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
        self, kind: Detection, rule: str, shown: Sequence[Envelope | Happened], *, role: str, detail: str
    ) -> AuditFinding:
        """What these messages and events show; the task is that of the last of them."""
        last = shown[-1]
        task = task_of(last) if isinstance(last, Envelope) else last.row.task_id
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
        return frozenset(task for task in named if task is not None)


def task_of(envelope: Envelope) -> str | None:
    """The task that a message is about: contracts of the control loop call it `task_id`."""
    for key in ("task", "task_id"):
        if task := text(envelope.payload, key):
            return task
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
