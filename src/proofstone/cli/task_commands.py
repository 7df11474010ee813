"""What a person says about a task of a run: `done`, `approve`, `skip` and `force` share this.

These words are a person's. Whatever an executor starts has `PROOFSTONE_TASK` in its environment, and is refused.
"""

from __future__ import annotations

import getpass
import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from proofstone.app.gate import find_run, find_task, say, view_run
from proofstone.cli.output import Output
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.gate.models import Override, OverrideAction, RunView, TaskRecord
from proofstone.gate.request import Word, WordKind
from proofstone.gate.rules.passing import CATEGORIES, CONFIRMATION, refused_reason, security_blockers

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The run: its id, a unique part of it, or `last`.", show_default=False)
]
TaskArgument = Annotated[
    str,
    typer.Argument(metavar="TASK", help="The task: `task-03`, `3`, or a unique part of its name.", show_default=False),
]
_OF_EXECUTORS = "PROOFSTONE_TASK"


def speak(output: Output, run: str, task: str, kind: WordKind, text: str = "") -> None:
    """Say the word, and print what follows from it."""
    view, id = subject(run, task)
    tell(output, view, id, Word(kind=kind, by=speaker(), text=plain("your words", text)))


def subject(run: str, task: str) -> tuple[RunView, str]:
    """The run and the id of the task, if whoever asks may speak about it."""
    refuse_executors()
    view = view_run(find_run(run))
    return view, find_task(view, task)


def tell(output: Output, view: RunView, task: str, word: Word) -> None:
    follows = say(view.run_id, task, word)
    if output.json:
        output.document({"run_id": view.run_id, "task": task, "word": word.kind.value, "follows": follows})
    else:
        output.results().print(printable(f"{task}: {word.kind.value}; {follows}"), soft_wrap=True)


def refuse_executors() -> None:
    if _OF_EXECUTORS in os.environ:
        raise InputError(
            f"this is for a person to say, and {_OF_EXECUTORS} is set: an executor asks",
            hint=f"write a result to PROOFSTONE_RESULT instead; a person unsets {_OF_EXECUTORS} first",
        )


def overriding(
    record: TaskRecord, action: OverrideAction, reason: str, category: str | None = None, confirmed: str | None = None
) -> Word:
    """The word that sets the gate aside for a task, if it may be said."""
    if blockers := security_blockers(record):
        raise InputError(
            f"{record.id} cannot be set aside: {'; '.join(blockers)}",
            hint="a security finding is never waived: mend it, then `proofstone resume RUN --retry`",
        )
    if action is OverrideAction.SKIP and category not in CATEGORIES:
        raise InputError(f"--category {category}: no such category", hint=f"one of {', '.join(CATEGORIES)}")
    if action is OverrideAction.FORCE and confirmed != CONFIRMATION:
        raise InputError(
            f"this bypasses every check; it takes the word {CONFIRMATION}",
            hint=f"say it with `--confirm {CONFIRMATION}`, if you must",
        )
    if refusal := refused_reason(plain("--reason", reason)):
        raise InputError(
            f"--reason {reason!r}: {refusal}",
            hint="say what makes verifying impossible, for instance 'the payment sandbox is down until Monday'",
        )
    who = speaker()
    override = Override(action=action, reason=reason.strip(), category=category, by=who, at=_now())
    return Word(kind=WordKind(action.value), by=who, text=override.reason, override=override)


def speaker() -> str:
    """The login name of whoever speaks, or their number where they have none."""
    try:
        return plain("your login name", getpass.getuser())
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def plain(what: str, text: str) -> str:
    """What was typed, if it is text: anything else cannot be recorded as it was."""
    if text.encode("utf-8", "ignore").decode("utf-8") != text or "\0" in text:
        raise InputError(f"{what} {text!r}: not valid UTF-8 text")
    return text


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
