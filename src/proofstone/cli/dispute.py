"""`proofstone dispute`: say that a test, a rule or a requirement is wrong, and decide about that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.dispute_commands import DisputeRequest, decide_dispute, list_disputes, raise_dispute
from proofstone.check.rules.disputes import DisputeDecision, RecordedDispute
from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption
from proofstone.common.text import escape_control
from proofstone.errors import InputError

app = typer.Typer(add_completion=False)

_DECIDE = "decide"
_DECISION_WORDS = 3


@app.command()
def dispute(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUBJECT | decide ID accept|reject|amend",
            help="What is wrong: a test id, the rule of a finding, or a requirement. Or the decision about a dispute.",
            show_default=False,
        ),
    ] = None,
    because: Annotated[
        str, typer.Option("--because", metavar="TEXT", help="Why it is wrong.", show_default=False)
    ] = "",
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="The check it is about; by default the last of this tree.",
            show_default=False,
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="FILE", help="A file that shows it; it is kept.", show_default=False),
    ] = None,
    staged: Annotated[bool, typer.Option("--staged", help="Dispute about what is staged.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="For `decide`: why you decide so.", show_default=False)
    ] = "",
    accepted_by: Annotated[
        str | None,
        typer.Option(
            "--accepted-by",
            metavar="NAME",
            help="For `decide`: the person who decided, where there is no terminal.",
            show_default=False,
        ),
    ] = None,
    show_all: Annotated[bool, typer.Option("--list", help="List the disputes of this repository.")] = False,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Dispute a test, a rule or a requirement, instead of changing what checks your work.

    A dispute changes no verdict. It is recorded for the work tree as it is now, and put to a person. Until they have
    decided, `proofstone check` of this tree ends with `needs-decision` (exit code 3), unless something else fails.

    \b
      proofstone dispute tests/test_sum.py::test_total --because "it expects 5; the README says that tax is included"
      proofstone dispute --list

    Only a person decides, in a terminal: `accept` if the disputed thing is wrong, `reject` if it is right, `amend` if
    something else applies. `accept` lets later checks of this tree pass the findings about the subject that a person
    may accept, with at most medium confidence.

    \b
      proofstone dispute decide last accept --reason "the test was written before the tax"

    Exit code: 0 recorded; 2 bad input, or not a person.
    """
    output = Output(json=as_json, no_color=no_color)
    given = words or []
    if show_all:
        _refuse_more("--list", given)
        _print_disputes(output, list_disputes(repo))
        return 0
    if given[:1] == [_DECIDE] and len(given) > 1:
        _decide(output, repo, given, reason, accepted_by)
        return 0
    if len(given) != 1:
        raise InputError(
            "name one test, rule or requirement" if not given else "more than one subject; quote a text with spaces",
            hint='proofstone dispute SUBJECT --because "…"; `proofstone dispute --list` lists what is disputed',
        )
    _print_raised(output, raise_dispute(repo, DisputeRequest(given[0], because, run, evidence, staged)))
    return 0


def _decide(output: Output, repo: Path, words: list[str], reason: str, accepted_by: str | None) -> None:
    if len(words) != _DECISION_WORDS or words[2] not in tuple(DisputeDecision):
        raise InputError(
            f"{' '.join(words)}: not a decision",
            hint='for instance: proofstone dispute decide last reject --reason "the test is right: …"',
        )
    decided = decide_dispute(repo, words[1], DisputeDecision(words[2]), reason, accepted_by)
    if output.json:
        output.print_document(decided.model_dump(mode="json"))
    else:
        text = f"{decided.id}: {decided.decision}, by {decided.decided_by}; check the tree again: proofstone check"
        output.result_console().print(escape_control(text), soft_wrap=True)


def _print_raised(output: Output, raised: RecordedDispute) -> None:
    if output.json:
        output.print_document(raised.model_dump(mode="json"))
        return
    console = output.result_console()
    console.print(
        escape_control(f"{raised.id}: recorded for tree {raised.tree[:12]}: {raised.subject}"), soft_wrap=True
    )
    console.print("a person decides; it changes no verdict", style="dim", soft_wrap=True)


def _print_disputes(output: Output, disputes: tuple[RecordedDispute, ...]) -> None:
    if output.json:
        output.print_document({"disputes": [entry.model_dump(mode="json") for entry in disputes]})
        return
    console = output.result_console()
    if not disputes:
        console.print("nothing is disputed here")
    for entry in disputes:
        state = f"{entry.decision} by {entry.decided_by}: {entry.reason}" if entry.decision else "open"
        console.print(escape_control(f"{entry.id}  tree {entry.tree[:12]}  {entry.subject}"), soft_wrap=True)
        console.print(escape_control(f"  {entry.raised_by}: {entry.claim}"), soft_wrap=True)
        if entry.evidence:
            console.print(f"  evidence: proofstone ledger artifact {entry.evidence[:12]}", style="dim")
        console.print(escape_control(f"  {state}"), style=None if entry.decision else "yellow", soft_wrap=True)
        if entry.is_open:
            command = f'proofstone dispute decide {entry.id} accept|reject|amend --reason "…"'
            console.print(f"  a person decides: {command}", style="dim", soft_wrap=True)


def _refuse_more(option: str, words: list[str]) -> None:
    if words:
        raise InputError(f"{option} takes no subject", hint=f"proofstone dispute {option}")
