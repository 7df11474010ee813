"""`proofstone memory`: show what is remembered from one task to the next. Entries are untrusted data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from proofstone.agents.memory.models import MemoryEntry, MemoryRevision, MemoryType
from proofstone.agents.memory.rules.calibration import collect_ids, find_by_ids, find_by_run
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.cli.output import JsonOption, NoColorOption, Output, read_typed_line
from proofstone.common.models import AcceptanceMethod
from proofstone.common.text import escape_control, pluralize
from proofstone.config.home import find_proofstone_home
from proofstone.errors import InputError
from proofstone.git.repository import find_repository_root

if TYPE_CHECKING:
    from rich.console import Console

    from proofstone.app.knowledge import InstructionProposal


app = typer.Typer(
    add_completion=False,
    help="""What Proofstone remembers from one task to the next: how tasks went, what failed and why, and lessons from
    several tasks. Planners are told what worked and what they must not repeat.

    The memory is memory/entries.jsonl under PROOFSTONE_HOME, with one entry per line. Only you can read it.""",
)

LimitOption = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most N entries.")]
TypeOption = Annotated[
    MemoryType | None,
    typer.Option("--type", help="Show only entries of this type.", show_default=False),
]
_MAX_CHARACTERS = 400
"""The most characters of an entry that are shown; --json has all."""
_MAX_NAMES = 5
"""The most ids or runs that a hint names."""


@app.command("list")
def list_(
    type: TypeOption = None, limit: LimitOption = 20, as_json: JsonOption = False, no_color: NoColorOption = False
) -> None:
    """List the entries, newest first.

    Each entry has its id, its type and whether it worked; its text; its tags and its origin. A planner is told what
    failed. Once two runs have failed with a tag, it is forbidden: no plan for a similar task may then use `tool:shell`,
    or rely on `target:a.csv`. A lesson shows its remaining weight, which fades with every task that does not confirm
    it.
    """
    entries = [entry for entry in reversed(_open_memory().entries()) if type in (None, entry.type)]
    _present(Output(json=as_json, no_color=no_color), entries[:limit], len(entries), "the memory is empty")


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS...", help="Whole words, in any order.")],
    type: TypeOption = None,
    limit: LimitOption = 10,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Search for entries with these words.

    An entry matches if it has some of the words. Entries with the most words come first, then the newest.
    """
    memory = _open_memory()
    text = " ".join(words)
    matches = memory.search((text,), len(memory.entries())) if text.strip() else ()
    of_type = [entry for entry in matches if type in (None, entry.type)]
    _present(Output(json=as_json, no_color=no_color), of_type[:limit], len(of_type), f"no entry matches {text}")


@app.command()
def forget(
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="[ENTRY...]", help="The full ids.", show_default=False)
    ] = None,
    run: Annotated[
        str, typer.Option("--all-of", metavar="RUN", help="Forget every entry of this run.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Forget entries, or every entry of a run.

    The forgotten entries are printed. Lessons that were made from them are forgotten too, because they say the same.
    You are not asked to confirm, and you cannot undo it. If one of the ids is unknown, nothing is forgotten. Only a
    person may do this: an executor is refused.

    Exit code: 0 forgotten; 2 there is no such entry or run.
    """
    from proofstone.cli.task_commands import refuse_executors

    refuse_executors()
    ids = entries or []
    if bool(ids) == bool(run):
        raise InputError(
            "say what to forget: either entries or a run", hint="`proofstone memory forget ENTRY…`, or `--all-of RUN`"
        )
    forgotten: list[MemoryEntry] = []

    def without(existing: tuple[MemoryEntry, ...]) -> MemoryRevision:
        forgotten.extend(_find_by_run(existing, run) if run else _find_by_ids(existing, ids))
        return MemoryRevision(superseded=tuple(entry.entry_id for entry in forgotten))

    _open_memory().revise(without)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document({"forgotten": [entry.model_dump(mode="json") for entry in forgotten]})
    else:
        console = output.result_console()
        _print(console, forgotten)
        console.print(f"forgotten: {_count_entries(len(forgotten))}", style="bold")


EveryOption = Annotated[bool, typer.Option("--all", help="Of all repositories, not of this one alone.")]
HereOption = Annotated[Path | None, typer.Option("--repo", metavar="DIR", help="The repository; by default this one.")]


@app.command()
def decisions(
    every: EveryOption = False,
    repo: HereOption = None,
    limit: LimitOption = 20,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """List what was decided in runs of `proofstone run`, newest first.

    Designers decide how something is built, and the knowledge role notes what later work must know about. The log
    covers all runs in this repository; rows of the ledger, it is never changed.
    """
    from proofstone.app.knowledge import read_decisions

    found = read_decisions(_find_repository(repo, every=every))
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document({"decisions": found[:limit], "total": len(found)})
        return
    console = output.result_console()
    for decision in found[:limit]:
        _print_text(console, f"{decision['date']}  {decision['title']}", style="bold")
        _print_text(console, f"  {decision['decision']}")
        _print_text(console, f"  why: {decision['rationale']}")
        _print_text(console, f"  by {decision['decided_by']}, run {decision['run_id']}\n", style="dim")
    shown = "" if len(found) <= limit else f" of {len(found)}; --limit shows more"
    console.print(f"{pluralize(min(limit, len(found)), 'decision')}{shown}", style="bold")


@app.command()
def proposals(
    every: EveryOption = False, repo: HereOption = None, as_json: JsonOption = False, no_color: NoColorOption = False
) -> None:
    """List what runs propose for the files that instruct agents, such as AGENTS.md.

    Nothing is added to such a file until you adopt a proposal.
    """
    from proofstone.app.knowledge import read_proposals

    found = read_proposals(_find_repository(repo, every=every))
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document({"proposals": [asdict(proposal) for proposal in found]})
        return
    console = output.result_console()
    for proposal in found:
        _print_proposal(console, proposal)
    open_ones = sum(proposal.state == "open" for proposal in found)
    console.print(f"{pluralize(len(found), 'proposal')}, {open_ones} open", style="bold")
    if open_ones:
        console.print("proofstone memory adopt PROPOSAL, or proofstone memory decline PROPOSAL --reason TEXT")


@app.command()
def adopt(
    proposal: Annotated[str, typer.Argument(metavar="PROPOSAL", help="Its id.")],
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Add a proposal to the end of its file, after you have confirmed it.

    The file is changed in your work tree; nothing is committed. Only a person at a terminal may do this.

    Exit code: 0 added; 1 you did not confirm; 2 there is no such proposal, or you may not.
    """
    from proofstone.app.caller import demand_acceptance, gather_facts
    from proofstone.app.knowledge import decide_proposal, find_instruction_file, find_proposal, read_proposals
    from proofstone.cli.task_commands import login_name

    output = Output(json=as_json, no_color=no_color)
    method = demand_acceptance(f"memory adopt {proposal}", gather_facts(can_ask=not as_json))
    chosen = find_proposal(read_proposals(None), proposal)
    file = find_instruction_file(chosen)
    console = replace(output, quiet=False).progress_console()
    _print_proposal(console, chosen)
    _print_text(console, f"add this to {file}? `yes`, or an empty line", style="bold yellow")
    if (read_typed_line() or "").strip().lower() not in ("y", "yes"):
        console.print("nothing was changed")
        raise typer.Exit(1)
    decide_proposal(proposal, login_name(), method, adopt=True)
    _print_text(output.result_console(), f"added to {file}")


@app.command()
def decline(
    proposal: Annotated[str, typer.Argument(metavar="PROPOSAL", help="Its id.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")],
    no_color: NoColorOption = False,
) -> None:
    """Decline a proposal, so that it is no longer open. An executor is refused."""
    from proofstone.app.knowledge import decide_proposal
    from proofstone.cli.task_commands import login_name, refuse_executors, require_text

    refuse_executors()
    text = require_text("--reason", reason)
    declined = decide_proposal(proposal, login_name(), AcceptanceMethod.INTERACTIVE, adopt=False, reason=text)
    _print_text(Output(no_color=no_color).result_console(), f"declined: {declined.id}")


def _find_repository(directory: Path | None, *, every: bool) -> Path | None:
    """Return the repository whose rows are shown; None for all of them."""
    if every:
        return None
    root = find_repository_root(directory or Path.cwd())
    if root is None:
        raise InputError(
            f"{directory or Path.cwd()}: is not in a git repository", hint="go to one, or use --all for all of them"
        )
    return root


def _print_proposal(console: Console, proposal: InstructionProposal) -> None:
    by = f" by {proposal.decided_by}" if proposal.decided_by else ""
    _print_text(console, f"{proposal.id}  {proposal.path}  {proposal.state}{by}", style="bold")
    _print_text(console, indent(escape_control(proposal.content.strip()), "  | "))
    _print_text(console, f"  why: {proposal.reason}\n", style="dim")


def _print_text(console: Console, text: str, style: str = "") -> None:
    console.print(escape_control(text), style=style, soft_wrap=True, markup=False, highlight=False)


def _open_memory() -> FileMemory:
    return FileMemory(memory_path(find_proofstone_home()))


def _find_by_run(entries: Sequence[MemoryEntry], run: str) -> tuple[MemoryEntry, ...]:
    if matches := find_by_run(entries, run):
        return matches
    runs = list(dict.fromkeys(entry.run_id for entry in reversed(entries) if entry.run_id))
    raise InputError(f"--all-of {run}: there is no entry of such a run", hint=_list_names(runs))


def _find_by_ids(entries: Sequence[MemoryEntry], ids: Sequence[str]) -> tuple[MemoryEntry, ...]:
    known = collect_ids(entries)
    if unknown := [id for id in ids if id not in known]:
        existing = [entry.entry_id for entry in reversed(entries)]
        raise InputError(f"no entry {', '.join(unknown)}; nothing was forgotten", hint=_list_names(existing))
    return find_by_ids(entries, ids)


def _list_names(names: Sequence[str]) -> str:
    if not names:
        return "the memory is empty"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"there are: {', '.join(names[:_MAX_NAMES])}{more}; `proofstone memory list` shows them"


def _present(output: Output, entries: Sequence[MemoryEntry], total: int, nothing: str) -> None:
    if output.json:
        output.print_document({"entries": [entry.model_dump(mode="json") for entry in entries], "total": total})
        return
    console = output.result_console()
    if not entries:
        console.print(escape_control(nothing), soft_wrap=True)
        return
    _print(console, entries)
    shown = "" if total == len(entries) else f" of {total}; --limit shows more"
    console.print(f"{_count_entries(len(entries))}{shown}", style="bold")


def _print(console: Console, entries: Sequence[MemoryEntry]) -> None:
    for entry in entries:
        style = "green" if entry.criteria_met else "red"
        worked = "worked" if entry.criteria_met else "failed"
        console.print(
            _single_line(f"{entry.entry_id}  {entry.type}, {worked}  {entry.timestamp}"), style=style, soft_wrap=True
        )
        more = (
            f"… [{len(entry.content) - _MAX_CHARACTERS:,} more characters]"
            if len(entry.content) > _MAX_CHARACTERS
            else ""
        )
        console.print(f"  {_single_line(entry.content[:_MAX_CHARACTERS])}{more}", soft_wrap=True)
        if about := _describe_origin(entry):
            console.print(f"  {_single_line(about)}", style="dim", soft_wrap=True)
        console.print()


def _describe_origin(entry: MemoryEntry) -> str:
    parts = (
        " ".join(entry.tags),
        f"run {entry.run_id}" if entry.run_id else "",
        f"in {entry.repository}" if entry.repository else "",
        f"by {entry.role}" if entry.role else "",
        f"made from {_count_entries(len(entry.sources))}, weight {entry.weight:.2f}" if entry.sources else "",
        f"cost {entry.cost:g}" if entry.cost else "",
    )
    return "; ".join(part for part in parts if part)


def _single_line(text: str) -> str:
    """Escape line breaks, so that no entry can look like two."""
    return escape_control(text).replace("\n", "\\n").replace("\t", "\\t")


def _count_entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"
