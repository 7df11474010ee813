"""Ask the person at this terminal what `proofstone run` needs at an approval gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proofstone.cli.output import LineReader, read_typed_line
from proofstone.cli.render.pipeline import format_approval_facts, format_option
from proofstone.cli.task_commands import require_text
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.pipeline.models.run import ApprovalOption, ApprovalRequest
from proofstone.pipeline.rules.approvals import OPTIONS_WITH_NOTE

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ApprovalQuestions:
    """The questions of a run at its approval gates."""

    console: Console
    read_line: LineReader = read_typed_line

    def ask(self, request: ApprovalRequest) -> tuple[str, str] | None:
        """Return the chosen option and the person's note; None if they do not answer."""
        self._print(f"\n{request.question}", "bold yellow")
        self._print(request.context)
        self._print(format_approval_facts(request), "dim")
        for number, option in enumerate(request.options, start=1):
            self._print(f"  {number}. {option.id}: {format_option(option)}")
        while True:
            self._print("type a number or a name; an empty line leaves the question, and the run waits", "dim")
            answer = self._read_answer()
            if not answer:
                return None
            chosen = _find_option(request, answer)
            if chosen is None:
                self._print(f"`{answer}` is not one of the {len(request.options)} options", "yellow")
                continue
            note = self._ask_note(chosen) if chosen.id in OPTIONS_WITH_NOTE else ""
            if note is not None:
                return chosen.id, note

    def _ask_note(self, option: ApprovalOption) -> str | None:
        """Return the person's note; None if they want to choose again."""
        self._print(f"{option.id}: say what you want; an empty line goes back to the options", "dim")
        return self._read_answer() or None

    def _read_answer(self) -> str:
        while True:
            line = self.read_line()
            try:
                return require_text("your answer", line or "")
            except InputError as error:
                self._print(error.message, "red")

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(escape_control(text), style=style, soft_wrap=True)


def _find_option(request: ApprovalRequest, answer: str) -> ApprovalOption | None:
    if answer.isascii() and answer.isdecimal():
        number = int(answer)
        return request.options[number - 1] if 0 < number <= len(request.options) else None
    return request.find_option(answer.lower())
