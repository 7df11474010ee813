"""A bench that was checked once, honestly, before anything breaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.crash.bench")

from tests.crash.bench import Bench  # noqa: E402


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench.made(tmp_path_factory.mktemp("bench"))


@pytest.fixture
def bench(shared_bench: Bench) -> Iterator[Bench]:
    """The one bench of a module; each test makes a change of its own and looks at what stood before it."""
    yield shared_bench
    shared_bench.end_what_is_left()
