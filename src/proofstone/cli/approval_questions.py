"""What `proofstone run` asks at an approval gate, put to the person at this terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proofstone.cli.gate_session import Line, typed_line
from proofstone.cli.render.pipeline import WANT_WORDS, option_line
from proofstone.cli.task_commands import plain
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.pipeline.models.run import ApprovalOption, ApprovalRequest

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ApprovalQuestions:
    console: Console
    line: Line = typed_line

    def ask(self, request: ApprovalRequest) -> tuple[str, str] | None:
        """The option that is taken, and what the person says beside it; None: they leave it."""
        self._print(f"\n{request.question}", "bold yellow")
        self._print(request.context)
        for number, option in enumerate(request.options, start=1):
            self._print(f"  {number}. {option.id}: {option_line(option)}")
        while True:
            self._print("a number or its word; an empty line leaves it, and the run waits", "dim")
            answer = self._typed()
            if not answer:
                return None
            chosen = _chosen(request, answer)
            if chosen is None:
                self._print(f"`{answer}` is none of the {len(request.options)} options", "yellow")
                continue
            said = self._words(chosen) if chosen.id in WANT_WORDS else ""
            if said is not None:
                return chosen.id, said

    def _words(self, option: ApprovalOption) -> str | None:
        """What the person wants; None: they choose again."""
        self._print(f"{option.id}: say what you want; an empty line chooses again", "dim")
        return self._typed() or None

    def _typed(self) -> str:
        while True:
            line = self.line()
            try:
                return plain("your answer", line or "")
            except InputError as error:
                self._print(error.message, "red")

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(printable(text), style=style, soft_wrap=True)


def _chosen(request: ApprovalRequest, answer: str) -> ApprovalOption | None:
    if answer.isascii() and answer.isdecimal():
        number = int(answer)
        return request.options[number - 1] if 0 < number <= len(request.options) else None
    return request.option(answer.lower())
