"""What all tests stand on: the tiers, the samples, and the fixtures that every folder may use.

`workshop` is a person's machine with repositories on it, `home` a state directory with a `ledger` in it. They import
what they need when they are used: a run of the pure tests imports neither git's nor the ledger's modules.
"""

from __future__ import annotations

import gc
import hashlib
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import tiers

if TYPE_CHECKING:
    from proofstone.ledger.sqlite import SqliteLedger
    from tests.workshop import Workshop

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
IN_CI = os.environ.get("PROOFSTONE_TEST_CI") == "1"
"""`make test-ci`: what is marked `ci` is run as well, and `few(1, ci=3)` draws three."""


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


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at markers
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the test with its tier; the tests of real coding agents have a job of their own."""
    item.add_marker(tiers.find_tier(item.path.relative_to(item.config.rootpath).as_posix()))


@pytest.hookimpl(trylast=True)  # of what `-m` has left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that is marked `few`, so many variants are tried; whoever names files or tests gets all of them.

    A fast run names its files too, and is a sample all the same.
    """
    whole = GUARD is not None or all(
        (config.invocation_params.dir / arg).resolve() == config.rootpath / "tests" for arg in config.args
    )
    if os.environ.get("PROOFSTONE_TEST_SWEEP") == "1" or not whole:
        return
    variants: defaultdict[tuple[Path, str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("few")
        if marker is not None and isinstance(item, pytest.Function):
            few = marker.kwargs.get("ci", marker.args[0]) if IN_CI else marker.args[0]
            variants[item.path, item.originalname, few].append(item)
    left_out = {id(item) for (_, _, few), all_ in variants.items() for item in sorted(all_, key=_drawn)[few:]}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def _drawn(item: pytest.Item) -> str:
    return hashlib.sha256(f"{SEED}:{item.name}".encode()).hexdigest()


# Fixtures.


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """A person's machine: a HOME, a state directory, slots for checks, and repositories as the test makes them."""
    from tests.workshop import Workshop

    return Workshop.apart(tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state directory that is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def path(home: Path) -> Path:
    """Where its ledger lies."""
    from proofstone.ledger.connection import ledger_path

    return ledger_path(home)


@pytest.fixture
def open_ledger(path: Path) -> Iterator[Callable[[], SqliteLedger]]:
    """Opens that ledger, as often as the test likes; what was opened is closed after it."""
    from proofstone.ledger.sqlite import SqliteLedger

    opened: list[SqliteLedger] = []

    def open_once_more() -> SqliteLedger:
        opened.append(SqliteLedger(path))
        return opened[-1]

    yield open_once_more
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(open_ledger: Callable[[], SqliteLedger]) -> SqliteLedger:
    return open_ledger()
