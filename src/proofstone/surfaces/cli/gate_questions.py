"""`--mode interactive`: what a run asks, put to the person at this terminal; each answer becomes a word."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from proofstone.contracts.gate_record import OverrideAction
from proofstone.contracts.gate_report import RunView, TaskView
from proofstone.core.gate.answers import Ask, asked, waiting
from proofstone.core.gate.overrides import CATEGORIES
from proofstone.engine.gate.request import Word, WordKind
from proofstone.errors import InputError
from proofstone.surfaces.cli.text import printable
from proofstone.surfaces.cli.words import overriding, plain, speaker
from proofstone.surfaces.report.gate import print_trouble

if TYPE_CHECKING:
    from rich.console import Console

Line = Callable[[], str | None]
"""The next line that the person types; None: they are gone."""

_CHOICES: Final = {
    Ask.CHECKPOINT: "`done`, or `done: what you decided`",
    Ask.WORK: "`done`",
    Ask.REVIEW: "`approve`, or `reject: why`",
    Ask.FAILURE: "`retry`, `fix: what to do differently`, `skip`, or `investigate`",
    Ask.COMMIT: "`done`, when you have committed it",
}


def typed_line() -> str | None:
    line = sys.stdin.readline()
    return line.strip() if line else None


@dataclass(frozen=True)
class Questions:
    console: Console
    line: Line = typed_line

    def put(self, view: RunView, say: Callable[[str, Word], str]) -> bool:
        """Ask about every task that waits for a person; whether anything was said."""
        spoken = False
        for task in waiting(view):
            word = self._about(view, task)
            if word is None:
                continue
            try:
                self._print(f"{task.record.id}: {say(task.record.id, word)}")
                spoken = True
            except InputError as error:
                self._complain(error)
        return spoken

    def _about(self, view: RunView, task: TaskView) -> Word | None:
        """The person's word about the task; None if they leave it."""
        ask = asked(task)
        if ask is None:
            return None
        self._print(f"\n{task.record.id} {view.plan.task(task.record.id).name}: {task.asks}", "bold yellow")
        if task.work_tree:
            self._print(f"work in {task.work_tree}")
        while True:
            self._print(f"{_CHOICES[ask]}; an empty line leaves it")
            answer = self.line()
            if not answer:
                return None
            if ask is Ask.FAILURE and answer.lower() == "investigate":
                print_trouble(self.console, view, task)
                continue
            try:
                word = self._word(ask, task, answer)
            except InputError as error:
                self._complain(error)
                continue
            if word is not None:
                return word

    def _word(self, ask: Ask, task: TaskView, answer: str) -> Word | None:
        first, _, rest = plain("your answer", answer).partition(" ")
        text = rest.strip()
        match ask, first.rstrip(":").lower():
            case ((Ask.CHECKPOINT | Ask.WORK | Ask.COMMIT), "done"):
                return Word(WordKind.DONE, speaker(), text)
            case Ask.REVIEW, "approve" | "approved":
                return Word(WordKind.APPROVED, speaker(), text)
            case Ask.REVIEW, "reject" | "rejected" if text:
                return Word(WordKind.REJECTED, speaker(), text)
            case Ask.FAILURE, "retry":
                return Word(WordKind.RETRY, speaker(), text)
            case Ask.FAILURE, "fix" if text:
                return Word(WordKind.RETRY, speaker(), text)
            case Ask.FAILURE, "skip":
                return self._skip(task)
        self._print(f"`{answer}` is no answer here")
        return None

    def _skip(self, task: TaskView) -> Word | None:
        self._print(f"why can it not be verified? {', '.join(CATEGORIES)}")
        category = self.line()
        self._print("and the reason, in your own words; it is recorded with your name")
        reason = self.line()
        if not category or not reason:
            return None
        return overriding(task.record, OverrideAction.SKIP, reason, category)

    def _complain(self, error: InputError) -> None:
        self._print(error.message + (f" ({error.hint})" if error.hint else ""), "red")

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(printable(text), style=style, soft_wrap=True)
