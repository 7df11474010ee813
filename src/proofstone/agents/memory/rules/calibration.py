"""What the memory has to say to the planner of a task, without asking a model.

Of the entries that are about something like the task, the newest; at most MOST of them.

| type       | it worked | it failed |
|------------|-----------|-----------|
| episodic   | prefer    | –         |
| procedural | –         | must not  |
| semantic   | prefer    | must not  |

A MUST NOT is told. It blocks the tools and targets that it names once two runs have failed with them, and nothing at
least as new has worked with them: what failed but once may have been chance, or be gone. What an entry says is data: it
is shown to the planner, and nothing follows from it but what its tags say.

What goes when a person wants something forgotten: the entries, and every lesson that was made of them. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from proofstone.agents.memory.models import MemoryEntry, MemoryType
from proofstone.agents.memory.rules.consolidation import FADED, Ages, subject_of, subject_of_entry
from proofstone.agents.roles.models.payload import Line

MOST: Final = 10
ENOUGH: Final = 2
"""Words that an entry shares with the task, so as to be about something like it; of a task of one word, that one."""
RUNS: Final = 2
"""That must have failed with a tool or a target before it is blocked."""
_LINE: Final = 300


class Advice(Enum):
    MUST_NOT = auto()
    SHOULD_PREFER = auto()


ADVICE: Final[Mapping[tuple[MemoryType, bool], Advice]] = MappingProxyType(
    {
        (MemoryType.EPISODIC, True): Advice.SHOULD_PREFER,
        (MemoryType.PROCEDURAL, False): Advice.MUST_NOT,
        (MemoryType.SEMANTIC, True): Advice.SHOULD_PREFER,
        (MemoryType.SEMANTIC, False): Advice.MUST_NOT,
    }
)


@dataclass(frozen=True)
class Calibration:
    must_not: tuple[Line, ...] = ()
    should_prefer: tuple[Line, ...] = ()
    blocked_tools: tuple[str, ...] = ()
    blocked_targets: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    """Ids of the entries behind it, newest first."""


def advice(entry: MemoryEntry) -> Advice | None:
    """None: it has none to give."""
    return ADVICE.get((entry.type, entry.criteria_met))


def calibrate(entries: Iterable[MemoryEntry], words: Iterable[str]) -> Calibration:
    """With the words of the task: its intent, and the person's own."""
    about = _about(tuple(entries), subject_of(words))
    used = _distinct(about)[:MOST]
    forbids = [item for item in used if advice(item) is Advice.MUST_NOT]
    prefers = [item for item in used if advice(item) is Advice.SHOULD_PREFER]
    return Calibration(
        must_not=tuple(map(_line, forbids)),
        should_prefer=tuple(map(_line, prefers)),
        blocked_tools=_blocked(forbids, about, lambda one: one.tools),
        blocked_targets=_blocked(forbids, about, lambda one: one.targets),
        used=tuple(item.entry_id for item in used),
    )


def _about(entries: tuple[MemoryEntry, ...], subject: frozenset[str]) -> list[MemoryEntry]:
    """Newest first."""
    ages = Ages(entries)
    about = (entry for entry in entries if advice(entry) and ages.weight(entry) >= FADED and _is_about(entry, subject))
    return sorted(about, key=lambda one: (one.timestamp, one.entry_id), reverse=True)


def _distinct(about: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    """What says the same as a newer one takes no place."""
    distinct: dict[tuple[Advice | None, Line], MemoryEntry] = {}
    for item in about:
        distinct.setdefault((advice(item), _line(item)), item)
    return list(distinct.values())


def _is_about(entry: MemoryEntry, subject: frozenset[str]) -> bool:
    return bool(subject) and len(subject & subject_of_entry(entry)) >= min(ENOUGH, len(subject))


def _blocked(
    forbids: Sequence[MemoryEntry], about: Sequence[MemoryEntry], named: Callable[[MemoryEntry], Iterable[str]]
) -> tuple[str, ...]:
    """Only what is told can be blocked. What says the same in another run takes no place there, and counts here."""
    worked: dict[str, str] = {}
    failed: defaultdict[str, set[str]] = defaultdict(set)
    for item in reversed(about):
        for name in named(item):
            if advice(item) is Advice.SHOULD_PREFER:
                worked[name] = item.timestamp
                failed.pop(name, None)
            elif worked.get(name, "") < item.timestamp:
                failed[name].update(_runs(item))
    told = {name for forbid in forbids for name in named(forbid)}
    return tuple(sorted(name for name in told if len(failed.get(name, ())) >= RUNS))


def _runs(entry: MemoryEntry) -> Iterable[str]:
    return (run for run in entry.source_runs or (entry.run_id,) if run)


def _line(entry: MemoryEntry) -> Line:
    """In one line, what is forbidden or preferred before why."""
    named = (*(f"tool {name}" for name in entry.tools), *(f"target {name}" for name in entry.targets))
    said = " ".join(": ".join(part for part in (", ".join(named), entry.content) if part).split())
    return said if len(said) <= _LINE else f"{said[: _LINE - 1]}…"


def named_by(entries: Iterable[MemoryEntry], ids: Collection[str]) -> tuple[MemoryEntry, ...]:
    """Those with these ids, and lessons made of them. An entry that has been let go lives on in its lesson."""
    return tuple(entry for entry in entries if entry.entry_id in ids or not set(ids).isdisjoint(entry.sources))


def from_run(entries: Iterable[MemoryEntry], run_id: str) -> tuple[MemoryEntry, ...]:
    """Those of the run, and lessons made of them."""
    return tuple(entry for entry in entries if run_id in (entry.run_id, *entry.source_runs))


def known_ids(entries: Iterable[MemoryEntry]) -> frozenset[str]:
    return frozenset(id for entry in entries for id in (entry.entry_id, *entry.sources))
