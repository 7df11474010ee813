"""Follow a run of the gate at the terminal: show progress, ask the person with `--mode interactive`, and report.

`proofstone gate` and `proofstone resume` use it. Each answer becomes a command to the run.
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

from proofstone.agents.executors.people import ReadLine, Terminal
from proofstone.app.audit import audit_ended_run
from proofstone.app.caller import demand_acceptance, gather_facts
from proofstone.app.gate import judge_criteria, record_command, resume_gate
from proofstone.check.rules.acceptance import is_reason_sufficient
from proofstone.cli.output import LineReader, Output, read_typed_line
from proofstone.cli.process import unmask_interrupts
from proofstone.cli.render.gate import print_gate, print_task_failures
from proofstone.cli.render.live_gate import LiveGate
from proofstone.cli.session import export_on_exit
from proofstone.cli.task_commands import build_override, login_name, require_text
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.gate.models import GateReport, OverrideAction, RunOutcome, RunView, TaskView
from proofstone.gate.request import GateObserver, ResumeRequest, UserCommand, UserCommandKind
from proofstone.gate.rules.deadlines import parse_duration
from proofstone.gate.rules.pass_rule import OVERRIDE_CATEGORIES
from proofstone.gate.rules.questions import QuestionKind, find_question_kind, format_resume_command, list_waiting_tasks

if TYPE_CHECKING:
    from rich.console import Console


_ANSWERS: Final = {
    QuestionKind.CHECKPOINT: "`done`, or `done: what you decided`",
    QuestionKind.WORK: "`done`",
    QuestionKind.REVIEW: "`approve`, or `reject: why`",
    QuestionKind.FAILURE: "`retry`, `extend: 20m` (retry with this deadline), `fix: what to do differently`, `skip`, "
    "or `investigate`",
    QuestionKind.ACCEPTANCE: "`accept: why`, `retry`, `fix: what to do differently`, `skip`, or `investigate`",
    QuestionKind.DISPUTE: "`accept: why`, `reject: why`, or `amend: what applies instead`",
    QuestionKind.COMMIT: "`done`, when you have committed it",
}


_FAILURES: Final = (QuestionKind.FAILURE, QuestionKind.ACCEPTANCE)


@dataclass(frozen=True)
class TaskQuestions:
    """The questions that a run asks about its tasks."""

    console: Console
    read_line: LineReader = read_typed_line

    def ask_all(self, view: RunView, say: Callable[[str, UserCommand], str]) -> bool:
        """Ask about every task that waits for a person. Return whether anything was answered."""
        is_answered = bool(view.asks) and self._ask_about_criteria(view)
        for task in list_waiting_tasks(view):
            command = self._ask_about(view, task)
            if command is None:
                continue
            try:
                self._print(f"{task.record.id}: {say(task.record.id, command)}")
                is_answered = True
            except InputError as error:
                self._print_error(error)
        return is_answered

    def _ask_about_criteria(self, view: RunView) -> bool:
        """Ask about the criteria that nobody has judged. Return whether the person answered."""
        self._print(f"\n{view.asks}", "bold yellow")
        while True:
            self._print("`approve` if all of them hold, or `reject: which does not`; an empty line skips the question")
            answer = self.read_line()
            if not answer:
                return False
            first, _, rest = require_text("your answer", answer).partition(" ")
            word, reason = first.rstrip(":").lower(), rest.strip()
            if word in ("approve", "approved") or (word in ("reject", "rejected") and reason):
                self._print(judge_criteria(view.run_id, word.startswith("approve"), reason, login_name()))
                return True
            self._print(f"`{answer}` is not one of the answers")

    def _ask_about(self, view: RunView, task: TaskView) -> UserCommand | None:
        """Return the person's command about the task; None if they give none."""
        ask = find_question_kind(task)
        if ask is None:
            return None
        self._print(f"\n{task.record.id} {view.plan.get_task(task.record.id).name}: {task.asks}", "bold yellow")
        if task.work_tree:
            self._print(f"work in {task.work_tree}")
        while True:
            self._print(f"{_ANSWERS[ask]}; an empty line skips the question")
            answer = self.read_line()
            if not answer:
                return None
            if ask in _FAILURES and answer.lower() == "investigate":
                print_task_failures(self.console, view, task)
                continue
            try:
                command = self._parse_answer(ask, task, answer)
            except InputError as error:
                self._print_error(error)
                continue
            if command is not None:
                return command

    def _parse_answer(self, ask: QuestionKind, task: TaskView, answer: str) -> UserCommand | None:
        first, _, rest = require_text("your answer", answer).partition(" ")
        text = rest.strip()
        match ask, first.rstrip(":").lower():
            case ((QuestionKind.CHECKPOINT | QuestionKind.WORK | QuestionKind.COMMIT), "done"):
                return UserCommand(UserCommandKind.DONE, login_name(), text)
            case QuestionKind.REVIEW, "approve" | "approved":
                return UserCommand(UserCommandKind.APPROVED, login_name(), text)
            case QuestionKind.REVIEW, "reject" | "rejected" if text:
                return UserCommand(UserCommandKind.REJECTED, login_name(), text)
            case ((QuestionKind.FAILURE | QuestionKind.ACCEPTANCE), "retry"):
                return UserCommand(UserCommandKind.RETRY, login_name(), text)
            case ((QuestionKind.FAILURE | QuestionKind.ACCEPTANCE), "fix") if text:
                return UserCommand(UserCommandKind.RETRY, login_name(), text)
            case ((QuestionKind.FAILURE | QuestionKind.ACCEPTANCE), "extend") if text:
                return UserCommand(UserCommandKind.RETRY, login_name(), seconds=check_timeout("extend", text))
            case ((QuestionKind.FAILURE | QuestionKind.ACCEPTANCE), "skip"):
                return self._skip(task)
            case QuestionKind.ACCEPTANCE, "accept":
                return _decide(UserCommandKind.ACCEPT, text)
            case QuestionKind.DISPUTE, ("accept" | "reject" | "amend") as decision:
                return _decide(UserCommandKind(decision), text)
        self._print(f"`{answer}` is not one of the answers")
        return None

    def _skip(self, task: TaskView) -> UserCommand | None:
        self._print(f"why can it not be verified? {', '.join(OVERRIDE_CATEGORIES)}")
        category = self.read_line()
        wanted = OVERRIDE_CATEGORIES.get(category or "", "the reason")
        self._print(f"say {wanted}, in your own words; it is recorded with your name")
        reason = self.read_line()
        if not category or not reason:
            return None
        return build_override(task.record, OverrideAction.SKIP, reason, category)

    def _print_error(self, error: InputError) -> None:
        self._print(error.message + (f" ({error.hint})" if error.hint else ""), "red")

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(escape_control(text), style=style, soft_wrap=True)


def _decide(kind: UserCommandKind, reason: str) -> UserCommand:
    """Return the command that accepts findings or decides a dispute, if a person gives it with a reason."""
    method = demand_acceptance(kind.value, gather_facts())
    if not is_reason_sufficient(reason):
        raise InputError(f"{kind.value}: say why in a few words, behind a colon; it is recorded with your name")
    return UserCommand(kind, login_name(), reason, method=method)


GATE_EXIT_CODES: Final = {
    RunOutcome.PASSED: 0,
    RunOutcome.FAILED: 1,
    RunOutcome.HALTED: 1,
    RunOutcome.NEEDS_HUMAN: 3,
    RunOutcome.BUDGET_EXHAUSTED: 4,
}


class GateMode(StrEnum):
    """Whether the person is asked during the run."""

    AUTONOMOUS = "autonomous"
    INTERACTIVE = "interactive"


ModeOption = Annotated[
    GateMode,
    typer.Option(
        "--mode",
        help="With `interactive`, the run asks you here when it stops, and continues with your answer.",
    ),
]
MinutesOption = Annotated[
    float | None,
    typer.Option(
        "--budget-minutes",
        metavar="M",
        help="Stop after M minutes; nothing is lost. The default is gate.run_minutes.",
        show_default=False,
    ),
]
NoWaitOption = Annotated[
    bool,
    typer.Option(
        "--no-wait",
        help="Stop instead of waiting for a person who executes a task; continue later with `proofstone resume`.",
    ),
]


class GateRunLike(Protocol):
    """The part of a run that a session needs."""

    def run(self) -> GateReport: ...

    def view(self) -> RunView: ...


GateRunFactory = Callable[[GateObserver, ReadLine | None], AbstractContextManager[GateRunLike]]


@dataclass(frozen=True)
class GateSession:
    """A session that follows a run of the gate to its end."""

    output: Output
    mode: GateMode = GateMode.AUTONOMOUS
    wait: bool = True

    def follow(self, begin: GateRunFactory) -> int:
        """Follow the run to its end, or until the person leaves it. Return the exit code."""
        if self.mode is GateMode.INTERACTIVE and (self.output.json or not sys.stdin.isatty()):
            raise InputError(
                "--mode interactive needs a terminal, and there is none",
                hint="leave it out; `proofstone status` shows the questions, with the commands that answer them",
            )
        # The export comes last: a person who waits for a slow collector has read the result by then.
        with export_on_exit(self.output) as note_run:
            report, view = self._watch(begin, note_run)
            while self.mode is GateMode.INTERACTIVE and self._ask_questions(view):
                report, view = self._watch(self._resume(view.run_id), note_run)
            report, findings = audit_ended_run(report)
            if self.output.json:
                self.output.print_document(report.model_dump(mode="json"))
            else:
                sys.stderr.flush()
                print_gate(self.output.result_console(), report, view, findings, verbose=self.output.verbose)
        return GATE_EXIT_CODES[report.outcome]

    def _watch(self, begin: GateRunFactory, note_run: Callable[[str], None]) -> tuple[GateReport, RunView]:
        listen = Terminal() if sys.stdin.isatty() and not self.output.json else None
        console = self.output.progress_console()
        live = LiveGate(
            console, interactive=console.is_terminal, can_ask_here=listen is not None, verbose=self.output.verbose
        )
        try:
            with unmask_interrupts(), begin(live, listen) as run, live.show_live():
                note_run(run.view().run_id)
                report = run.run()
                return report, run.view().model_copy(update={"running": False, "asks": report.asks})
        except KeyboardInterrupt:
            if live.view is not None:
                message = f"nothing is lost; resume with: {format_resume_command(live.view.run_id)}"
                sys.stderr.write(f"\n{message}\n")
            raise

    def _ask_questions(self, view: RunView) -> bool:
        questions = TaskQuestions(replace(self.output, quiet=False).progress_console())  # a question is not progress
        return questions.ask_all(view, lambda task, word: record_command(view.run_id, task, word))

    def _resume(self, run_id: str) -> GateRunFactory:
        request = ResumeRequest(waits_for_person=self.wait)
        return lambda watching, listen: resume_gate(run_id, request, watching, listen=listen)


def check_minutes(value: float | None) -> float | None:
    """Check the value of `--budget-minutes`."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise InputError(f"--budget-minutes {value:g}: must be more than 0", hint="for instance --budget-minutes 90")
    return value


def check_timeout(option: str, value: str | None) -> float | None:
    """Check a deadline that a person gives to the steps of a task, and return it in seconds."""
    seconds = parse_duration(value) if value is not None else None
    if value is not None and seconds is None:
        raise InputError(f"{option} {value!r}: must be from 1s to 24h", hint="for instance 20m, 90s or 1h")
    return seconds
