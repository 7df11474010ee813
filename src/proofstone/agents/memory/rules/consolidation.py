"""When two texts are about the same: by the words that they share. No model is asked.

How much an entry still weighs: half of its weight is left after HALF_LIFE further tasks.

Age is counted in tasks and not in days: a memory that nobody used for a month is no staler for it. Tasks are counted as
far as the memory knows of them. What has faded is still in the memory; it only is not spoken of any more.

Entries of one kind become one lesson. Pure.

Two entries are of one kind when both worked or both failed, and they share at least the share SIMILAR of their words;
what failed must have the same tags too, so that no tool or target that is forbidden gets lost in another lesson.

- A lesson has the words of the oldest, the time of the newest, and says what it was made of. What comes later and is of
  its kind joins it, and its weight is that of the newest again.
- Weights fade (`ageing.py`). Of more than MOST_LESSONS the lightest go; of two that weigh the same, the constraint
  stays. Nothing is dropped because it is negative. What would have become one that does not fit in stays as it is.
- What has become part of a lesson is superseded. What is alone of its kind stays as it is, and so does a procedure
  that worked, which nothing is concluded from, and what is too large to be a lesson.
- Doing it again changes nothing: of what is left alone, nothing is of one kind with another, nor with a lesson.
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

from proofstone.agents.memory.models import CLASS, TARGET, TOOL, MemoryEntry, MemoryType, Revision
from proofstone.ledger.rules.chain import canonical_json

_WORD: Final = re.compile(r"\w+")

STOP_WORDS: Final = frozenset(
    {
        "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "do", "does", "each",
        "for", "from", "had", "has", "have", "if", "in", "into", "is", "it", "its", "may", "must", "no", "not", "of",
        "on", "or", "please", "should", "so", "than", "that", "the", "then", "there", "these", "they", "this", "those",
        "to", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "you", "your",
        # What our own entries put around the words of a task.
        "abandoned", "accepted", "after", "environmental", "failed", "logical", "merged", "mixed", "more", "partial",
        "replans", "result",
    }
)  # fmt: skip
_NAMES: Final = re.compile(rf"^(?:{TOOL}|{TARGET}|{CLASS})")


def words_in(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word.casefold() for text in texts for word in _WORD.findall(text))


def subject_of(texts: Iterable[str]) -> frozenset[str]:
    """The words that say what a text is about."""
    return words_in(texts) - STOP_WORDS


def subject_of_entry(entry: MemoryEntry) -> frozenset[str]:
    return subject_of((entry.content, *(_NAMES.sub("", tag) for tag in entry.tags)))


HALF_LIFE: Final = 10
FADED: Final = 0.25
"""Below this weight an entry binds nobody: what once failed may be tried again some day."""


class Ages:
    """Of entries, among all entries that there are."""

    def __init__(self, entries: Iterable[MemoryEntry]) -> None:
        self._last: dict[str, str] = {}
        for entry in entries:
            self._last[entry.task_id] = max(self._last.get(entry.task_id, ""), entry.timestamp)
        self._in_order = sorted(self._last.values())

    def weight(self, entry: MemoryEntry) -> float:
        """As it is by now."""
        return float(entry.weight * 0.5 ** (self._tasks_since(entry) / HALF_LIFE))

    def _tasks_since(self, entry: MemoryEntry) -> int:
        counted_to = entry.weighed_at or entry.timestamp
        later = len(self._in_order) - bisect_right(self._in_order, counted_to)
        return later - (self._last.get(entry.task_id, "") > counted_to)


SIMILAR: Final = 0.5
MOST_LESSONS: Final = 200
MOST_SOURCES: Final = 100
MOST_TAGS: Final = 12
MOST_BYTES: Final = 16 * 1024
"""Of an entry that can become part of a lesson."""
ROLE: Final = "dreamer"
_ID: Final = 100
_TAG: Final = 200

_Kind = tuple[bool, frozenset[str]]


@dataclass
class _Group:
    """A lesson, or an entry that may become one, and what has joined it."""

    first: MemoryEntry
    subject: frozenset[str]
    joined: list[MemoryEntry] = field(default_factory=list)

    @property
    def is_lesson(self) -> bool:
        return self.first.type is MemoryType.SEMANTIC or bool(self.joined)


class _Groups:
    """By kind and words, so that not every entry is held against every other."""

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._with: defaultdict[tuple[_Kind, str], list[int]] = defaultdict(list)

    def lessons(self) -> Iterator[_Group]:
        return (group for group in self._groups if group.is_lesson)

    def add(self, entry: MemoryEntry) -> None:
        group = _Group(entry, subject_of((entry.content,)))
        for word in group.subject or {""}:
            self._with[_kind(entry), word].append(len(self._groups))
        self._groups.append(group)

    def find(self, entry: MemoryEntry) -> _Group | None:
        """The first that is of one kind with it. Whoever shares so many of its words shares one of the rarest: only
        those are looked at."""
        kind, subject = _kind(entry), subject_of((entry.content,))
        having = sorted((self._with.get((kind, word), []) for word in subject or {""}), key=len)
        rarest = having[: len(having) - ceil(SIMILAR * len(having)) + 1]
        near = (n for n in {n for item in rarest for n in item} if _is_similar(subject, self._groups[n].subject))
        first = min(near, default=None)
        return None if first is None else self._groups[first]


def consolidate(entries: Sequence[MemoryEntry], now: str) -> Revision:
    """The lessons that are new or have changed, and what they supersede."""
    there = {entry.entry_id: entry for entry in entries}
    ages, upto = Ages(entries), max((now, *(entry.timestamp for entry in entries)))
    made = [(group, _lesson(group, ages, upto)) for group in _grouped(entries).lessons()]
    kept = {item.entry_id for item in sorted((one for _, one in made), key=_heaviness, reverse=True)[:MOST_LESSONS]}
    gone: set[str] = set()
    for group, lesson in made:
        if lesson.entry_id in kept or lesson.entry_id in there:
            gone.update((lesson.entry_id, *lesson.sources), (item.entry_id for item in group.joined))
    return Revision(
        new=tuple(one for _, one in made if one.entry_id in kept and there.get(one.entry_id) != one),
        superseded=tuple(id for id in there if id in gone - kept),
    )


def _grouped(entries: Iterable[MemoryEntry]) -> _Groups:
    in_order = sorted(entries, key=_age)
    groups = _Groups()
    part_of_one: set[str] = set()
    for lesson in in_order:
        if lesson.type is MemoryType.SEMANTIC:
            groups.add(lesson)
            part_of_one.update(lesson.sources)
    for entry in in_order:
        if not _can_join(entry) or entry.entry_id in part_of_one:
            continue
        if group := groups.find(entry):
            group.joined.append(entry)
        else:
            groups.add(entry)
    return groups


def _lesson(group: _Group, ages: Ages, upto: str) -> MemoryEntry:
    first, members = group.first, (group.first, *group.joined)
    weight = max(map(ages.weight, members))
    if not group.joined:
        return first if weight == first.weight else first.model_copy(update={"weight": weight, "weighed_at": upto})
    newest = max(members, key=_age)
    is_one = first.type is MemoryType.SEMANTIC
    made_of = (*(first.sources if is_one else (first.entry_id,)), *(item.entry_id for item in group.joined))
    runs = (*(first.source_runs if is_one else (first.run_id,)), *(item.run_id for item in group.joined))
    return MemoryEntry(
        entry_id=first.entry_id if is_one else _lesson_id(first),
        task_id=newest.task_id,
        type=MemoryType.SEMANTIC,
        content=first.content,
        criteria_met=first.criteria_met,
        timestamp=newest.timestamp,
        tags=_tags(members) if first.criteria_met else first.tags,
        cost=sum(member.cost for member in members),
        run_id=newest.run_id,
        role=ROLE,
        sources=_bounded(made_of),
        source_runs=_bounded(dict.fromkeys(run for run in runs if run)),
        weight=weight,
        weighed_at=upto,
    )


def _can_join(entry: MemoryEntry) -> bool:
    if entry.type is MemoryType.SEMANTIC or (entry.type is MemoryType.PROCEDURAL and entry.criteria_met):
        return False
    short = len(entry.entry_id) <= _ID and len(entry.run_id) <= _ID
    return short and len(canonical_json(entry.model_dump())) <= MOST_BYTES


def _is_similar(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= SIMILAR * (len(one) + len(other) - shared)


def _kind(entry: MemoryEntry) -> _Kind:
    return entry.criteria_met, frozenset() if entry.criteria_met else frozenset(entry.tags)


def _lesson_id(first: MemoryEntry) -> str:
    """The same for the same lesson, should it ever be made again."""
    worked, tags = _kind(first)
    text = canonical_json([worked, first.content, *sorted(tags)])
    return f"lesson-{sha256(text.encode()).hexdigest()[:12]}"


def _tags(members: Sequence[MemoryEntry]) -> tuple[str, ...]:
    """Of what worked: whatever it worked with, the newest first."""
    newest_first = sorted(members, key=_age, reverse=True)
    return tuple(dict.fromkeys(tag for item in newest_first for tag in item.tags if len(tag) <= _TAG))[:MOST_TAGS]


def _bounded(names: Iterable[str]) -> tuple[str, ...]:
    """The first, whose words the lesson has, and the newest."""
    several = tuple(names)
    return (*several[:1], *several[1:][1 - MOST_SOURCES :])


def _age(entry: MemoryEntry) -> tuple[str, str]:
    return entry.timestamp, entry.entry_id


def _heaviness(lesson: MemoryEntry) -> tuple[float, bool, str, str]:
    return lesson.weight, not lesson.criteria_met, lesson.timestamp, lesson.entry_id
