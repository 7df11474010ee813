"""`--mode interactive`: each answer becomes the word that it means, and anything else is asked again."""

from __future__ import annotations

import io

from rich.console import Console

from proofstone.cli.gate_session import TaskQuestions
from proofstone.errors import InputError
from proofstone.gate.models import RunView
from proofstone.gate.request import UserCommand, UserCommandKind
from tests.gate import views
from tests.gate.views import overridden, view
from tests.rows import each_row

CHECKPOINT = view({"Colour": ()}, checkpoints=("Colour",), asks={"Colour": "which one?"})
REVIEW = view({"Basket": views.TO_REVIEW}, asks={"Basket": "look at it"})
FAILURE = view({"Basket": views.THRICE_FAILED})
COMMIT = view({"Basket": (overridden(),)}, asks={"Basket": "commit it"})


def put(seen: RunView, *typed: str) -> tuple[bool, list[tuple[str, UserCommand]], str]:
    """Whether anything was said, what, and what was shown meanwhile."""
    lines, heard, shown = list(typed), [], io.StringIO()

    def say(task: str, word: UserCommand) -> str:
        heard.append((task, word))
        return "recorded"

    questions = TaskQuestions(Console(file=shown, width=200), lambda: lines.pop(0) if lines else None)
    return questions.ask_all(seen, say), heard, shown.getvalue()


@each_row(
    ("seen", "typed", "kind", "text"),
    [
        (CHECKPOINT, "done", UserCommandKind.DONE, ""),
        (CHECKPOINT, "done: the blue one", UserCommandKind.DONE, "the blue one"),
        (REVIEW, "approve", UserCommandKind.APPROVED, ""),
        (REVIEW, "reject: no empty list", UserCommandKind.REJECTED, "no empty list"),
        (FAILURE, "retry", UserCommandKind.RETRY, ""),
        (FAILURE, "fix: use decimals", UserCommandKind.RETRY, "use decimals"),
        (COMMIT, "done", UserCommandKind.DONE, ""),
    ],
)
def test_an_answer_becomes_a_word(seen: RunView, typed: str, kind: UserCommandKind, text: str) -> None:
    spoken, heard, _ = put(seen, typed)
    assert spoken
    [(task, word)] = heard
    assert (task, word.kind, word.text) == ("task-01", kind, text)
    assert word.by


@each_row(
    ("seen", "typed"),
    [(CHECKPOINT, "approve"), (REVIEW, "reject"), (REVIEW, "done"), (FAILURE, "fix:"), (FAILURE, "done")],
)
def test_what_is_no_answer_is_asked_again(seen: RunView, typed: str) -> None:
    spoken, heard, shown = put(seen, typed)
    assert (spoken, heard) == (False, [])
    assert f"`{typed}` is not one of the answers" in shown


def test_a_skip_is_asked_for_its_reason() -> None:
    _, [(_, word)], _ = put(FAILURE, "skip", "verify-unavailable", "the payment sandbox is down")
    assert word.kind is UserCommandKind.SKIP
    assert word.override is not None
    assert (word.override.category, word.override.reason) == ("verify-unavailable", "the payment sandbox is down")


def test_a_skip_for_no_good_reason_is_refused_and_asked_again() -> None:
    spoken, _, shown = put(FAILURE, "skip", "time-pressure", "looks good to me", "")
    assert not spoken
    assert "say what is due when" in shown


def test_looking_into_it_shows_every_attempt_and_asks_again() -> None:
    spoken, heard, shown = put(FAILURE, "investigate", "retry")
    assert spoken
    assert len(heard) == 1
    assert shown.count("VERIFY_FAILURE") == 3


def test_nothing_typed_leaves_it_as_it_is() -> None:
    assert put(FAILURE, "")[:2] == (False, [])
    assert put(FAILURE)[:2] == (False, [])


def test_every_task_that_waits_is_asked_about() -> None:
    seen = view({"a": views.THRICE_FAILED, "b": views.PASSED, "c": views.BLOCKED})
    _, heard, _ = put(seen, "", "retry")
    assert [task for task, _ in heard] == ["task-03"]


def test_a_word_that_comes_too_late_is_no_end() -> None:
    def say(task: str, word: UserCommand) -> str:
        raise InputError("too late", hint="look again")

    shown = io.StringIO()
    assert not TaskQuestions(Console(file=shown, width=200), lambda: "retry").ask_all(FAILURE, say)
    assert "too late (look again)" in shown.getvalue()
