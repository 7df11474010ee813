"""Options that all commands share, and where commands write.

Results go to stdout, progress and logs to stderr. With `--json`, stdout holds one JSON document and nothing else.
Colours, bold and dim are off with `--no-color`, with `NO_COLOR`, and when the stream is not a terminal. Text from a
repository (paths, test ids, output) is printed through `escape_control`, so that it cannot control the terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from proofstone.common.text import escape_control

if TYPE_CHECKING:
    from rich.console import Console


__all__ = [
    "JsonOption",
    "LineReader",
    "NoColorOption",
    "Output",
    "QuietOption",
    "RepoOption",
    "UsageError",
    "VerboseOption",
    "escape_control",
    "find_project_root",
    "read_typed_line",
]

LineReader = Callable[[], str | None]
"""Returns the next line that the person types; None at the end of input."""

RepoOption = Annotated[
    Path,
    typer.Option(
        "--repo",
        metavar="DIR",
        help="The repository, or any directory inside it; the default is the current one.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document; progress goes to stderr.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, no progress.")]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Print everything: each check with its tests, each step, the figures of the controller."
    ),
]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="Print no colours; NO_COLOR does the same.")]

UsageError = cast(
    type[typer.BadParameter],
    next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"),
)
"""The exception that typer raises for a wrong command line. Its module differs between releases, its name does not."""


def read_typed_line() -> str | None:
    """Read a line from standard input; None at its end."""
    line = sys.stdin.readline()
    return line.strip() if line else None


@dataclass(frozen=True)
class Output:
    """The output options of a command."""

    json: bool = False
    quiet: bool = False
    no_color: bool = False
    verbose: bool = False

    def result_console(self) -> Console:
        """Return the console for results, on stdout. It is silent with `--json`, where `document` is the result."""
        return self._console(stderr=False, quiet=self.json)

    def progress_console(self) -> Console:
        """Return the console for progress, on stderr. It is silent with `--quiet`."""
        return self._console(stderr=True, quiet=self.quiet)

    def print_document(self, value: Mapping[str, object]) -> None:
        """Print the one JSON document of a `--json` run."""
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")

    def _console(self, *, stderr: bool, quiet: bool) -> Console:
        from rich.console import Console

        plain = self.no_color or bool(os.environ.get("NO_COLOR"))
        # Square brackets in a path are not markup, and numbers are not highlighted.
        return Console(
            stderr=stderr,
            quiet=quiet,
            color_system=None if plain else "auto",  # `no_color` would keep bold and dim
            markup=False,
            highlight=False,
            emoji=False,
        )


def find_project_root(start: Path) -> Path:
    """Return the nearest directory at or above `start` that holds `.git`, or `start` itself."""
    start = start.absolute()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)
