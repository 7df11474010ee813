"""Kills at seeded moments over check, gate and run: a sample here, a larger one in CI, a thousand in the sweep."""

from __future__ import annotations

import pytest

from tests.conftest import IN_CI, SEED
from tests.crash.kills import Harness
from tests.crash.targets import TARGETS

SAMPLE = 12 if IN_CI else 3
SWEEP = 1000


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    made = Harness(tmp_path_factory.mktemp("kills"), SEED)
    made.measure()
    return made


def test_a_case_is_the_same_for_the_same_seed(harness: Harness) -> None:
    assert harness.draw(3) == harness.draw(3)
    assert {harness.draw(number).command for number in range(40)} == set(TARGETS)
    assert {bool(harness.draw(number).lie) for number in range(40)} == {False, True}


def test_kills_lose_double_and_pass_nothing(harness: Harness) -> None:
    assert _delivered(harness, SAMPLE) >= SAMPLE


@pytest.mark.sweep
def test_a_thousand_kills_lose_double_and_pass_nothing(harness: Harness) -> None:
    assert _delivered(harness, SWEEP) >= SWEEP


def _delivered(harness: Harness, wanted: int) -> int:
    """Run cases until so many kills have hit, and return how many did."""
    delivered = number = 0
    while delivered < wanted:
        delivered += harness.run(harness.draw(number))
        number += 1
    return delivered
