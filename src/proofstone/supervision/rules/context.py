"""Versions of the context: what differs between two, who is told of it, and who has acknowledged it.

An agent is told only of what concerns it. It gets the lines that differ, or the whole context again:

| first match                                    | whole   |
|------------------------------------------------|---------|
| it knows none                                  | first   |
| it asked for it, or did not take all in        | request |
| it knows another version than the last but one | gap     |
| more than half of the context differs          | large   |

While a gate is in progress nothing is sent: what it was told stays as it is until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from proofstone.common.globs import matches
from proofstone.supervision.models.context import (
    Ack,
    AckOutcome,
    Action,
    ContextItem,
    ContextSection,
    ContextUpdate,
    ContextVersion,
    DeltaLine,
    Operation,
    Reader,
    Sent,
)
from proofstone.supervision.rules.monitor_state import LARGE_DELTA

_Items = Mapping[tuple[str, str], ContextItem]


def amended(version: ContextVersion, section: str, item: ContextItem) -> ContextVersion:
    """The next version: with the item added, or instead of the one that had its key."""
    names = [entry.name for entry in version.sections]
    sections = tuple(_with(entry, item) if entry.name == section else entry for entry in version.sections)
    if section not in names:
        sections = (*sections, ContextSection(name=section, items=(item,)))
    return ContextVersion(number=version.number + 1, sections=sections)


def _with(section: ContextSection, item: ContextItem) -> ContextSection:
    if item.key not in [entry.key for entry in section.items]:
        return ContextSection(name=section.name, items=(*section.items, item))
    items = tuple(item if entry.key == item.key else entry for entry in section.items)
    return ContextSection(name=section.name, items=items)


# What differs.


def delta(before: ContextVersion, after: ContextVersion) -> tuple[DeltaLine, ...]:
    """Section by section. One that shares no key with what it was is replaced as a whole."""
    old = {item.name: item for item in before.sections}
    new = {item.name: item for item in after.sections}
    gone = (section for name, section in old.items() if name not in new)
    return (
        *(line for name, section in new.items() for line in _section_delta(old.get(name), section)),
        *(line for section in gone for line in _lines(Operation.REMOVED, section)),
    )


def _section_delta(old: ContextSection | None, new: ContextSection) -> Iterable[DeltaLine]:
    if old is None:
        return _lines(Operation.ADDED, new)
    was = {item.key: item for item in old.items}
    now = {item.key: item for item in new.items}
    if not was.keys() & now.keys():
        return _lines(Operation.REPLACED, new)
    return (
        *(_line(Operation.ADDED, new.name, one) for key, one in now.items() if key not in was),
        *(_line(Operation.CHANGED, new.name, one) for key, one in now.items() if key in was and was[key] != one),
        *(_line(Operation.REMOVED, new.name, one) for key, one in was.items() if key not in now),
    )


def whole(known: ContextVersion | None, latest: ContextVersion) -> tuple[DeltaLine, ...]:
    """All that holds, and what does so no longer of sections that are gone."""
    operation = Operation.REPLACED if known else Operation.ADDED
    names = {item.name for item in latest.sections}
    gone = [item for item in known.sections if item.name not in names] if known else []
    return (
        *(line for section in latest.sections for line in _lines(operation, section)),
        *(line for section in gone for line in _lines(Operation.REMOVED, section)),
    )


def _lines(operation: Operation, section: ContextSection) -> tuple[DeltaLine, ...]:
    return tuple(_line(operation, section.name, item) for item in section.items)


def _line(operation: Operation, section: str, item: ContextItem) -> DeltaLine:
    return DeltaLine(operation=operation, section=section, key=item.key, text=item.text)


# Who is told.


def affects(reader: Reader, before: ContextVersion | None, after: ContextVersion) -> bool:
    """Whether something that differs concerns it: one of its files, one of its criteria, or everybody."""
    old, new = _items(before), _items(after)
    differing = (key for key in {*old, *new} if old.get(key) != new.get(key))
    return any(_concerns(item, reader) for key in differing for item in (old.get(key), new.get(key)) if item)


def _items(version: ContextVersion | None) -> _Items:
    sections = version.sections if version else ()
    return {(section.name, item.key): item for section in sections for item in section.items}


def _concerns(item: ContextItem, reader: Reader) -> bool:
    if not item.files and not item.criteria:
        return True
    files = any(matches(mine, file) or matches(file, mine) for file in item.files for mine in reader.files)
    return files or bool({*item.criteria} & {*reader.criteria})


def tell(reader: Reader, known: ContextVersion | None, latest: ContextVersion) -> tuple[Reader, Sent | None]:
    """What it is sent now, if anything. `known` is the version that it was sent last; None: it was sent none."""
    new = reader.knows < latest.number
    affected = new and affects(reader, known, latest)
    if reader.frozen or not (affected or reader.again):
        return reader, None
    why = _why_whole(reader, known, latest)
    lines = delta(known, latest) if known and not why else whole(known, latest)
    update = ContextUpdate(before=reader.knows, version=latest.number, lines=lines)
    told = {"knows": latest.number, "again": False, "sent_whole": bool(why), "awaited": len(lines)}
    sent = Sent(agent=reader.agent, update=update, whole=why, reverify=affected and known is not None)
    return reader.model_copy(update=told), sent


def _why_whole(
    reader: Reader, known: ContextVersion | None, latest: ContextVersion
) -> Literal["", "gap", "large", "request", "first"]:
    if known is None:
        return "first"
    if reader.again:
        return "request"
    if latest.number - reader.knows > 1:
        return "gap"
    size = max(len(_items(known)), len(_items(latest)))
    return "large" if len(delta(known, latest)) > LARGE_DELTA * size else ""


def freeze(reader: Reader) -> Reader:
    """A gate begins."""
    return reader.model_copy(update={"frozen": True})


def thaw(reader: Reader) -> Reader:
    """It has ended: what has changed meanwhile can be told."""
    return reader.model_copy(update={"frozen": False})


# Who has acknowledged.


def acknowledge(reader: Reader, ack: Ack) -> tuple[Reader, AckOutcome]:
    """What an agent's word to an update is worth. Whoever has not even taken in the whole waits for a word: there is
    nothing more to send, and it is asked."""
    if reader.awaited is None or ack.version != reader.knows:
        return reader, AckOutcome.UNASKED
    taken = ack.action is not Action.NEED_CLARIFICATION and ack.applied >= ack.total == reader.awaited
    if not taken and not reader.sent_whole:
        return reader.model_copy(update={"again": True, "awaited": None}), AckOutcome.SEND_WHOLE
    paused = not taken or ack.action is Action.PAUSE
    changes = {"awaited": None, "acknowledged": ack.version if taken else reader.acknowledged}
    return reader.model_copy(update=changes), AckOutcome.PAUSED if paused else AckOutcome.TAKEN
