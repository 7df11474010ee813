"""Combine similar entries of the memory into lessons, and weigh entries by age. Pure.

Two texts have the same subject if they share enough words; no model is asked. Half of an entry's weight is left after
HALF_LIFE further tasks. Age is counted in tasks and not in days, because a memory that nobody used for a month is not
outdated. Only tasks that the memory knows are counted. A faded entry stays in the memory but is no longer used.

Two entries are similar if both worked or both failed, and they share at least the fraction SIMILAR of their words.
Failures must also have the same tags, so that no forbidden tool or target gets lost in another lesson.

- A lesson has the words of its oldest entry, the time of its newest, and lists its sources. A later similar entry joins
  the lesson and renews its weight.
- If there are more than MOST_LESSONS, those with the lowest weight are dropped; of two with the same weight, the
  constraint stays. No lesson is dropped because it is negative. Entries whose new lesson does not fit stay unchanged.
- Entries that are part of a lesson are removed. An entry without a similar one stays unchanged, and so do procedures
  that worked, which lead to no conclusion, and entries that are too large for a lesson.
- Consolidating again changes nothing: the remaining entries are similar neither to each other nor to a lesson.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from typing import Final

from proofstone.agents.memory.models import (
    CLASS_TAG,
    PROGRAM_TAG,
    TARGET_TAG,
    TOOL_TAG,
    MemoryEntry,
    MemoryRevision,
    MemoryType,
)
from proofstone.agents.memory.rules.words import extract_subject
from proofstone.ledger.rules.chain import canonical_json

_NAMES: Final = re.compile(rf"^(?:{TOOL_TAG}|{TARGET_TAG}|{PROGRAM_TAG}|{CLASS_TAG})")


def extract_entry_subject(entry: MemoryEntry) -> frozenset[str]:
    """Return what an entry is about: its words, its tags, and the request that it comes from."""
    return extract_subject((entry.content, entry.request, *(_NAMES.sub("", tag) for tag in entry.tags)))


HALF_LIFE: Final = 10
MIN_USED_WEIGHT: Final = 0.25
"""Below this weight an entry is no longer used, so that what once failed may be tried again."""


class EntryAges:
    """Computes the ages of entries from the tasks of all entries."""

    def __init__(self, entries: Iterable[MemoryEntry]) -> None:
        self._last_time_by_task: dict[str, str] = {}
        for entry in entries:
            self._last_time_by_task[entry.task_id] = max(
                self._last_time_by_task.get(entry.task_id, ""), entry.timestamp
            )
        self._task_times = sorted(self._last_time_by_task.values())

    def weight(self, entry: MemoryEntry) -> float:
        """Return the current weight of the entry."""
        return float(entry.weight * 0.5 ** (self._tasks_since(entry) / HALF_LIFE))

    def _tasks_since(self, entry: MemoryEntry) -> int:
        counted_until = entry.weighed_at or entry.timestamp
        later = len(self._task_times) - bisect_right(self._task_times, counted_until)
        return later - (self._last_time_by_task.get(entry.task_id, "") > counted_until)


MIN_SIMILARITY: Final = 0.5
MAX_LESSONS: Final = 200
MAX_SOURCES: Final = 100
MAX_LESSON_TAGS: Final = 12
MAX_LESSON_BYTES: Final = 16 * 1024
"""The largest size of an entry that can become part of a lesson."""
CONSOLIDATION_ROLE: Final = "dreamer"
_ID: Final = 100
_TAG: Final = 200

_Kind = tuple[bool, frozenset[str]]


@dataclass
class _Group:
    """A lesson, or an entry that may become one, and the entries that joined it."""

    first: MemoryEntry
    subject: frozenset[str]
    joined: list[MemoryEntry] = field(default_factory=list)

    @property
    def is_lesson(self) -> bool:
        return self.first.type is MemoryType.SEMANTIC or bool(self.joined)


class _Groups:
    """Groups, indexed by kind and words, so that not every entry is compared with every other."""

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._groups_by_word: defaultdict[tuple[_Kind, str], list[int]] = defaultdict(list)

    def lessons(self) -> Iterator[_Group]:
        return (group for group in self._groups if group.is_lesson)

    def add(self, entry: MemoryEntry) -> None:
        group = _Group(entry, extract_subject((entry.content,)))
        for word in group.subject or {""}:
            self._groups_by_word[_kind(entry), word].append(len(self._groups))
        self._groups.append(group)

    def find(self, entry: MemoryEntry) -> _Group | None:
        """Return the first similar group. A similar group must share one of the rarest words, so only the groups with
        those words are compared."""
        kind, subject = _kind(entry), extract_subject((entry.content,))
        candidates = sorted((self._groups_by_word.get((kind, word), []) for word in subject or {""}), key=len)
        rarest = candidates[: len(candidates) - ceil(MIN_SIMILARITY * len(candidates)) + 1]
        numbers = {number for group_numbers in rarest for number in group_numbers}
        similar = (number for number in numbers if _is_similar(subject, self._groups[number].subject))
        first = min(similar, default=None)
        return None if first is None else self._groups[first]


def consolidate(entries: Sequence[MemoryEntry], now: str) -> MemoryRevision:
    """Return the lessons that are new or have changed, and the entries that they replace."""
    existing = {entry.entry_id: entry for entry in entries}
    ages, upto = EntryAges(entries), max((now, *(entry.timestamp for entry in entries)))
    lessons = [(group, _build_lesson(group, ages, upto)) for group in _group_entries(entries).lessons()]
    heaviest = sorted((lesson for _, lesson in lessons), key=_heaviness, reverse=True)[:MAX_LESSONS]
    kept_ids = {lesson.entry_id for lesson in heaviest}
    replaced_ids: set[str] = set()
    for group, lesson in lessons:
        if lesson.entry_id in kept_ids or lesson.entry_id in existing:
            replaced_ids.update((lesson.entry_id, *lesson.sources), (entry.entry_id for entry in group.joined))
    return MemoryRevision(
        new=tuple(
            lesson for _, lesson in lessons if lesson.entry_id in kept_ids and existing.get(lesson.entry_id) != lesson
        ),
        superseded=tuple(id for id in existing if id in replaced_ids - kept_ids),
    )


def _group_entries(entries: Iterable[MemoryEntry]) -> _Groups:
    sorted_entries = sorted(entries, key=_age)
    groups = _Groups()
    source_ids: set[str] = set()
    for lesson in sorted_entries:
        if lesson.type is MemoryType.SEMANTIC:
            groups.add(lesson)
            source_ids.update(lesson.sources)
    for entry in sorted_entries:
        if not _can_join(entry) or entry.entry_id in source_ids:
            continue
        if group := groups.find(entry):
            group.joined.append(entry)
        else:
            groups.add(entry)
    return groups


def _build_lesson(group: _Group, ages: EntryAges, upto: str) -> MemoryEntry:
    first, members = group.first, (group.first, *group.joined)
    weight = max(map(ages.weight, members))
    if not group.joined:
        return first if weight == first.weight else first.model_copy(update={"weight": weight, "weighed_at": upto})
    newest = max(members, key=_age)
    is_lesson = first.type is MemoryType.SEMANTIC
    sources = (*(first.sources if is_lesson else (first.entry_id,)), *(entry.entry_id for entry in group.joined))
    runs = (*(first.source_runs if is_lesson else (first.run_id,)), *(entry.run_id for entry in group.joined))
    return MemoryEntry(
        entry_id=first.entry_id if is_lesson else _lesson_id(first),
        task_id=newest.task_id,
        type=MemoryType.SEMANTIC,
        content=first.content,
        criteria_met=first.criteria_met,
        timestamp=newest.timestamp,
        tags=_collect_tags(members) if first.criteria_met else first.tags,
        cost=sum(member.cost for member in members),
        run_id=newest.run_id,
        role=CONSOLIDATION_ROLE,
        sources=_limit_sources(sources),
        source_runs=_limit_sources(dict.fromkeys(run for run in runs if run)),
        repository=first.repository,
        request=first.request,
        weight=weight,
        weighed_at=upto,
    )


def _can_join(entry: MemoryEntry) -> bool:
    if entry.type is MemoryType.SEMANTIC or (entry.type is MemoryType.PROCEDURAL and entry.criteria_met):
        return False
    is_short = len(entry.entry_id) <= _ID and len(entry.run_id) <= _ID
    return is_short and len(canonical_json(entry.model_dump())) <= MAX_LESSON_BYTES


def _is_similar(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= MIN_SIMILARITY * (len(one) + len(other) - shared)


def _kind(entry: MemoryEntry) -> _Kind:
    return entry.criteria_met, frozenset() if entry.criteria_met else frozenset(entry.tags)


def _lesson_id(first: MemoryEntry) -> str:
    """Return an id that is the same whenever the same lesson is built."""
    worked, tags = _kind(first)
    origin = [first.repository] if first.repository else []
    text = canonical_json([worked, first.content, *sorted(tags), *origin])
    return f"lesson-{sha256(text.encode()).hexdigest()[:12]}"


def _collect_tags(members: Sequence[MemoryEntry]) -> tuple[str, ...]:
    """Return the tags of entries that worked, the newest first."""
    newest_first = sorted(members, key=_age, reverse=True)
    return tuple(dict.fromkeys(tag for entry in newest_first for tag in entry.tags if len(tag) <= _TAG))[
        :MAX_LESSON_TAGS
    ]


def _limit_sources(names: Iterable[str]) -> tuple[str, ...]:
    """Keep the first source, whose words the lesson has, and the newest ones."""
    all_names = tuple(names)
    return (*all_names[:1], *all_names[1:][1 - MAX_SOURCES :])


def _age(entry: MemoryEntry) -> tuple[str, str]:
    return entry.timestamp, entry.entry_id


def _heaviness(lesson: MemoryEntry) -> tuple[float, bool, str, str]:
    return lesson.weight, not lesson.criteria_met, lesson.timestamp, lesson.entry_id
