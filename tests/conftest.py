"""What all tests stand on."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import tiers

# A suite that a script starts in the background inherits "ignore interrupts", and so would every `proofstone` it
# starts:
# the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long a machine takes to draw an example is no matter of what is tested.
settings.register_profile("proofstone", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("proofstone")

# `make test-fast`: fewer examples, and no test may start a program.
GUARD = tiers.Guard() if os.environ.get("PROOFSTONE_TEST_FAST") == "1" else None
if GUARD is not None:
    settings.register_profile("fast", settings.get_profile("proofstone"), max_examples=10)
    settings.load_profile("fast")

SEED = os.environ.get("PROOFSTONE_TEST_SEED", "1")
"""Which variants of a test that is marked `few`: another seed, another sample."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    if GUARD is None:
        return (yield)
    GUARD.is_on = True
    try:
        return (yield)
    finally:
        GUARD.is_on = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays until the end: it need not be searched for garbage over and over, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # of what `-m` has left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that is marked `few`, so many variants are tried; whoever names files or tests gets all of them."""
    whole = all((config.invocation_params.dir / arg).resolve() == config.rootpath / "tests" for arg in config.args)
    if os.environ.get("PROOFSTONE_TEST_SWEEP") == "1" or not whole:
        return
    variants: defaultdict[tuple[Path, str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("few")
        if marker is not None and isinstance(item, pytest.Function):
            variants[item.path, item.originalname, marker.args[0]].append(item)
    left_out = {id(item) for (_, _, few), all_ in variants.items() for item in sorted(all_, key=_drawn)[few:]}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def _drawn(item: pytest.Item) -> str:
    return hashlib.sha256(f"{SEED}:{item.nodeid}".encode()).hexdigest()
