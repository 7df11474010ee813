"""Options about agents that several commands share: who serves a role, and what may be spent.

What the person wants of `proofstone solve` and `proofstone run`: their words as they are, from the command line, a
file or
standard input.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer

from proofstone.cli.task_commands import plain
from proofstone.errors import InputError

BackendOption = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="ROLE=SPEC",
        help="Who serves a role, before the settings: `reviewer=api:openai:gpt-5`; may be given several times.",
        show_default=False,
    ),
]
ResumeOption = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="RUN",
        help="Go on with a run that waits for you or was cut off: its id, a part of it, or `last`.",
        show_default=False,
    ),
]
ShowOption = Annotated[
    str | None,
    typer.Option("--show", metavar="RUN", help="Show what came of a run; ask nobody.", show_default=False),
]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="LIMIT",
        help="What agents may spend, before the settings: `tokens=500000`, `task.usd=2`, `roles.reviewer.requests=20`; "
        "may be given several times.",
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


def budget_words(limits: list[str] | None, tokens: int | None, usd: float | None) -> tuple[str, ...]:
    """What was said about spending, in one form."""
    short = [f"tokens={tokens}"] if tokens is not None else []
    short += [f"usd={usd}"] if usd is not None else []
    return (*(plain("--budget", word) for word in limits or ()), *short)


def backend_words(named: list[str] | None) -> tuple[str, ...]:
    return tuple(plain("--backend", word) for word in named or ())


MOST_BYTES: Final = 200_000
"""That are read at all. How long a goal may be is no matter of where it comes from."""
_STDIN: Final = "-"


def goal_from(goal: str | None, file: Path | None, called: str = "GOAL") -> str:
    """The one of them that was given. `called`: as the command calls it."""
    if file is not None:
        return _decoded(str(file), _content(file, called), called)
    if goal == _STDIN:
        return _decoded("standard input", _read(sys.stdin.buffer), called)
    return plain(called, goal or "")


def refuse_loose_words(command: str, goal: str | None, others: Sequence[str], called: str = "GOAL") -> None:
    """A shell hands over each word by itself where nobody has put them in quotes."""
    if others:
        wanted = shlex.join([" ".join((goal or "", *others))])
        raise InputError(f"{called} is one text: put it in quotes", hint=f"proofstone {command} {wanted}")


def _content(path: Path, called: str) -> bytes:
    try:
        with path.open("rb") as file:
            return _read(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"--{called.lower()}-file {path}: {why}", hint="name a text file that is there") from error


def _read(file: BinaryIO) -> bytes:
    return file.read(MOST_BYTES + 1)


def _decoded(name: str, raw: bytes, called: str) -> str:
    if len(raw) > MOST_BYTES:
        raise InputError(
            f"{name} is larger than {MOST_BYTES:,} bytes", hint="say what you want; your files can be read"
        )
    if b"\0" in raw:
        raise InputError(f"{name} is not text", hint=f"a {called.lower()} is text, in UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: this is not UTF-8", hint="save it as UTF-8") from error
