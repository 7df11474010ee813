"""`--mode interactive`: what a run asks, put to the person at this terminal; each answer becomes a word.

One sitting at the gate: `proofstone gate` and `proofstone resume` watch a run to its end, ask where they may, and
report.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer

from proofstone.agents.executors.people import Listen, Terminal
from proofstone.app.gate import resumed_gate, say
from proofstone.cli.output import Output
from proofstone.cli.process import interruptions
from proofstone.cli.render.gate import print_gate, print_trouble
from proofstone.cli.render.live_gate import LiveGate
from proofstone.cli.session import exported
from proofstone.cli.task_commands import overriding, plain, speaker
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.gate.models import GateReport, OverrideAction, RunOutcome, RunView, TaskView
from proofstone.gate.request import ResumeRequest, Watching, Word, WordKind
from proofstone.gate.rules.answers import Ask, asked, resume, waiting
from proofstone.gate.rules.passing import CATEGORIES

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


EXIT: Final = {
    RunOutcome.PASSED: 0,
    RunOutcome.FAILED: 1,
    RunOutcome.HALTED: 1,
    RunOutcome.NEEDS_HUMAN: 3,
    RunOutcome.BUDGET_EXHAUSTED: 4,
}


class Mode(StrEnum):
    AUTONOMOUS = "autonomous"
    INTERACTIVE = "interactive"


ModeOption = Annotated[
    Mode,
    typer.Option(
        "--mode",
        help="`interactive`: when the run stops for you, be asked here, and go on with your answer.",
    ),
]
MinutesOption = Annotated[
    float | None,
    typer.Option(
        "--budget-minutes",
        metavar="M",
        help="The longest that it may take; then it stops, and everything is kept. Else gate.run_minutes.",
        show_default=False,
    ),
]
NoWaitOption = Annotated[
    bool,
    typer.Option(
        "--no-wait",
        help="Do not wait for a person who executes a task: stop, and go on with `proofstone resume` later.",
    ),
]


class Run(Protocol):
    """As much of an engine's run as a sitting needs."""

    def run(self) -> GateReport: ...

    def view(self) -> RunView: ...


Begin = Callable[[Watching, Listen | None], AbstractContextManager[Run]]


@dataclass(frozen=True)
class Sitting:
    output: Output
    mode: Mode = Mode.AUTONOMOUS
    wait: bool = True

    def follow(self, begin: Begin) -> int:
        """Watch the run to its end, or to where the person leaves it; its exit code."""
        if self.mode is Mode.INTERACTIVE and (self.output.json or not sys.stdin.isatty()):
            raise InputError(
                "--mode interactive asks on a terminal, and here is none",
                hint="leave it out; `proofstone status` shows what is asked, with the commands that answer",
            )
        # Around all of it: whoever waits for a slow collector has read by then what came of the run.
        with exported(self.output) as ran:
            report, view = self._watched(begin, ran)
            while self.mode is Mode.INTERACTIVE and self._answered(view):
                report, view = self._watched(self._resumed(view.run_id), ran)
            if self.output.json:
                self.output.document(report.model_dump(mode="json"))
            else:
                sys.stderr.flush()
                print_gate(self.output.results(), report, view)
        return EXIT[report.outcome]

    def _watched(self, begin: Begin, ran: Callable[[str], None]) -> tuple[GateReport, RunView]:
        listen = Terminal() if sys.stdin.isatty() and not self.output.json else None
        console = self.output.progress()
        live = LiveGate(console, interactive=console.is_terminal, asks_here=listen is not None)
        try:
            with interruptions(), begin(live, listen) as run, live.showing():
                ran(run.view().run_id)
                report = run.run()
                return report, run.view().model_copy(update={"running": False})
        except KeyboardInterrupt:
            if live.view is not None:
                told = f"everything is kept; go on with: {resume(live.view.run_id)}"
                sys.stderr.write(f"\n{told}\n")
            raise

    def _answered(self, view: RunView) -> bool:
        questions = Questions(replace(self.output, quiet=False).progress())  # a question is no progress
        return questions.put(view, lambda task, word: say(view.run_id, task, word))

    def _resumed(self, run_id: str) -> Begin:
        request = ResumeRequest(wait=self.wait)
        return lambda watching, listen: resumed_gate(run_id, request, watching, listen=listen)


def minutes(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise InputError(f"--budget-minutes {value:g}: must be more than 0", hint="for instance --budget-minutes 90")
    return value
