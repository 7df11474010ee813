"""Several things at the same time: what ends one early ends all, and what waits for its turn never begins."""

from __future__ import annotations

import threading

import pytest

from proofstone.errors import UnavailableError
from proofstone.runtime.workflow import run_parallel


def test_what_came_of_each_is_in_their_order() -> None:
    second = threading.Event()

    def first() -> str:
        second.wait(10)
        return "first"

    def other() -> str:
        second.set()
        return "second"

    assert run_parallel([first, other], 2, threading.Event()) == ("first", "second")


def test_after_a_failure_nothing_that_waits_is_begun_and_what_is_at_work_is_told() -> None:
    begun: list[int] = []
    cancel = threading.Event()

    def fails() -> None:
        raise KeyboardInterrupt

    def at_work() -> None:
        begun.append(0)
        assert cancel.wait(10)

    def waits() -> None:
        begun.append(1)

    with pytest.raises(KeyboardInterrupt):
        run_parallel([fails, at_work, at_work, *[waits] * 20], 2, cancel)
    assert 1 not in begun


def test_when_a_provider_cannot_be_reached_the_others_come_to_their_end() -> None:
    ended: list[int] = []
    cancel, failed = threading.Event(), threading.Event()

    def fails() -> None:
        failed.set()
        raise UnavailableError("nobody answers")

    def at_work() -> None:
        assert failed.wait(10)
        assert not cancel.wait(0.01)
        ended.append(0)

    with pytest.raises(UnavailableError):
        run_parallel([fails, at_work, at_work, at_work], 2, cancel)
    assert len(ended) == 3
