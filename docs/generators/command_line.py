"""`docs/reference/cli.md`: the real `--help` of every command."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from proofstone.cli.main import COMMANDS, Command, format_root_help, load_app

if TYPE_CHECKING:
    from typer.core import TyperGroup

WIDTH = 100


def cli_reference() -> str:
    parts = [
        "# Command line\n",
        "Generated from `--help` by `make docs`; do not edit.\n",
        f"```\n{format_root_help().rstrip()}\n```\n",
    ]
    for command in COMMANDS:
        if find_spec(command.module) is not None:
            parts += [f"## proofstone {name}\n\n```\n{text}\n```\n" for name, text in command_help(command)]
    return "\n".join(parts)


def command_help(command: Command) -> Iterator[tuple[str, str]]:
    """Name and help of a command and of each of its sub-commands."""
    import typer

    def walk(entry: TyperGroup, name: str, parent: typer.Context | None) -> Iterator[tuple[str, str]]:
        context = typer.Context(entry, info_name=name if parent is None else name.rpartition(" ")[2], parent=parent)
        # Width is the terminal's by default; the manual has one of its own.
        context.terminal_width = context.max_content_width = WIDTH
        yield name, "\n".join(line.rstrip() for line in entry.get_help(context).strip().splitlines())
        for child, inner in getattr(entry, "commands", {}).items():
            yield from walk(inner, f"{name} {child}", context)

    entry = typer.main.get_command(load_app(command))
    for name, text in walk(entry, f"proofstone {command.name}", None):  # type: ignore[arg-type]
        yield name.removeprefix("proofstone "), text
