"""The open questions of a run of any command, and the answers of a person.

A run that asks something stops, or goes on with what does not depend on the answer. An answer is recorded in the
ledger. It is applied by the process that works on the run, or else by the next `proofstone resume`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.app.context import ensure_private_home, open_writable_ledger
from proofstone.app.gate import judge_criteria, read_run_view, record_command
from proofstone.app.pipeline import PIPELINE_RUNS, record_approval
from proofstone.app.plan_gate import PLAN_GATE_RUNS
from proofstone.app.solve import SOLVE_RUNS
from proofstone.check.rules.acceptance import is_reason_sufficient
from proofstone.common.models import AcceptanceMethod
from proofstone.errors import InputError
from proofstone.gate.request import UserCommand, UserCommandKind
from proofstone.gate.rules.judgements import CRITERIA_GATE
from proofstone.gate.rules.questions import QuestionKind, find_question_kind, list_waiting_tasks
from proofstone.ledger.models import EventRow
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.query import RunReference
from proofstone.machine.locks import lock_run
from proofstone.pipeline.rules.approvals import OPTIONS_WITH_NOTE
from proofstone.plan_gate.journal import PlanJournal
from proofstone.plan_gate.run import resolve_option
from proofstone.runtime.run_index import CANCELLED_OUTCOME, CHILD_RUN_EVENT, read_run_end
from proofstone.solve.journal import SolveJournal

GOAL_QUESTION: Final = "goal"
"""The id of the question that a run of `proofstone solve` asks about its goal."""
_OPTIONS_REQUIRING_NOTE: Final = OPTIONS_WITH_NOTE | {"rejected", "accept", "reject", "amend"}
_TASK_ANSWERS: Final[Mapping[QuestionKind, tuple[str, ...]]] = {
    QuestionKind.CHECKPOINT: ("done",),
    QuestionKind.WORK: ("done",),
    QuestionKind.COMMIT: ("done",),
    QuestionKind.REVIEW: ("approved", "rejected"),
    QuestionKind.FAILURE: ("retry",),
    QuestionKind.ACCEPTANCE: ("accept", "retry"),
    QuestionKind.DISPUTE: ("accept", "reject", "amend"),
}


_DECISIONS: Final[Mapping[QuestionKind, tuple[str, ...]]] = {
    QuestionKind.ACCEPTANCE: ("accept",),
    QuestionKind.DISPUTE: ("accept", "reject", "amend"),
}


@dataclass(frozen=True)
class RunQuestion:
    """A question of a run, which a person can answer."""

    run_id: str
    """The run that asks: the run itself or a part of it."""
    command: str
    """The kind of run: `gate`, `run`, `verify-plan` or `solve`."""
    id: str
    """The task, the approval gate or the challenge that the question is about."""
    text: str
    options: tuple[str, ...] = ()
    takes_any_text: bool = True
    """Whether an answer may be in the person's own words."""
    decisions: tuple[str, ...] = ()
    """Options that accept a finding or decide a dispute. Only a person may choose them."""


def list_questions(run: RunReference, home: Path | None = None) -> tuple[RunQuestion, ...]:
    """Return the open questions of a run; if it has none, those of its latest child run. A cancelled run asks
    nothing."""
    home = ensure_private_home(home)
    own = _QUESTION_READERS[run.command](run.run_id, home) if run.command in _QUESTION_READERS else ()
    with closing(open_ledger(home, "read")) as ledger:
        if read_run_end(ledger, run.parent or run.run_id)[0] == CANCELLED_OUTCOME:
            return ()
        children = [stored.row.payload for stored in ledger.read(EventRow, run_id=run.run_id, type=CHILD_RUN_EVENT)]
    if own or not children:
        return own
    last = children[-1]  # earlier parts have ended
    command = {"plan": PLAN_GATE_RUNS.command, "gate": "gate"}[str(last["kind"])]
    return _QUESTION_READERS[command](str(last["run_id"]), home)


def _read_gate_questions(run_id: str, home: Path) -> tuple[RunQuestion, ...]:
    view = read_run_view(run_id, home)
    options = _TASK_ANSWERS[QuestionKind.REVIEW]
    criteria = RunQuestion(run_id, "gate", CRITERIA_GATE, view.asks, options, takes_any_text=False)
    return ((criteria,) if view.asks else ()) + tuple(
        RunQuestion(
            run_id,
            "gate",
            task.record.id,
            task.asks,
            _TASK_ANSWERS[kind],
            takes_any_text=kind is QuestionKind.CHECKPOINT,
            decisions=_DECISIONS.get(kind, ()),
        )
        for task in list_waiting_tasks(view)
        if (kind := find_question_kind(task)) is not None
    )


def _read_pipeline_questions(run_id: str, home: Path) -> tuple[RunQuestion, ...]:
    report = PIPELINE_RUNS.read_report(run_id, home)
    if report is None or report.waiting is None:
        return ()
    waiting, options = report.waiting, tuple(option.id for option in report.waiting.options)
    return (RunQuestion(run_id, "run", waiting.gate_id, waiting.question, options, takes_any_text=False),)


def _read_plan_questions(run_id: str, home: Path) -> tuple[RunQuestion, ...]:
    report = PLAN_GATE_RUNS.read_report(run_id, home)
    return tuple(
        RunQuestion(run_id, "verify-plan", question.challenge, question.question, question.options)
        for question in (report.questions if report else ())
    )


def _read_solve_questions(run_id: str, home: Path) -> tuple[RunQuestion, ...]:
    report = SOLVE_RUNS.read_report(run_id, home)
    return (RunQuestion(run_id, "solve", GOAL_QUESTION, report.question),) if report and report.question else ()


_QUESTION_READERS: Final[Mapping[str, Callable[[str, Path], tuple[RunQuestion, ...]]]] = {
    "gate": _read_gate_questions,
    "run": _read_pipeline_questions,
    "verify-plan": _read_plan_questions,
    "solve": _read_solve_questions,
}


def answer_question(
    question: RunQuestion,
    answer: str,
    note: str,
    by: str,
    home: Path | None = None,
    *,
    method: AcceptanceMethod = AcceptanceMethod.INTERACTIVE,
) -> None:
    """Record the answer of a person. Raise an InputError if it is not an answer to this question. `method` says how the
    person gave it, if it accepts a finding or decides a dispute."""
    home = ensure_private_home(home)
    if not answer.strip():
        raise InputError(f"{question.id}: the answer is empty")
    if not question.takes_any_text and answer not in question.options:
        raise InputError(
            f"{question.id}: {answer!r} is not one of the options", hint=f"answer with {' or '.join(question.options)}"
        )
    if answer in _OPTIONS_REQUIRING_NOTE and answer in question.options and not note.strip():
        raise InputError(
            f"{question.id}: `{answer}` needs a note that tells the agents what to change",
            hint='for instance --note "an empty list is not handled"',
        )
    if answer in question.decisions:
        if not is_reason_sufficient(note):
            raise InputError(f"{question.id}: say why in a few words; your note is recorded as the reason")
        word = UserCommand(kind=UserCommandKind(answer), by=by, text=note, method=method)
        record_command(question.run_id, question.id, word, home)
        return
    _ANSWER_RECORDERS[question.command](question, answer, note, by, home)


def _answer_gate(question: RunQuestion, answer: str, note: str, by: str, home: Path) -> None:
    if question.id == CRITERIA_GATE:
        judge_criteria(question.run_id, answer == UserCommandKind.APPROVED, note, by, home)
        return
    is_option = answer in question.options
    kind = UserCommandKind(answer) if is_option else UserCommandKind.DONE
    text = note if is_option else f"{answer}\n{note}".strip()
    record_command(question.run_id, question.id, UserCommand(kind=kind, by=by, text=text), home)


def _answer_pipeline(question: RunQuestion, answer: str, note: str, by: str, home: Path) -> None:
    record_approval(question.run_id, question.id, answer, note, by, home)


def _answer_plan(question: RunQuestion, answer: str, note: str, by: str, home: Path) -> None:
    report = PLAN_GATE_RUNS.read_report(question.run_id, home)
    text = resolve_option(question.id, answer, question.options)
    with open_writable_ledger(home) as ledger, lock_run(home, question.run_id):
        journal = PlanJournal.open(ledger, question.run_id)
        iteration = len(report.iterations) if report else 0
        journal.record_answers({question.id: f"{text}\n{note}".strip()}, iteration, by)


def _answer_solve(question: RunQuestion, answer: str, note: str, by: str, home: Path) -> None:
    with open_writable_ledger(home) as ledger, lock_run(home, question.run_id):
        SolveJournal.load(ledger, question.run_id).record_answer(question.text, f"{answer}\n{note}".strip(), by)


_ANSWER_RECORDERS: Final[Mapping[str, Callable[[RunQuestion, str, str, str, Path], None]]] = {
    "gate": _answer_gate,
    "run": _answer_pipeline,
    "verify-plan": _answer_plan,
    "solve": _answer_solve,
}
