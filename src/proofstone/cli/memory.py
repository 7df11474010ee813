"""`proofstone memory`: what is remembered from one task to the next. Entries are data, shown as such."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from proofstone.agents.memory.models import MemoryEntry, MemoryType, Revision
from proofstone.agents.memory.rules.calibration import from_run, known_ids, named_by
from proofstone.agents.memory.store import FileMemory, memory_path
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import printable
from proofstone.config.home import proofstone_home
from proofstone.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


app = typer.Typer(
    add_completion=False,
    help="""What is remembered from one task to the next: how tasks went, what failed in them and with what, and lessons
    made of several of those. Planners are told what they must not repeat and what worked.

    The memory is a file of one entry a line, memory/entries.jsonl under PROOFSTONE_HOME, for you alone.""",
)

LimitOption = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most so many.")]
TypeOption = Annotated[
    MemoryType | None,
    typer.Option("--type", help="Only how tasks went, what to do and not to do, or lessons.", show_default=False),
]
_SHOWN = 400
"""Characters of an entry; the rest is in --json."""
_NAMED = 5
"""Ids or runs that a hint names."""


@app.command("list")
def list_(
    type: TypeOption = None, limit: LimitOption = 20, as_json: JsonOption = False, no_color: NoColorOption = False
) -> None:
    """List what is remembered, newest first.

    Each has its id, its type and whether it worked; what it says; then its tags and where it comes from. A planner is
    told what failed, and held to its tags once two runs have failed with them: for a task like that one no plan may
    then use `tool:shell`, or rest on `target:a.csv`. A lesson shows how much of its weight is left: it fades with the
    tasks that do not confirm it.
    """
    entries = [entry for entry in reversed(_memory().entries()) if type in (None, entry.type)]
    _present(Output(json=as_json, no_color=no_color), entries[:limit], len(entries), "nothing is remembered yet")


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS...", help="In any order; whole words.")],
    type: TypeOption = None,
    limit: LimitOption = 10,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Search for entries with these words.

    Some of the words are enough: those that have the most come first, and the newest among equals.
    """
    memory = _memory()
    asked = " ".join(words)
    found = memory.search((asked,), len(memory.entries())) if asked.strip() else ()
    of_type = [item for item in found if type in (None, item.type)]
    _present(Output(json=as_json, no_color=no_color), of_type[:limit], len(of_type), f"nothing is known about {asked}")


@app.command()
def forget(
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="[ENTRY...]", help="Their ids, in full.", show_default=False)
    ] = None,
    run: Annotated[
        str, typer.Option("--all-of", metavar="RUN", help="All that comes from this run.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Forget entries, or all that comes from a run.

    What is forgotten is printed. Lessons that were made of it are forgotten too, since they say the same. Nothing is
    asked, and it cannot be taken back. If one of the ids is not known, nothing is forgotten. This is a person's word:
    an executor is refused.

    Exits with 0 when it is gone, 2 when there is no such entry or run.
    """
    from proofstone.cli.task_commands import refuse_executors

    refuse_executors()
    ids = entries or []
    if bool(ids) == bool(run):
        raise InputError(
            "say what to forget: entries, or a run", hint="`proofstone memory forget ENTRY…`, or `--all-of RUN`"
        )
    forgotten: list[MemoryEntry] = []

    def without(there: tuple[MemoryEntry, ...]) -> Revision:
        forgotten.extend(_of_run(there, run) if run else _of_ids(there, ids))
        return Revision(superseded=tuple(item.entry_id for item in forgotten))

    _memory().revise(without)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.document({"forgotten": [item.model_dump(mode="json") for item in forgotten]})
    else:
        console = output.results()
        _print(console, forgotten)
        console.print(f"forgotten: {_counted(len(forgotten))}", style="bold")


def _memory() -> FileMemory:
    return FileMemory(memory_path(proofstone_home()))


def _of_run(entries: Sequence[MemoryEntry], run: str) -> tuple[MemoryEntry, ...]:
    if found := from_run(entries, run):
        return found
    runs = list(dict.fromkeys(entry.run_id for entry in reversed(entries) if entry.run_id))
    raise InputError(f"--all-of {run}: nothing comes from such a run", hint=_there_are(runs))


def _of_ids(entries: Sequence[MemoryEntry], ids: Sequence[str]) -> tuple[MemoryEntry, ...]:
    known = known_ids(entries)
    if unknown := [id for id in ids if id not in known]:
        there = [entry.entry_id for entry in reversed(entries)]
        raise InputError(f"no entry {', '.join(unknown)}; nothing was forgotten", hint=_there_are(there))
    return named_by(entries, ids)


def _there_are(names: Sequence[str]) -> str:
    if not names:
        return "nothing is remembered"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"there are: {', '.join(names[:_NAMED])}{more}; `proofstone memory list` shows them"


def _present(output: Output, entries: Sequence[MemoryEntry], total: int, nothing: str) -> None:
    if output.json:
        output.document({"entries": [entry.model_dump(mode="json") for entry in entries], "total": total})
        return
    console = output.results()
    if not entries:
        console.print(printable(nothing), soft_wrap=True)
        return
    _print(console, entries)
    shown = "" if total == len(entries) else f" of {total}; --limit shows more"
    console.print(f"{_counted(len(entries))}{shown}", style="bold")


def _print(console: Console, entries: Sequence[MemoryEntry]) -> None:
    for entry in entries:
        style = "green" if entry.criteria_met else "red"
        worked = "worked" if entry.criteria_met else "failed"
        console.print(
            _line(f"{entry.entry_id}  {entry.type}, {worked}  {entry.timestamp}"), style=style, soft_wrap=True
        )
        more = f"… [{len(entry.content) - _SHOWN:,} more characters]" if len(entry.content) > _SHOWN else ""
        console.print(f"  {_line(entry.content[:_SHOWN])}{more}", soft_wrap=True)
        if about := _about(entry):
            console.print(f"  {_line(about)}", style="dim", soft_wrap=True)
        console.print()


def _about(entry: MemoryEntry) -> str:
    known = (
        " ".join(entry.tags),
        f"run {entry.run_id}" if entry.run_id else "",
        f"by {entry.role}" if entry.role else "",
        f"made of {_counted(len(entry.sources))}, weight {entry.weight:.2f}" if entry.sources else "",
        f"cost {entry.cost:g}" if entry.cost else "",
    )
    return "; ".join(part for part in known if part)


def _line(text: str) -> str:
    """In one line: no entry can look like two."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _counted(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"
