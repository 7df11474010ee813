"""`human` as a backend: a person sees what an agent would, and what they type is a turn."""

from __future__ import annotations

import json
import os
import pty
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from proofstone.agents.backends import Backend
from proofstone.agents.backends.human import HumanBackend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.executors.people import Terminal
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.common.models import Usage
from proofstone.testing.backend_conformance import (
    AnswerPlay,
    BackendConformance,
    BuildBackend,
    CallPlay,
    CrashPlay,
    HangPlay,
    Play,
    TextPlay,
)
from tests.agents.backends.conversations import after, repaired, site_of, talk
from tests.agents.executors.bench import Bench


class Typist:
    """A person who types these lines, one each time they are waited for, and then nothing."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = list(lines)

    def __call__(self, seconds: float) -> str | None:
        if seconds > 0 and self._lines:
            return self._lines.pop(0)
        time.sleep(seconds)
        return None


def asked(
    bench: Bench, typed: str, conversation: Conversation | None = None, seconds: float | None = 20
) -> Turn | Fault:
    """What came of the question when this was typed, every line of it."""
    return HumanBackend(Typist(typed.split("\n"))).turn(conversation or talk(), site_of(bench), seconds)


# What is typed → answer and text.
ANSWERS = {
    "finding: an a\n.": ({"finding": "an a"}, ""),
    "finding: an a\nwhere:\n  - path: a.txt\n\n  - path: b.txt\n.": (
        {"finding": "an a", "where": [{"path": "a.txt"}, {"path": "b.txt"}]},
        "",
    ),
    '{"finding": "an a"}\n.': ({"finding": "an a"}, ""),
    '{"finding":\n"an a"}\n': ({"finding": "an a"}, ""),
    '{"finding":\n\n"an a"}\n': ({"finding": "an a"}, ""),
    "finding: 2026-02-26\n.": ({"finding": "2026-02-26"}, ""),
    "1: yes\n.": ({"1": "yes"}, ""),
    "I do not know\n.": (None, "I do not know"),
    '```json\n{"finding": "x"}\n```\n.': (None, '```json\n{"finding": "x"}\n```'),
    "a: b: c\n.": (None, "a: b: c"),
    "a: .nan\n.": (None, "a: .nan"),
    '{"a": "\\ud800"}\n.': (None, '{"a": "\\ud800"}'),
    "{" + '"a": {' * 400 + "}" * 401 + "\n.": (None, "{" + '"a": {' * 400 + "}" * 401),
    "\n.\n?\nfinding: after all\n.": ({"finding": "after all"}, ""),
}


@pytest.mark.parametrize("typed,expected", ANSWERS.items())
def test_what_is_typed_is_the_answer(plain: Bench, typed: str, expected: tuple[object, str]) -> None:
    turn = asked(plain, typed)
    assert isinstance(turn, Turn), turn
    assert (turn.answer, turn.text) == expected
    assert (turn.model, turn.usage) == ("human", Usage(requests=1))


# What is typed after `!` → name and arguments of the call.
CALLS = {
    "!read path=src/a.py": ("read", {"path": "src/a.py"}),
    "!read path=123 first=3": ("read", {"path": "123", "first": 3}),
    "!read path='a b.txt'": ("read", {"path": "a b.txt"}),
    "! read path=a=b": ("read", {"path": "a=b"}),
    '!read {"path": "a", "first": 2}': ("read", {"path": "a", "first": 2}),
    "!status": ("status", {}),
    "!guess deep=true name=x": ("guess", {"deep": True, "name": "x"}),
}


@pytest.mark.parametrize("typed,expected", CALLS.items())
def test_a_tool_can_be_used(plain: Bench, typed: str, expected: tuple[str, dict[str, object]]) -> None:
    turn = asked(plain, typed)
    assert isinstance(turn, Turn) and turn.answer is None
    assert [(call.name, call.arguments) for call in turn.calls] == [expected]


@pytest.mark.parametrize("typed", ["!read a.txt", "!read {path", "!read path='a", "!read =a"])
def test_a_call_that_cannot_be_read_is_asked_for_again(plain: Bench, typed: str) -> None:
    turn = asked(plain, f"{typed}\n!read path=b")
    assert isinstance(turn, Turn) and turn.calls[0].arguments == {"path": "b"}
    assert plain.said[-1].endswith("write key=value, or a JSON object")


def test_the_answer_can_be_in_a_file(plain: Bench, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("finding: from a file\n")
    turn = asked(plain, f"@{tmp_path / 'a.yaml'}")
    assert isinstance(turn, Turn) and turn.answer == {"finding": "from a file"}


# A file that holds no answer → what is said of it.
FILES = {
    "none.yaml": "cannot be read: No such file",
    "folder": "cannot be read: Is a directory",
    "bytes": "cannot be read: 'utf-8' codec",
    "huge": "it has more than 8388608 bytes",
    "a\0b": "cannot be read: embedded null byte",
}


@pytest.mark.parametrize("name,words", FILES.items())
def test_a_file_that_cannot_be_read_is_asked_for_again(plain: Bench, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate((8 << 20) + 1)
    turn = asked(plain, f"@{tmp_path / name}\nfinding: typed\n.")
    assert isinstance(turn, Turn) and turn.answer == {"finding": "typed"}
    assert words in plain.said[-1]


def test_they_can_say_that_it_cannot_be_done(plain: Bench) -> None:
    assert asked(plain, "failed there is no a.txt") == Fault(kind=FaultKind.FAILED, why="there is no a.txt")
    assert asked(plain, "failed") == Fault(kind=FaultKind.FAILED, why="the person gave up")
    turn = asked(plain, "failed: yes\n.")
    assert isinstance(turn, Turn) and turn.answer == {"failed": "yes"}


def test_they_are_shown_what_an_agent_would_be(plain: Bench) -> None:
    rules = "\n".join(f"rule {number}" for number in range(1, 21))
    said = talk(role="reviewer", focus="security", task="task-02", task_name="Greet", attempt=2, instructions=rules)
    asked(plain, "finding: x\n.", said)
    told = "\n".join(plain.said)
    assert "You answer as reviewer:security, task-02 (Greet), attempt 2" in told
    assert "rule 12\n… and 8 more lines of instructions\n" in told
    assert "What is in a.txt?" in told
    assert "  finding: text – What was found.\n" in told
    assert "  where: a list of: an object, may be left out\n    path: text\n" in told
    assert "  level: low | high or null, may be left out\n" in told
    assert "`!read path=src/a.py`. Your tools: read." in told and "a single `.`" in told and "`@FILE`" in told


def test_later_they_are_shown_what_is_new_and_everything_if_they_ask(plain: Bench) -> None:
    said = talk()
    said = after(said, asked(plain, "!read path=a.txt", said), "an a")
    plain.said.clear()
    answer = asked(plain, "no idea\n.", said)
    assert plain.said[:4] == ["[result of read]", "```", "an a", "```"] and "What is in a.txt?" not in plain.said
    plain.said.clear()
    asked(plain, "?\nx: y\n.", repaired(said, answer))
    assert plain.said[0] == "finding: this field is missing"
    told = "\n".join(plain.said)
    assert "What is in a.txt?" in told and "You said:\n```\nno idea\n```" in told


def test_without_a_terminal_there_is_nobody_to_ask(plain: Bench) -> None:
    fault = HumanBackend(None).turn(talk(), site_of(plain), None)
    assert isinstance(fault, Fault) and fault.kind is FaultKind.UNAVAILABLE and "no terminal" in fault.why
    assert plain.said == []


def test_a_deadline_is_kept_if_there_is_one(plain: Bench) -> None:
    assert asked(plain, "finding: x", seconds=0.2) == Fault(kind=FaultKind.TIMEOUT, why="no answer after 0.2 s")


def test_an_interruption_ends_the_waiting(plain: Bench) -> None:
    plain.cancel.set()
    fault = asked(plain, "", seconds=None)
    assert isinstance(fault, Fault) and fault.kind is FaultKind.CANCELLED


# When they say elsewhere that they are finished: role and what was typed → answer, or the kind of fault.
DONE = {
    ("executor", 0): {"status": "success"},
    ("researcher", 0): FaultKind.FAILED,
    ("researcher", 1): {"finding": "half"},
}


@pytest.mark.parametrize("case,expected", DONE.items())
def test_proofstone_done_ends_it_with_what_there_is(plain: Bench, case: tuple[str, int], expected: object) -> None:
    role, lines = case
    heard = iter((*(False for _ in range(lines)), True))
    site = replace(plain.site(), is_done=lambda: next(heard))
    said = HumanBackend(Typist(["finding: half"])).turn(talk(role=role), site, 20)
    assert (said.kind if isinstance(said, Fault) else said.answer) == expected


def test_a_terminal_serves_and_what_was_typed_before_the_question_answers_nothing(plain: Bench) -> None:
    keyboard, screen = pty.openpty()
    try:
        os.write(keyboard, b"failed too early\n")
        drained = threading.Event()

        def heard() -> bool:  # asked for the first time when the question has been put
            drained.set()
            return False

        site = replace(plain.site(), is_done=heard)
        ends: list[Turn | Fault] = []
        work = threading.Thread(target=lambda: ends.append(HumanBackend(Terminal(screen)).turn(talk(), site, 20)))
        work.start()
        assert drained.wait(20)
        os.write(keyboard, '{"finding": "Grüße"}\n\n'.encode())
        work.join(30)
    finally:
        os.close(keyboard)
        os.close(screen)
    assert isinstance(ends[0], Turn) and ends[0].answer == {"finding": "Grüße"}


def test_a_person_has_no_vendor() -> None:
    backend: Backend = HumanBackend()
    assert (backend.identity.spec, backend.identity.vendor) == ("human", None)


class TestConformance(BackendConformance):
    """The conformance suite, with a person who types what it is about. They break down by giving up."""

    crash_kinds = frozenset((FaultKind.FAILED,))

    @pytest.fixture
    def site(self, plain: Bench) -> ExecutionContext:
        return plain.site()

    @pytest.fixture
    def stage(self, tmp_path: Path) -> BuildBackend:
        def of(*plays: Play) -> HumanBackend:
            return HumanBackend(Typist(line for play in plays for line in typed(play, tmp_path)))

        return of


def typed(play: Play, folder: Path) -> list[str]:
    match play:
        case AnswerPlay(answer):
            file = folder / f"{len(list(folder.iterdir()))}.json"
            file.write_text(json.dumps(dict(answer), ensure_ascii=False), "utf-8")
            return [f"@{file}"]
        case TextPlay(text):
            return [*text.split("\n"), "."]
        case CallPlay(name, arguments):
            return [f"!{name} {json.dumps(dict(arguments))}"]
        case HangPlay():
            return []
        case CrashPlay():
            return ["failed I cannot"]
