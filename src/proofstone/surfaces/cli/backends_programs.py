"""The coding agents of this machine, as `proofstone backends` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proofstone.adapters.backends.programs.standing import ProgramStanding
from proofstone.surfaces.cli.output import printable

if TYPE_CHECKING:
    from rich.console import Console


def print_programs(console: Console, programs: Sequence[ProgramStanding]) -> None:
    if not programs:
        return
    console.print("\nCoding agents on this machine", style="bold")
    for one in programs:
        if one.path:
            console.print(printable(f"  {' or '.join(one.ways)}"), soft_wrap=True)
            style = "yellow" if one.is_outdated or not one.login else None
            console.print(printable(f"    {_facts(one)}"), style=style, soft_wrap=True)
            console.print(printable(f"    limits itself: {one.limits}"), soft_wrap=True)
    if absent := [one.name for one in programs if not one.path]:
        words = f"  not installed: {', '.join(absent)} (--json says how, and what is known to go wrong)"
        console.print(printable(words), soft_wrap=True)


def _facts(one: ProgramStanding) -> str:
    version = f"version {one.version}" if one.version else "its version cannot be told"
    old = f", older than {one.minimum}, which is known to work: {one.install}" if one.is_outdated else ""
    login = f"login by {one.login}" if one.login else "no login found"
    adapter = f"; acp: needs {one.adapter} too" if one.adapter else ""
    return f"{version}{old}, {login}{adapter} ({one.path})"
