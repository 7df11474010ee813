"""What tasks are drawn from."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from proofstone.solve.simulation.rules import (
    APPROACH_KINDS,
    MIXES,
    LandscapeMix,
    SimulatedPath,
    draw_choice,
    draw_float,
    draw_int,
    draw_landscape,
)
from tests.rows import each_row
from tests.solve.simulation.making import OPEN, Falls, approach

LAST = 1 - 2**-53
"""The largest number that dice give."""


@each_row("name", sorted(MIXES))
def test_every_landscape_can_be_solved_and_keeps_within_its_ranges(name: str) -> None:
    for seed in range(200):
        one = draw_landscape(MIXES[name], Random(seed))
        assert any(way.is_right and any(not path.is_dead for path in way.paths) for way in one.approaches)
        assert 1 <= len(one.subtasks) <= 4
        assert 2 <= len(one.approaches) <= 5
        for demands in one.subtasks:
            assert 1 <= len(demands) <= 4
            assert all(0.2 <= demand.difficulty <= 0.95 for demand in demands)
        for way in one.approaches:
            kind = APPROACH_KINDS[way.kind]
            for value, (low, high) in ((way.start, kind.start), (way.step, kind.step), (way.ceiling, kind.ceiling)):
                assert low <= value <= high
            assert 1 <= len(way.paths) <= 4
            assert 1 <= len(way.tools) <= 3
        assert one.tools <= {f"tool {number}" for number in range(1, MIXES[name].tools + 1)}


def test_the_same_dice_give_the_same_landscape_and_others_another() -> None:
    mix = MIXES["mixed"]
    assert draw_landscape(mix, Random(1)) == draw_landscape(mix, Random(1))
    assert draw_landscape(mix, Random(1)) != draw_landscape(mix, Random(2))


@each_row("kind", sorted(APPROACH_KINDS))
def test_kinds_are_drawn_as_frequently_as_the_mix_says(kind: str) -> None:
    only = replace(LandscapeMix("one kind", climb=0, valley=0, wrong=0, minimum=0, mirage=0), **{kind: 1.0})  # type: ignore[arg-type]
    kinds = [way.kind for seed in range(50) for way in draw_landscape(only, Random(seed)).approaches]
    assert set(kinds) <= {kind, "climb"}  # one right approach there always is
    assert kinds.count(kind) > len(kinds) / 2


def test_paths_are_dead_as_frequently_as_the_mix_says_but_never_all() -> None:
    none, every = replace(MIXES["mixed"], dead=0), replace(MIXES["mixed"], dead=1)
    for seed in range(50):
        assert not any(path.is_dead for way in draw_landscape(none, Random(seed)).approaches for path in way.paths)
        for way in draw_landscape(every, Random(seed)).approaches:
            assert sum(not path.is_dead for path in way.paths) == 1


@each_row(
    ("kind", "ceiling", "by_round"),
    [
        ("climb", 1.0, [0.4, 0.6, 0.8, 1.0, 1.0]),
        ("minimum", 0.7, [0.4, 0.6, 0.7, 0.7, 0.7]),
        ("valley", 1.0, [0.4, 0.3, 0.6, 0.9, 1.0]),
        ("mirage", 0.8, [0.4, 0.6, 0.4, 0.2, 0.0]),
        ("wrong", 0.5, [0.4, 0.5, 0.5, 0.5, 0.5]),
    ],
)
def test_how_an_approach_goes_while_it_is_kept_to(kind: str, ceiling: float, by_round: list[float]) -> None:
    way = approach(kind, start=0.4, step=0.2, ceiling=ceiling)
    assert [way.quality(OPEN, rounds) for rounds in range(5)] == pytest.approx(by_round)


def test_a_path_is_better_or_worse_than_its_approach() -> None:
    assert approach(start=0.4).quality(SimulatedPath(is_dead=False, offset=-0.1), 0) == pytest.approx(0.3)
    assert approach(start=0.0).quality(SimulatedPath(is_dead=False, offset=-0.1), 0) == 0.0


@each_row(("fell", "number"), [(0.0, 2), (0.33, 2), (0.34, 3), (0.67, 4), (LAST, 4)])
def test_whole_numbers_include_both_ends(fell: float, number: int) -> None:
    assert draw_int(Falls(fell), 2, 4) == number
    assert draw_choice(Falls(fell), ["", "", "a", "b", "c"][2:]) == "abc"[number - 2]


def test_a_number_lies_within_its_range() -> None:
    assert draw_float(Falls(0.0), (0.2, 0.6)) == 0.2
    assert draw_float(Falls(0.5), (0.2, 0.6)) == pytest.approx(0.4)
    assert draw_float(Falls(LAST), (-0.1, 0.1)) <= 0.1
