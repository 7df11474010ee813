"""Options that several commands share, and reading a goal or a request from the command line, a file or standard
input."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer

from proofstone.cli.task_commands import require_text
from proofstone.config.profiles import PROFILE_VARIABLE, ProfileName
from proofstone.errors import InputError

BackendOption = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="ROLE=SPEC",
        help="The backend of a role; overrides the settings: `reviewer=api:openai:gpt-5`. Can be repeated.",
        show_default=False,
    ),
]
ResumeOption = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="RUN",
        help="Resume a run that waits for you or was interrupted: its id, a part of it, or `last`.",
        show_default=False,
    ),
]
ShowOption = Annotated[
    str | None,
    typer.Option("--show", metavar="RUN", help="Show the result of a run; ask no agent.", show_default=False),
]


def use_profile(profile: ProfileName | None) -> None:
    """Choose the profile for everything that this command does."""
    if profile is not None:
        os.environ[PROFILE_VARIABLE] = profile.value


ProfileOption = Annotated[
    ProfileName | None,
    typer.Option(
        "--profile",
        help="What suits the models of this command: how they answer and change files, which tools they get, and the "
        "lane; overrides `profile.models`.",
        show_default=False,
    ),
]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="LIMIT",
        help="What agents may spend; overrides the settings: `tokens=500000`, `task.usd=2`, "
        "`roles.reviewer.requests=20`. Can be repeated.",
        show_default=False,
    ),
]
TokensOption = Annotated[
    int | None,
    typer.Option("--budget-tokens", metavar="N", help="Short for --budget tokens=N.", show_default=False),
]
UsdOption = Annotated[
    float | None, typer.Option("--budget-usd", metavar="X", help="Short for --budget usd=X.", show_default=False)
]


def collect_budget_limits(limits: list[str] | None, tokens: int | None, usd: float | None) -> tuple[str, ...]:
    """Return all budget options in the form `LIMIT=VALUE`."""
    shorthand = [f"tokens={tokens}"] if tokens is not None else []
    shorthand += [f"usd={usd}"] if usd is not None else []
    return (*(require_text("--budget", limit) for limit in limits or ()), *shorthand)


def collect_backend_specs(named: list[str] | None) -> tuple[str, ...]:
    """Return the `--backend` options, checked for control characters."""
    return tuple(require_text("--backend", word) for word in named or ())


MAX_GOAL_BYTES: Final = 200_000
"""The most bytes that are read from a file or standard input."""
_STDIN: Final = "-"


def read_goal(goal: str | None, file: Path | None, called: str = "GOAL") -> str:
    """Return the goal from the argument, the file or standard input. `called` is the command's name for it."""
    if file is not None:
        return _decode(str(file), _read_file(file, called), called)
    if goal == _STDIN:
        return _decode("standard input", _read(sys.stdin.buffer), called)
    return require_text(called, goal or "")


def refuse_unquoted_words(command: str, goal: str | None, others: Sequence[str], called: str = "GOAL") -> None:
    """Refuse several words without quotes: the shell passes each as a separate argument."""
    if others:
        wanted = shlex.join([" ".join((goal or "", *others))])
        raise InputError(f"{called} is a single argument: put it in quotes", hint=f"proofstone {command} {wanted}")


def _read_file(path: Path, called: str) -> bytes:
    try:
        with path.open("rb") as file:
            return _read(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"--{called.lower()}-file {path}: {why}", hint="name an existing text file") from error


def _read(file: BinaryIO) -> bytes:
    return file.read(MAX_GOAL_BYTES + 1)


def _decode(name: str, raw: bytes, called: str) -> str:
    if len(raw) > MAX_GOAL_BYTES:
        raise InputError(
            f"{name} is larger than {MAX_GOAL_BYTES:,} bytes",
            hint="be brief; agents can read your files",
        )
    if b"\0" in raw:
        raise InputError(f"{name} is not text", hint=f"a {called.lower()} is text, in UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: this is not UTF-8", hint="save it as UTF-8") from error
