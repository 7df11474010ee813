"""What all tests stand on."""

from __future__ import annotations

import hashlib
import os
import signal
from collections import defaultdict

import pytest

# A suite that a script starts in the background inherits "ignore interrupts", and so would every `assay` it starts:
# the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Folders whose tests start programs. Of a test with many variants a sample is tried there; `make test-sweep` tries all.
SAMPLED = (
    "agents", "cheats", "check", "crash", "executors", "gate", "gate_git", "gate_surface", "hazards", "hooks", "layers",
    "layouts", "programs", "prove",
)  # fmt: skip
VARIANTS = 2
SEED = os.environ.get("ASSAY_TEST_SEED", "1")
"""Which variants: another seed, another sample."""


@pytest.hookimpl(trylast=True)  # of what `-m` has left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whoever names files or tests gets all of them."""
    whole = all((config.invocation_params.dir / arg).resolve() == config.rootpath / "tests" for arg in config.args)
    if os.environ.get("ASSAY_TEST_SWEEP") == "1" or not whole:
        return
    variants: defaultdict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        folder = item.path.relative_to(config.rootpath).parts[1:2]
        if isinstance(item, pytest.Function) and folder and folder[0] in SAMPLED and hasattr(item, "callspec"):
            variants[str(item.path), item.originalname].append(item)
    left_out = {id(item) for several in variants.values() for item in sorted(several, key=_drawn)[VARIANTS:]}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def _drawn(item: pytest.Item) -> str:
    return hashlib.sha256(f"{SEED}:{item.nodeid}".encode()).hexdigest()
