"""Entries of one kind become one lesson, with provenance; doing it again changes nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.memory.models import MemoryEntry, MemoryRevision, MemoryType
from proofstone.agents.memory.rules.calibration import calibrate
from proofstone.agents.memory.rules.consolidation import (
    HALF_LIFE,
    MAX_LESSON_BYTES,
    MAX_LESSON_TAGS,
    MAX_LESSONS,
    MAX_SOURCES,
    consolidate,
)
from tests.agents.memory.making import PROCEDURAL, SEMANTIC, entry, failure, moment
from tests.rows import each_row

NOW = moment(50_000)


def after(entries: Sequence[MemoryEntry], revision: MemoryRevision) -> list[MemoryEntry]:
    gone = {*revision.superseded, *(one.entry_id for one in revision.new)}
    return [*(one for one in entries if one.entry_id not in gone), *revision.new]


def consolidated(*entries: MemoryEntry, now: str = NOW) -> list[MemoryEntry]:
    return after(entries, consolidate(entries, now))


def only(entries: Sequence[MemoryEntry]) -> MemoryEntry:
    [one] = entries
    return one


def test_a_lesson_says_what_it_was_made_of() -> None:
    entries = [
        entry("b", "count the rows of each table", at=2, run="r2", cost=0.5, tags=("tool:read",)),
        entry("a", "count the rows of a table", at=1, run="r1", cost=0.25, tags=("tool:shell",)),
    ]
    revision = consolidate(entries, NOW)
    assert revision.superseded == ("b", "a")
    lesson = only(revision.new)
    assert lesson == MemoryEntry(
        entry_id=lesson.entry_id,
        task_id="task of b",
        type=SEMANTIC,
        content="count the rows of a table",
        criteria_met=True,
        timestamp=moment(2),
        tags=("tool:read", "tool:shell"),
        cost=0.75,
        run_id="r2",
        role="dreamer",
        sources=("a", "b"),
        source_runs=("r1", "r2"),
        weight=1.0,
        weighed_at=NOW,
    )
    assert lesson.entry_id.startswith("lesson-")


ALIKE = "count the rows of the table"


@each_row(
    ("one", "other", "merged"),
    [
        (entry("a", ALIKE), entry("b", ALIKE), True),
        (entry("a", "rows table"), entry("b", "rows table counted quickly"), True),
        (entry("a", "rows table"), entry("b", "rows table counted quickly today"), False),
        (entry("a", ALIKE), entry("b", "delete old branches"), False),
        (entry("a", ALIKE), entry("b", ALIKE, met=False), False),
        (entry("a", ALIKE, tags=("tool:x",)), entry("b", ALIKE, tags=("tool:y",)), True),
        (failure("a", tags=("tool:x", "class:logical")), failure("b", tags=("class:logical", "tool:x")), True),
        (failure("a", tags=("tool:x",)), failure("b", tags=("tool:y",)), False),
        (failure("a", tags=("tool:x",)), failure("b", tags=()), False),
        (entry("a", ALIKE, met=False), failure("b", tags=()), True),
        (entry("a", ALIKE, type=PROCEDURAL), entry("b", ALIKE, type=PROCEDURAL), False),
        (entry("a", ""), entry("b", "..."), True),
        (entry("a", "the"), entry("b", ALIKE), False),
        (entry("a", ALIKE + "." * MAX_LESSON_BYTES), entry("b", ALIKE), False),
        (entry("a" * 101, ALIKE), entry("b", ALIKE), False),
        (entry("a", ALIKE, run="r" * 101), entry("b", ALIKE), False),
    ],
)
@pytest.mark.seed("control-loop", "dreamer")
def test_what_is_of_one_kind_is_merged(one: MemoryEntry, other: MemoryEntry, merged: bool) -> None:
    assert len(consolidated(one, other)) == (1 if merged else 2)


def test_what_is_alone_of_its_kind_stays_as_it_is() -> None:
    entries = [entry("a", ALIKE), failure("f", "push the branch", tags=("tool:shell",))]
    assert consolidate(entries, NOW) == MemoryRevision()
    assert consolidate([], NOW) == MemoryRevision()


@pytest.mark.seed("control-loop", "dreamer")
def test_a_constraint_stays_one_with_all_that_it_forbids() -> None:
    tags = ("tool:shell", "target:data.csv", "class:logical")
    lesson = only(consolidated(*(failure(f"f{n}", at=n, tags=tags) for n in range(3))))
    assert (lesson.type, lesson.criteria_met, lesson.tags) == (SEMANTIC, False, tags)
    found = calibrate([lesson], (ALIKE,))
    assert (found.blocked_tools, found.blocked_targets) == (("shell",), ("data.csv",))


@pytest.mark.parametrize("of", ["environmental", "logical"])
def test_failures_of_two_runs_bind_as_one_lesson_as_they_did_before(of: str) -> None:
    entries = [failure(f"f{n}", at=n, tags=("target:data.csv", f"class:{of}")) for n in range(2)]
    assert only(consolidated(*entries)).type is SEMANTIC
    assert calibrate(entries, (ALIKE,)).blocked_targets == ("data.csv",)
    assert calibrate(consolidated(*entries), (ALIKE,)).blocked_targets == ("data.csv",)


def test_failures_of_one_run_bind_nothing_as_a_lesson_either() -> None:
    entries = [entry(f"f{n}", type=PROCEDURAL, met=False, at=n, tags=("tool:shell",), run="r") for n in range(2)]
    assert only(consolidated(*entries)).type is SEMANTIC
    assert calibrate(consolidated(*entries), (ALIKE,)).blocked_tools == ()


def test_what_comes_later_joins_its_lesson_and_makes_it_fresh() -> None:
    entries = consolidated(entry("a", at=1, cost=1), entry("b", at=2, cost=1), now=moment(10))
    strangers = [entry(f"s{n}", f"stranger{n}", at=20 + n) for n in range(HALF_LIFE)]
    faded = consolidated(*entries, *strangers, now=moment(100))
    before = only([one for one in faded if one.type is SEMANTIC])
    assert before.weight == pytest.approx(0.5)
    revision = consolidate([*faded, entry("c", at=200, cost=1, run="r")], moment(201))
    lesson = only(revision.new)
    assert revision.superseded == ("c",)
    assert lesson.entry_id == before.entry_id
    assert (lesson.weight, lesson.timestamp, lesson.cost) == (1, moment(200), 3)
    assert (lesson.sources, lesson.source_runs) == (("a", "b", "c"), ("r",))


def test_a_weight_halves_with_every_half_life_of_tasks_however_they_are_counted() -> None:
    memory = consolidated(entry("a", at=1), entry("b", at=2), now=moment(3))
    for number in range(2 * HALF_LIFE):
        memory = consolidated(
            *memory, entry(f"s{number}", f"stranger{number}", at=10 + number), now=moment(10 + number)
        )
    assert only([one for one in memory if one.type is SEMANTIC]).weight == pytest.approx(0.25)


def test_it_is_as_old_as_the_tasks_since_its_newest_source() -> None:
    strangers = [entry(f"s{n}", f"stranger{n}", at=20 + n) for n in range(HALF_LIFE)]
    assert consolidate([entry("a", at=1), entry("b", at=2), *strangers], NOW).new[0].weight == pytest.approx(0.5)


def test_a_clock_that_is_behind_the_entries_does_not_make_them_age_twice() -> None:
    entries = [entry("a", at=1), entry("b", at=2), entry("s", "stranger", at=900)]
    memory = consolidated(*entries, now=moment(5))
    assert consolidate(memory, moment(5)) == MemoryRevision()


def test_originals_that_are_still_there_are_let_go_and_not_merged_again() -> None:
    entries = [entry("a"), entry("b")]
    lessons = consolidate(entries, NOW).new
    assert consolidate([*entries, *lessons], NOW) == MemoryRevision(superseded=("a", "b"))


def test_of_too_many_lessons_the_lightest_go_whatever_their_sign() -> None:
    def lessons(met: bool) -> list[MemoryEntry]:
        number = range(MAX_LESSONS + 3)
        return [
            entry(f"l{n}", f"about{n}", type=SEMANTIC, met=met, weight=0.1 if n in (4, 50, 99) else 0.9, task="one")
            for n in number
        ]

    for met in (True, False):
        assert consolidate(lessons(met), NOW) == MemoryRevision(superseded=("l4", "l50", "l99"))


def test_of_two_lessons_of_one_weight_the_constraint_stays() -> None:
    lessons = [
        entry(f"l{n}", f"about{n}", type=SEMANTIC, met=n != 7, task="one", at=0 if n == 7 else 1)
        for n in range(MAX_LESSONS + 50)
    ]
    assert "l7" not in consolidate(lessons, NOW).superseded
    assert len(consolidated(*lessons)) == MAX_LESSONS


def test_what_would_become_a_lesson_for_which_there_is_no_room_stays_as_it_is() -> None:
    lessons = [entry(f"l{n}", f"about{n}", type=SEMANTIC, task="one", at=9) for n in range(MAX_LESSONS)]
    assert consolidate([entry("a", at=1), entry("b", at=2), *lessons], NOW) == MemoryRevision()


def test_a_lesson_that_goes_takes_along_what_has_just_joined_it() -> None:
    lessons = [entry(f"l{n}", f"about{n}", type=SEMANTIC, task="one", at=9) for n in range(MAX_LESSONS)]
    light = entry("light", type=SEMANTIC, weight=0.1)
    entries = [light, entry("a", at=1), *lessons]
    assert consolidate(entries, NOW) == MemoryRevision(superseded=("light", "a"))


def test_what_could_join_two_joins_the_older() -> None:
    entries = [entry("a", "rows table", at=1), entry("b", "rows count", at=2), entry("c", "rows table count", at=3)]
    assert only(consolidate(entries, NOW).new).sources == ("a", "c")


def test_a_lesson_does_not_grow_without_end() -> None:
    many = [entry(f"e{n:03}", at=n, run=f"r{n:03}", tags=(f"tool:t{n}", "x" * 500)) for n in range(MAX_SOURCES + 50)]
    lesson = only(consolidated(*many))
    assert lesson.sources == ("e000", *(f"e{n:03}" for n in range(51, 150)))
    assert lesson.source_runs == ("r000", *(f"r{n:03}" for n in range(51, 150)))
    assert lesson.tags == tuple(f"tool:t{n}" for n in range(149, 149 - MAX_LESSON_TAGS, -1))


WORDS = st.lists(st.sampled_from(["rows", "table", "count", "file", "branch", "push"]), max_size=5).map(" ".join)
TAGS = st.lists(st.sampled_from(["tool:shell", "tool:grep", "target:a"]), max_size=2, unique=True).map(tuple)


@st.composite
def memories(draw: st.DrawFn) -> list[MemoryEntry]:
    return [
        entry(
            f"e{number}",
            draw(WORDS),
            at=draw(st.integers(0, 30)),
            type=draw(st.sampled_from(MemoryType)),
            met=draw(st.booleans()),
            tags=draw(TAGS),
            task=draw(st.sampled_from("tuvw")),
            run=draw(st.sampled_from(["", "r1", "r2"])),
        )
        for number in range(draw(st.integers(0, 25)))
    ]


@given(memories(), st.integers(0, 40))
def test_doing_it_again_changes_nothing(entries: list[MemoryEntry], now: int) -> None:
    memory = consolidated(*entries, now=moment(now))
    assert consolidate(memory, moment(now)) == MemoryRevision()


@given(memories())
def test_nothing_is_lost_and_what_was_forbidden_still_is(entries: list[MemoryEntry]) -> None:
    revision = consolidate(entries, NOW)
    memory = after(entries, revision)
    alive = {one.entry_id for one in memory}
    for one in entries:
        homes = [there for there in memory if one.entry_id in there.sources]
        assert one.entry_id in alive or homes
        assert all(there.criteria_met == one.criteria_met for there in homes)
        if not one.criteria_met:
            assert all(set(there.tags) == set(one.tags) for there in homes)
    assert not set(revision.superseded) & {one.entry_id for one in revision.new}


@given(memories(), st.randoms(use_true_random=False))
def test_the_order_of_the_entries_does_not_matter(entries: list[MemoryEntry], order: random.Random) -> None:
    def lessons(of: Sequence[MemoryEntry]) -> set[MemoryEntry]:
        return set(consolidate(of, NOW).new)

    shuffled = list(entries)
    order.shuffle(shuffled)
    assert lessons(shuffled) == lessons(entries)
