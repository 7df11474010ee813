"""Which packages a run takes: a seeded sample in the ordinary suite, all of them in the sweep."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

from tests.real.packages import Package

SWEEP = os.environ.get("PROOFSTONE_TEST_SWEEP") == "1"
SEED = int(os.environ.get("PROOFSTONE_TEST_SEED", "7"))


def sampled(packages: Sequence[Package], count: int) -> list[ParameterSet]:
    """Every package; those outside the sample belong to the sweep."""
    chosen = set(random.Random(SEED).sample([str(one) for one in packages], count))
    return [_parameter(package, ordinary=str(package) in chosen) for package in packages]


def _parameter(package: Package, *, ordinary: bool) -> ParameterSet:
    only_swept = (pytest.mark.sweep, pytest.mark.skipif(not SWEEP, reason="not in the sample; PROOFSTONE_TEST_SWEEP=1"))
    return pytest.param(package, id=str(package), marks=() if ordinary else only_swept)
