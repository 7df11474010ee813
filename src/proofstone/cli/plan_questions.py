"""Ask the person at this terminal the questions of the plan gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from proofstone.cli.output import read_typed_line
from proofstone.cli.task_commands import require_text
from proofstone.common.text import escape_control
from proofstone.plan_gate.models import OpenQuestion
from proofstone.plan_gate.rules.decision import parse_option

if TYPE_CHECKING:
    from rich.console import Console


def ask_plan_questions(console: Console, questions: Sequence[OpenQuestion]) -> Mapping[str, str]:
    """Ask at this terminal; an empty line leaves a question."""
    answers = {}
    for question in questions:
        console.print(
            escape_control(f"\n{question.challenge}: {question.question}"), style="bold yellow", soft_wrap=True
        )
        console.print(escape_control(f"  {question.why}"), style="dim", soft_wrap=True)
        for number, option in enumerate(question.options, start=1):
            console.print(escape_control(f"  {number}. {option}"), soft_wrap=True)
        choice = "a number, or your own words" if question.options else "in your own words"
        console.print(f"{choice}; an empty line leaves the question", style="dim")
        while (answer := parse_option(require_text("your answer", read_typed_line() or ""), question.options)) is None:
            console.print(f"there are {len(question.options)} options; {choice}", style="yellow")
        if answer in question.options:
            console.print(escape_control(f"{question.challenge}: {answer}"), style="dim")
        answers[question.challenge] = answer
    return answers
