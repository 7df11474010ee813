"""A person as executor: they are told where to work, and resumed by their word, `proofstone done`, or an
interruption."""

from __future__ import annotations

import os
import pty
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from proofstone.agents.executors.people import HumanExecutor, Terminal
from proofstone.agents.roles.models.gate import ExecutorStatus
from tests.agents.executors.bench import Bench, assigned


@contextmanager
def typed(text: str, *, after: float = 0) -> Iterator[Terminal]:
    """A terminal at which this is typed, after a while: what was typed before a question answers nothing."""
    keyboard, screen = pty.openpty()
    hand = threading.Timer(after, os.write, (keyboard, text.encode()))
    try:
        if after:
            hand.start()
        else:
            os.write(keyboard, text.encode())
        yield Terminal(screen)
    finally:
        hand.cancel()
        os.close(keyboard)
        os.close(screen)


WORDS = {
    "\n": ("success", None),
    "done\n": ("success", None),
    "failed cannot be done\n": ("failure", "cannot be done"),
    "blocked: task 1 is not there\n": ("blocked", "task 1 is not there"),
    "blocked\n\n": ("success", None),
    "what?\ndone\n": ("success", None),
}


@pytest.mark.parametrize("text,expected", WORDS.items())
def test_their_word_on_the_terminal_is_the_claim(plain: Bench, text: str, expected: tuple[str, str | None]) -> None:
    with typed(text, after=0.3) as terminal:
        done = HumanExecutor(terminal).execute(assigned(seconds=0.01), plain.site())
    assert done.claim and (done.claim.status, done.claim.error) == expected
    assert done.claim.files_modified is None


def test_they_are_told_where_to_work_and_how_to_end(plain: Bench) -> None:
    with typed("hm\n\n", after=0.3) as terminal:
        HumanExecutor(terminal).execute(assigned(), plain.site())
    told = "\n".join(plain.said)
    assert str(plain.work_tree) in told and "a.txt" in told and "test -f a.txt" in told
    assert "proofstone done 20260226T143000Z-abcdef task-02" in told and "press Enter" in told
    assert plain.said[-1].startswith("`hm` is not an answer")


@pytest.mark.parametrize("at_a_terminal", [True, False])
def test_proofstone_done_is_heard_while_the_terminal_is_silent(plain: Bench, at_a_terminal: bool) -> None:
    asked: list[int] = []

    def heard() -> bool:
        asked.append(1)
        return len(asked) > 1

    with typed("not a line yet") as terminal:
        done = HumanExecutor(terminal if at_a_terminal else None).execute(assigned(), plain.site(heard=heard))
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS
    assert ("press Enter" in "\n".join(plain.said)) is at_a_terminal


@pytest.mark.parametrize("at_a_terminal", [True, False])
def test_an_interruption_ends_the_waiting(plain: Bench, at_a_terminal: bool) -> None:
    plain.cancel.set()
    with typed("") as terminal:
        done = HumanExecutor(terminal if at_a_terminal else None).execute(assigned(), plain.site())
    assert done.cancelled and done.claim is None


def test_a_terminal_gives_line_by_line_and_nothing_when_it_is_silent() -> None:
    with typed("one\ntwo\nthr") as terminal:
        assert [terminal(0.01) for _ in range(4)] == ["one", "two", None, None]


def test_a_terminal_at_its_end_says_nothing_more() -> None:
    with typed("one\n\x04") as terminal:
        assert [terminal(0.01) for _ in range(3)] == ["one", None, None]


def test_what_is_no_terminal_says_nothing() -> None:
    read, write = os.pipe()
    os.write(write, b"done\n")
    assert Terminal(read)(0.01) is None
    os.close(read)
    os.close(write)


def test_what_was_typed_before_the_question_answers_nothing(plain: Bench) -> None:
    heard = iter((False, False, True))
    with typed("failed too early\n") as terminal:
        site = replace(plain.site(), is_done=lambda: next(heard))
        done = HumanExecutor(terminal).execute(assigned(), site)
    assert done.claim and done.claim.status is ExecutorStatus.SUCCESS


def test_the_end_of_input_at_a_terminal_is_none_and_what_is_typed_later_is_heard() -> None:
    ours, theirs = pty.openpty()
    try:
        terminal = Terminal(theirs)
        os.write(ours, b"\x04")
        assert terminal(1.0) is None
        os.write(ours, b"  failed no idea\n")
        assert terminal(1.0) == "  failed no idea"
    finally:
        os.close(ours)
        os.close(theirs)
