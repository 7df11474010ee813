"""`proofstone approve`: review a verified task, or choose an option at an approval gate."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from proofstone.app.gate import find_run, judge_criteria
from proofstone.app.pipeline import PIPELINE_RUNS, record_approval
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.task_commands import RunArgument, login_name, refuse_executors, require_text, send_command
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.gate.request import UserCommandKind
from proofstone.gate.rules.judgements import CRITERIA_GATE
from proofstone.pipeline.rules.approvals import OPTIONS_WITH_NOTE

app = typer.Typer(add_completion=False)

_GATE: Final = "gate-"
"""The prefix of the ids of approval gates."""


class TaskDecision(StrEnum):
    """The possible decisions about a task."""

    APPROVED = "approved"
    REJECTED = "rejected"


@app.command()
def approve(
    run: RunArgument,
    what: Annotated[
        str,
        typer.Argument(
            metavar="TASK|criteria|GATE",
            help="The task: `task-03`, `3`, or a unique part of its name; `criteria` for all criteria that nobody has "
            "judged; or the approval gate: `gate-post-planning`.",
            show_default=False,
        ),
    ],
    decision: Annotated[
        str,
        typer.Argument(
            metavar="approved|rejected|OPTION",
            help="For a task or `criteria`: `approved` or `rejected`. At a gate: one of its options.",
            show_default=False,
        ),
    ],
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            "--note",
            metavar="TEXT",
            help="Your reason or note; the agents receive it. For `rejected`, `revise`, `modify`, `expand`.",
            show_default=False,
        ),
    ] = "",
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Approve or reject a task that waits for your review, or choose how a run of `proofstone run` continues.

    The task has passed its checks already: approval cannot replace a check. A rejection needs a reason, which the
    executor receives.

    \b
      proofstone approve last task-03 approved
      proofstone approve last task-03 rejected --reason "an empty list is not handled"
      proofstone approve last criteria approved
      proofstone approve last gate-post-planning approve
      proofstone approve last gate-post-planning revise --note "one task for the parser, please"

    `proofstone status RUN` shows the question and its options. `proofstone resume RUN` continues the run.
    """
    output = Output(json=as_json, no_color=no_color)
    if what == CRITERIA_GATE:
        _judge_criteria(output, run, decision, reason)
    elif _is_about_gate(run, what, decision):
        _choose(output, run, what, decision, reason)
    else:
        _review(output, run, what, decision, reason)


def _is_about_gate(run: str, what: str, decision: str) -> bool:
    """Return whether `what` is an approval gate. A task may have any name, but `approved` and `rejected` are never
    options of a gate."""
    return what.startswith(_GATE) and (decision not in tuple(TaskDecision) or PIPELINE_RUNS.find_named(run) is not None)


def _judge_criteria(output: Output, run: str, decision: str, reason: str) -> None:
    refuse_executors()
    _check_decision(decision, reason, "it is recorded with the criteria")
    run_id = find_run(require_text("RUN", run))
    next_step = judge_criteria(
        run_id, decision == TaskDecision.APPROVED, require_text("--reason", reason), login_name()
    )
    if output.json:
        output.print_document({"run_id": run_id, "criteria": decision, "by": login_name(), "follows": next_step})
    else:
        output.result_console().print(escape_control(f"criteria: {decision}; {next_step}"), soft_wrap=True)


def _check_decision(decision: str, reason: str, why: str) -> None:
    if decision not in tuple(TaskDecision):
        raise InputError(f"{decision!r} is not a decision about a task", hint="say `approved` or `rejected`")
    if decision == TaskDecision.REJECTED and not reason.strip():
        raise InputError(f"rejected needs a reason: {why}", hint='for instance --reason "an empty list is not handled"')


def _review(output: Output, run: str, task: str, decision: str, reason: str) -> None:
    _check_decision(decision, reason, "the next attempt receives it")
    send_command(output, run, task, UserCommandKind(decision), reason)


def _choose(output: Output, run: str, gate: str, option: str, note: str) -> None:
    refuse_executors()
    if option in OPTIONS_WITH_NOTE and not note.strip():
        raise InputError(
            f"{option} needs a note: the agents receive it", hint=f'for instance {option} --note "leave the API"'
        )
    run_id = PIPELINE_RUNS.find(require_text("RUN", run))
    request = record_approval(
        run_id, require_text("GATE", gate), require_text("OPTION", option), require_text("--note", note), login_name()
    )
    next_command = f"proofstone resume {run_id}"
    if output.json:
        output.print_document({"run_id": run_id, "gate": request.gate_id, "option": option, "follows": next_command})
    else:
        output.result_console().print(
            escape_control(f"{request.gate_id}: {option}; continue with: {next_command}"), soft_wrap=True
        )
