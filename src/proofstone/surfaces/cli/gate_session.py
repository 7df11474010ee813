"""One sitting at the gate: `proofstone gate` and `proofstone resume` watch a run to its end, ask where they may, and
report."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Final, Protocol

import typer

from proofstone.adapters.executors.human import Listen, Terminal
from proofstone.contracts.gate_report import GateReport, RunOutcome, RunView
from proofstone.core.gate.answers import resume
from proofstone.engine.gate.request import ResumeRequest, Watching
from proofstone.errors import InputError
from proofstone.gate_app import resumed_gate, say
from proofstone.surfaces.cli.exporting import exported
from proofstone.surfaces.cli.gate_questions import Questions
from proofstone.surfaces.cli.interruption import interruptions
from proofstone.surfaces.cli.output import Output
from proofstone.surfaces.live.gate import LiveGate
from proofstone.surfaces.report.gate import print_gate

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
