"""Derive advice for the planner of a task from the memory, and find the entries to forget. Pure.

No model is asked. The newest entries about a similar task, or of the same request, are used, at most
MAX_USED_ENTRIES of them. Words are compared by their stems.

| type       | worked    | failed    |
|------------|-----------|-----------|
| episodic   | prefer    | –         |
| procedural | –         | must not  |
| semantic   | prefer    | must not  |

A MUST NOT is shown to the planner. It blocks its tools and targets only if two runs have failed with them and nothing
at least as new has worked with them: a single failure may be a coincidence, or its cause may be gone. The text of an
entry is data: it is shown to the planner, and only its tags have consequences.

When a person wants an entry forgotten, every lesson that combines it is forgotten too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from proofstone.agents.memory.models import MemoryEntry, MemoryType
from proofstone.agents.memory.rules.consolidation import (
    MIN_USED_WEIGHT,
    EntryAges,
    extract_entry_subject,
)
from proofstone.agents.memory.rules.words import extract_subject, is_same_request
from proofstone.agents.roles.models.payload import ShortText
from proofstone.common.serialization import serializable

MAX_USED_ENTRIES: Final = 10
MIN_SHARED_WORDS: Final = 2
"""How many words an entry must share with the task to be about it; at most as many as the task has."""
MIN_FAILED_RUNS: Final = 2
"""How many runs must have failed with a tool or a target before it is blocked."""
_LINE: Final = 300


class Advice(Enum):
    MUST_NOT = auto()
    SHOULD_PREFER = auto()


ADVICE_BY_TYPE: Final[Mapping[tuple[MemoryType, bool], Advice]] = MappingProxyType(
    {
        (MemoryType.EPISODIC, True): Advice.SHOULD_PREFER,
        (MemoryType.PROCEDURAL, False): Advice.MUST_NOT,
        (MemoryType.SEMANTIC, True): Advice.SHOULD_PREFER,
        (MemoryType.SEMANTIC, False): Advice.MUST_NOT,
    }
)


@serializable("solve.calibration")
@dataclass(frozen=True)
class Calibration:
    must_not: tuple[ShortText, ...] = ()
    should_prefer: tuple[ShortText, ...] = ()
    blocked_tools: tuple[str, ...] = ()
    blocked_targets: tuple[str, ...] = ()
    blocked_programs: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    """Ids of the entries that were used, the newest first."""


def find_advice(entry: MemoryEntry) -> Advice | None:
    """Return what the entry advises, or None if it gives no advice."""
    return ADVICE_BY_TYPE.get((entry.type, entry.criteria_met))


def calibrate(entries: Iterable[MemoryEntry], words: Iterable[str]) -> Calibration:
    """Derive the advice for a task. `words` are its intent and the person's own words."""
    relevant = _find_relevant(tuple(entries), tuple(words))
    used = _remove_duplicates(relevant)[:MAX_USED_ENTRIES]
    constraints = [entry for entry in used if find_advice(entry) is Advice.MUST_NOT]
    preferences = [entry for entry in used if find_advice(entry) is Advice.SHOULD_PREFER]
    return Calibration(
        must_not=tuple(map(_format_line, constraints)),
        should_prefer=tuple(map(_format_line, preferences)),
        blocked_tools=_find_blocked(constraints, relevant, lambda entry: entry.tools),
        blocked_targets=_find_blocked(constraints, relevant, lambda entry: entry.targets),
        blocked_programs=_find_blocked(constraints, relevant, lambda entry: entry.programs),
        used=tuple(entry.entry_id for entry in used),
    )


def _find_relevant(entries: tuple[MemoryEntry, ...], words: tuple[str, ...]) -> list[MemoryEntry]:
    """Return the entries about the words, or of the same request, that give advice and have not faded, the newest
    first.
    """
    ages, subject = EntryAges(entries), extract_subject(words)
    relevant = (
        entry
        for entry in entries
        if find_advice(entry)
        and ages.weight(entry) >= MIN_USED_WEIGHT
        and (_is_about(entry, subject) or any(is_same_request(entry.request, text) for text in words))
    )
    return sorted(relevant, key=lambda entry: (entry.timestamp, entry.entry_id), reverse=True)


def _remove_duplicates(entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    """Drop entries that say the same as a newer one."""
    distinct: dict[tuple[Advice | None, ShortText], MemoryEntry] = {}
    for entry in entries:
        distinct.setdefault((find_advice(entry), _format_line(entry)), entry)
    return list(distinct.values())


def _is_about(entry: MemoryEntry, subject: frozenset[str]) -> bool:
    return bool(subject) and len(subject & extract_entry_subject(entry)) >= min(MIN_SHARED_WORDS, len(subject))


def _find_blocked(
    constraints: Sequence[MemoryEntry],
    relevant: Sequence[MemoryEntry],
    get_names: Callable[[MemoryEntry], Iterable[str]],
) -> tuple[str, ...]:
    """Return the tools or targets to block. Only names in constraints that the planner is shown can be blocked;
    duplicates that are not shown still count as failed runs."""
    success_times: dict[str, str] = {}
    failed_runs: defaultdict[str, set[str]] = defaultdict(set)
    for entry in reversed(relevant):
        for name in get_names(entry):
            if find_advice(entry) is Advice.SHOULD_PREFER:
                success_times[name] = entry.timestamp
                failed_runs.pop(name, None)
            elif success_times.get(name, "") < entry.timestamp:
                failed_runs[name].update(_runs_of(entry))
    names = {name for constraint in constraints for name in get_names(constraint)}
    return tuple(sorted(name for name in names if len(failed_runs.get(name, ())) >= MIN_FAILED_RUNS))


def _runs_of(entry: MemoryEntry) -> Iterable[str]:
    return (run for run in entry.source_runs or (entry.run_id,) if run)


def _format_line(entry: MemoryEntry) -> ShortText:
    """Return an entry in one line: the tools and targets first, then the reason."""
    subjects = (
        *(f"tool {name}" for name in entry.tools),
        *(f"program {name}" for name in entry.programs),
        *(f"target {name}" for name in entry.targets),
    )
    line = " ".join(": ".join(part for part in (", ".join(subjects), entry.content) if part).split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def find_by_ids(entries: Iterable[MemoryEntry], ids: Collection[str]) -> tuple[MemoryEntry, ...]:
    """Return the entries with these ids and the lessons that combine them, even if the entries are gone."""
    return tuple(entry for entry in entries if entry.entry_id in ids or not set(ids).isdisjoint(entry.sources))


def find_by_run(entries: Iterable[MemoryEntry], run_id: str) -> tuple[MemoryEntry, ...]:
    """Return the entries of the run and the lessons that combine them."""
    return tuple(entry for entry in entries if run_id in (entry.run_id, *entry.source_runs))


def collect_ids(entries: Iterable[MemoryEntry]) -> frozenset[str]:
    return frozenset(id for entry in entries for id in (entry.entry_id, *entry.sources))
