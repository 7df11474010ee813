"""Send a person's command about a task to its run. `done`, `approve`, `skip` and `force` share this.

Only a person may give these commands. Every process that an executor starts has `PROOFSTONE_TASK` in its environment,
and is refused.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from proofstone.app.caller import find_login_name
from proofstone.app.gate import find_run, find_task, read_run_view, record_command
from proofstone.cli.output import Output
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.gate.models import Override, OverrideAction, RunView, TaskRecord
from proofstone.gate.request import UserCommand, UserCommandKind
from proofstone.gate.rules.pass_rule import (
    OVERRIDE_CATEGORIES,
    OVERRIDE_CONFIRMATION,
    explain_bad_reason,
    find_security_blockers,
)

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The run: its id, a unique part of it, or `last`.", show_default=False)
]
TaskArgument = Annotated[
    str,
    typer.Argument(metavar="TASK", help="The task: `task-03`, `3`, or a unique part of its name.", show_default=False),
]
_TASK_VARIABLE = "PROOFSTONE_TASK"


def send_command(output: Output, run: str, task: str, kind: UserCommandKind, text: str = "") -> None:
    """Send a command about a task, and print what happens next."""
    view, id = find_subject(run, task)
    record_and_print(output, view, id, UserCommand(kind=kind, by=login_name(), text=require_text("your words", text)))


def find_subject(run: str, task: str) -> tuple[RunView, str]:
    """Return the run and the id of the task, if a person asks."""
    refuse_executors()
    view = read_run_view(find_run(run))
    return view, find_task(view, task)


def record_and_print(output: Output, view: RunView, task: str, word: UserCommand) -> None:
    """Record the command, and print what happens next."""
    next_step = record_command(view.run_id, task, word)
    if output.json:
        output.print_document({"run_id": view.run_id, "task": task, "word": word.kind.value, "follows": next_step})
    else:
        output.result_console().print(escape_control(f"{task}: {word.kind.value}; {next_step}"), soft_wrap=True)


def refuse_executors() -> None:
    """Refuse a call from an executor."""
    if _TASK_VARIABLE in os.environ:
        raise InputError(
            f"only a person may do this, and {_TASK_VARIABLE} is set: this is an executor",
            hint=f"write a result to PROOFSTONE_RESULT instead; if you are a person, unset {_TASK_VARIABLE} first",
        )


def build_override(
    record: TaskRecord, action: OverrideAction, reason: str, category: str | None = None, confirmed: str | None = None
) -> UserCommand:
    """Return the command that overrides the gate for a task. Raise an InputError if that is not allowed."""
    if blockers := find_security_blockers(record):
        raise InputError(
            f"{record.id} cannot be overridden: {'; '.join(blockers)}",
            hint="a security finding cannot be waived: fix it, then `proofstone resume RUN --retry`",
        )
    if action is OverrideAction.SKIP and category not in OVERRIDE_CATEGORIES:
        raise InputError(f"--category {category}: no such category", hint=f"one of {', '.join(OVERRIDE_CATEGORIES)}")
    if action is OverrideAction.FORCE and confirmed != OVERRIDE_CONFIRMATION:
        raise InputError(
            f"this bypasses every check; confirm it with the word {OVERRIDE_CONFIRMATION}",
            hint=f"use `--confirm {OVERRIDE_CONFIRMATION}` if you must",
        )
    if refusal := explain_bad_reason(require_text("--reason", reason), category, record):
        raise InputError(
            f"--reason {reason!r}: {refusal}",
            hint="be specific, for instance 'the payment sandbox is down until Monday'",
        )
    who = login_name()
    override = Override(action=action, reason=reason.strip(), category=category, by=who, at=_now())
    return UserCommand(kind=UserCommandKind(action.value), by=who, text=override.reason, override=override)


def login_name() -> str:
    """Return the login name of the person, or their user id."""
    return require_text("your login name", find_login_name())


def require_text(what: str, text: str) -> str:
    """Return the text if it is valid; anything else cannot be recorded as it is."""
    if text.encode("utf-8", "ignore").decode("utf-8") != text or "\0" in text:
        raise InputError(f"{what} {text!r}: not valid UTF-8 text")
    return text


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
