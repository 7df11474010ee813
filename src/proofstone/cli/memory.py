"""`proofstone memory`: show what is remembered from one task to the next. Entries are untrusted data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from proofstone.agents.memory.models import MemoryEntry, MemoryRevision, MemoryType
from proofstone.agents.memory.rules.calibration import collect_ids, find_by_ids, find_by_run
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import escape_control
from proofstone.config.home import find_proofstone_home
from proofstone.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


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
