"""`proofstone answer`: answer the questions of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from proofstone.app.caller import demand_acceptance, gather_facts
from proofstone.app.questions import RunQuestion, answer_question, list_questions
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.run_kinds import match_run
from proofstone.cli.task_commands import RunArgument, login_name, refuse_executors, require_text
from proofstone.common.models import AcceptanceMethod
from proofstone.common.text import escape_control
from proofstone.errors import InputError

app = typer.Typer(add_completion=False)

_NAMED: Final = re.compile(r"([A-Za-z0-9][\w.-]*)=(.*)", re.DOTALL)


@app.command()
def answer(
    run: RunArgument,
    answers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUESTION=]ANSWER",
            help="Your answer. Name the question if the run asks more than one. Without any, the questions are listed.",
            show_default=False,
        ),
    ] = None,
    note: Annotated[
        str,
        typer.Option(
            "--note", metavar="TEXT", help="Further words, which the agents receive: why, or what to do differently."
        ),
    ] = "",
    accepted_by: Annotated[
        str | None,
        typer.Option(
            "--accepted-by",
            metavar="NAME",
            help="The person who accepts a finding or decides a dispute, where there is no terminal.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Answer the questions of a run of any kind, or list them.

    An answer is one of the options that the question offers, or your own words where it takes them. It is recorded;
    `proofstone resume RUN` continues the run, unless a process works on it already.

    \b
      proofstone answer last                                lists the open questions
      proofstone answer last task-03=approved               a task that waits for your review
      proofstone answer last rejected --note "handle []"    if there is only one question
      proofstone answer last C3="keep both formats"         a challenge of the plan gate
      proofstone answer last gate-post-planning=approve     an approval of `proofstone run`
      proofstone answer last task-03=accept --note "the rule changed"    a finding that only a person may accept
      proofstone answer last task-03=reject --note "the test is right"   what the executor of a task disputes
    """
    match = match_run(run)
    output = Output(json=as_json, no_color=no_color)
    questions = list_questions(match.run)
    if not answers:
        _print_questions(output, match.run_id, questions)
        return
    refuse_executors()
    if not questions:
        raise InputError(f"{match.run_id} asks nothing", hint=f"`proofstone status {match.run_id}` shows its state")
    given = [_match_question(require_text("ANSWER", text), questions) for text in answers]
    if len({question.id for question, _ in given}) < len(given):
        raise InputError("two answers to one question", hint="give one answer for each question")
    by, method = login_name(), AcceptanceMethod.INTERACTIVE
    if accepted_by is not None or any(text in question.decisions for question, text in given):
        facts = gather_facts(accepted_by)
        method = demand_acceptance("this answer", facts)
        by = facts.approver or by
    for question, text in given:
        answer_question(question, text, require_text("--note", note), by, method=method)
    follows = f"proofstone resume {match.run.parent or match.run_id}"
    if output.json:
        answered = [{"question": question.id, "answer": text} for question, text in given]
        output.print_document({"run_id": match.run_id, "answered": answered, "follows": follows})
        return
    for question, text in given:
        output.result_console().print(escape_control(f"{question.id}: {text}"), soft_wrap=True)
    output.result_console().print(escape_control(f"recorded; continue with: {follows}"), soft_wrap=True)


def _match_question(text: str, questions: Sequence[RunQuestion]) -> tuple[RunQuestion, str]:
    """Return the question that the text answers, and the answer."""
    by_id = {question.id.lower(): question for question in questions}
    named = _NAMED.fullmatch(text)
    if named is not None and named[1].lower() in by_id:
        return by_id[named[1].lower()], named[2].strip()
    if len(questions) == 1 and (named is None or questions[0].takes_any_text):
        return questions[0], text.strip()
    ids = ", ".join(question.id for question in questions)
    raise InputError(f"{text!r}: answers none of the open questions", hint=f"QUESTION=ANSWER, where QUESTION is {ids}")


def _print_questions(output: Output, run_id: str, questions: Sequence[RunQuestion]) -> None:
    if output.json:
        rows = [
            {
                "question": question.id,
                "text": question.text,
                "options": list(question.options),
                "run_id": question.run_id,
            }
            for question in questions
        ]
        output.print_document({"run_id": run_id, "questions": rows})
        return
    console = output.result_console()
    if not questions:
        console.print(escape_control(f"{run_id} asks nothing"), soft_wrap=True)
    for question in questions:
        console.print(escape_control(f"{question.id}: {question.text}"), soft_wrap=True)
        for number, option in enumerate(question.options, start=1):
            console.print(escape_control(f"  {number}. {option}"), soft_wrap=True)
        console.print(escape_control(f"  proofstone answer {run_id} {question.id}=…"), style="dim", soft_wrap=True)
