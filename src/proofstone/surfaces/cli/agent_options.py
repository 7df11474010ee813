"""Options about agents that several commands share: who serves a role, and what may be spent."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.surfaces.cli.words import plain

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
