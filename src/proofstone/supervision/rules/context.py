"""Versions of the context: how two versions differ, which agents receive the difference, and which have acknowledged
it.

An agent receives only changes that concern it: the lines that differ, or the whole context again:

| first match                                              | whole   |
|----------------------------------------------------------|---------|
| the agent knows no version                               | first   |
| the agent asked for it, or did not apply all lines       | request |
| the agent's version is older than the previous version   | gap     |
| more than half of the context differs                    | large   |

Nothing is sent while a gate is in progress: the agent's context stays unchanged until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from proofstone.common.globs import matches
from proofstone.supervision.models.context import (
    Ack,
    AckAction,
    AckOutcome,
    ContextDelivery,
    ContextItem,
    ContextReader,
    ContextSection,
    ContextUpdate,
    ContextVersion,
    DeltaLine,
    DeltaOperation,
)
from proofstone.supervision.rules.monitor_state import LARGE_DELTA

_Items = Mapping[tuple[str, str], ContextItem]


def amend_context(version: ContextVersion, section: str, item: ContextItem) -> ContextVersion:
    """Return the next version, with the item added or replacing the item with its key."""
    names = [known_section.name for known_section in version.sections]
    sections = tuple(
        _add_or_replace(known_section, item) if known_section.name == section else known_section
        for known_section in version.sections
    )
    if section not in names:
        sections = (*sections, ContextSection(name=section, items=(item,)))
    return ContextVersion(number=version.number + 1, sections=sections)


def _add_or_replace(section: ContextSection, item: ContextItem) -> ContextSection:
    if item.key not in [known_item.key for known_item in section.items]:
        return ContextSection(name=section.name, items=(*section.items, item))
    items = tuple(item if known_item.key == item.key else known_item for known_item in section.items)
    return ContextSection(name=section.name, items=items)


# Differences between versions.


def compute_delta(before: ContextVersion, after: ContextVersion) -> tuple[DeltaLine, ...]:
    """Return the difference section by section. A section that shares no key with its previous version is replaced
    as a whole.
    """
    old = {section_entry.name: section_entry for section_entry in before.sections}
    new = {section_entry.name: section_entry for section_entry in after.sections}
    removed = (section for name, section in old.items() if name not in new)
    return (
        *(line for name, section in new.items() for line in _section_delta(old.get(name), section)),
        *(line for section in removed for line in _lines(DeltaOperation.REMOVED, section)),
    )


def _section_delta(old: ContextSection | None, new: ContextSection) -> Iterable[DeltaLine]:
    if old is None:
        return _lines(DeltaOperation.ADDED, new)
    old_items = {item.key: item for item in old.items}
    new_items = {item.key: item for item in new.items}
    if not old_items.keys() & new_items.keys():
        return _lines(DeltaOperation.REPLACED, new)
    return (
        *(_line(DeltaOperation.ADDED, new.name, entry) for key, entry in new_items.items() if key not in old_items),
        *(
            _line(DeltaOperation.CHANGED, new.name, entry)
            for key, entry in new_items.items()
            if key in old_items and old_items[key] != entry
        ),
        *(_line(DeltaOperation.REMOVED, new.name, entry) for key, entry in old_items.items() if key not in new_items),
    )


def list_whole_context(known: ContextVersion | None, latest: ContextVersion) -> tuple[DeltaLine, ...]:
    """Return every item of the latest version, and the items of removed sections."""
    operation = DeltaOperation.REPLACED if known else DeltaOperation.ADDED
    names = {known_section.name for known_section in latest.sections}
    removed = [known_section for known_section in known.sections if known_section.name not in names] if known else []
    return (
        *(line for section in latest.sections for line in _lines(operation, section)),
        *(line for section in removed for line in _lines(DeltaOperation.REMOVED, section)),
    )


def _lines(operation: DeltaOperation, section: ContextSection) -> tuple[DeltaLine, ...]:
    return tuple(_line(operation, section.name, item) for item in section.items)


def _line(operation: DeltaOperation, section: str, item: ContextItem) -> DeltaLine:
    return DeltaLine(operation=operation, section=section, key=item.key, text=item.text)


# Who receives an update.


def is_affected(reader: ContextReader, before: ContextVersion | None, after: ContextVersion) -> bool:
    """Return whether a difference concerns the agent: one of its files, one of its criteria, or every agent."""
    old, new = _items(before), _items(after)
    differing = (key for key in {*old, *new} if old.get(key) != new.get(key))
    return any(_concerns(item, reader) for key in differing for item in (old.get(key), new.get(key)) if item)


def _items(version: ContextVersion | None) -> _Items:
    sections = version.sections if version else ()
    return {(section.name, item.key): item for section in sections for item in section.items}


def _concerns(item: ContextItem, reader: ContextReader) -> bool:
    if not item.files and not item.criteria:
        return True
    has_file = any(
        matches(own_pattern, file) or matches(file, own_pattern) for file in item.files for own_pattern in reader.files
    )
    return has_file or bool({*item.criteria} & {*reader.criteria})


def prepare_update(
    reader: ContextReader, known: ContextVersion | None, latest: ContextVersion
) -> tuple[ContextReader, ContextDelivery | None]:
    """Return the update to send now, if any. `known` is the version that was last sent; None if none was."""
    is_new = reader.knows < latest.number
    must_know = is_new and is_affected(reader, known, latest)
    if reader.frozen or not (must_know or reader.again):
        return reader, None
    why = _why_whole(reader, known, latest)
    lines = compute_delta(known, latest) if known and not why else list_whole_context(known, latest)
    before = min(reader.knows, latest.number - 1)  # what is sent again leads from the version before it
    update = ContextUpdate(before=before, version=latest.number, lines=lines)
    changes = {"knows": latest.number, "again": False, "sent_whole": bool(why), "awaited": len(lines)}
    sent = ContextDelivery(agent=reader.agent, update=update, whole=why, reverify=must_know and known is not None)
    return reader.model_copy(update=changes), sent


def _why_whole(
    reader: ContextReader, known: ContextVersion | None, latest: ContextVersion
) -> Literal["", "gap", "large", "request", "first"]:
    if known is None:
        return "first"
    if reader.again:
        return "request"
    if latest.number - reader.knows > 1:
        return "gap"
    size = max(len(_items(known)), len(_items(latest)))
    return "large" if len(compute_delta(known, latest)) > LARGE_DELTA * size else ""


def freeze_context(reader: ContextReader) -> ContextReader:
    """Stop updates: a gate starts."""
    return reader.model_copy(update={"frozen": True})


def thaw_context(reader: ContextReader) -> ContextReader:
    """Allow updates again: the gate has ended."""
    return reader.model_copy(update={"frozen": False})


# Acknowledgements.


def acknowledge(reader: ContextReader, ack: Ack) -> tuple[ContextReader, AckOutcome]:
    """Process an acknowledgement. An agent that did not apply even the whole context is paused: there is nothing
    more to send.
    """
    if reader.awaited is None or ack.version != reader.knows:
        return reader, AckOutcome.UNASKED
    is_applied = ack.action is not AckAction.NEED_CLARIFICATION and ack.applied >= ack.total == reader.awaited
    if not is_applied and not reader.sent_whole:
        return reader.model_copy(update={"again": True, "awaited": None}), AckOutcome.SEND_WHOLE
    is_paused = not is_applied or ack.action is AckAction.PAUSE
    changes = {"awaited": None, "acknowledged": ack.version if is_applied else reader.acknowledged}
    return reader.model_copy(update=changes), AckOutcome.PAUSED if is_paused else AckOutcome.TAKEN
