"""`proofstone explain`: show what a rule means, why it exists, and what to do about its findings."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from proofstone.check.rules.pages.rule_page import RulePage
from proofstone.check.rules.rule_registry import RULE_PAGES, find_nearest_rules, find_page
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(add_completion=False)
_WIDTH = 100


@app.command()
def explain(
    rule: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RULE]", help="The rule of a finding, as `proofstone check` prints it."),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Explain a rule: what it finds, why that matters, an example, and what to do.

    Without RULE, all rules are listed. A complaint of a linter or a type checker, such as `ruff E501`, is explained as
    `lint`.
    """
    output = Output(json=as_json, no_color=no_color)
    name = " ".join(rule or ())
    if not rule:
        _list_rules(output)
        return
    page = find_page(name)
    if page is None:
        nearest = find_nearest_rules(name)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "`proofstone explain` lists all rules"
        raise InputError(f"{name}: there is no such rule", hint=hint)
    if as_json:
        output.print_document({**page.model_dump(mode="json"), "asked": name})
    else:
        _print_page(output.result_console(), page)


def _list_rules(output: Output) -> None:
    if output.json:
        output.print_document({"rules": [page.model_dump(mode="json") for page in RULE_PAGES.values()]})
        return
    console = output.result_console()
    width = max(map(len, RULE_PAGES))
    for page in RULE_PAGES.values():
        console.print(f"{page.rule:<{width}}  {page.title}", soft_wrap=True)
    console.print("\n`proofstone explain RULE` shows what a rule means and what to do", style="dim")


def _print_page(console: Console, page: RulePage) -> None:
    console.print(f"{page.rule}: {page.title}", style="bold", soft_wrap=True)
    for title, text in (
        ("what was found", page.what),
        ("why it matters", page.why),
        ("for example", page.example),
        ("what to do", page.action),
    ):
        console.print(f"\n{title}:", style="bold")
        console.print(textwrap.indent("\n".join(textwrap.wrap(text, _WIDTH)), "  "), soft_wrap=True)
