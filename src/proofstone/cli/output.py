"""What all commands share: their common options, and where they write.

Results go to stdout, progress and logs to stderr; with `--json` stdout holds one JSON document and nothing else.
Colours, and with them bold and dim, are off with `--no-color`, with `NO_COLOR`, and when the stream is not a terminal.
Text that a repository chose (paths, test ids, output) is shown through `printable`, so that it cannot drive the
terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from proofstone.common.text import printable

if TYPE_CHECKING:
    from rich.console import Console


__all__ = [
    "JsonOption",
    "NoColorOption",
    "Output",
    "QuietOption",
    "RepoOption",
    "UsageError",
    "printable",
    "repository_root",
]

RepoOption = Annotated[
    Path,
    typer.Option(
        "--repo",
        metavar="DIR",
        help="The repository, or any directory inside it; else where you stand.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document; progress goes to stderr.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only, no progress.")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="No colours; NO_COLOR in the environment does it too.")]

UsageError = cast(
    type[typer.BadParameter],
    next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"),
)
"""What typer raises for a wrong command line. Releases differ in which module it comes from, not in its name."""


@dataclass(frozen=True)
class Output:
    """How one command was asked to speak."""

    json: bool = False
    quiet: bool = False
    no_color: bool = False

    def results(self) -> Console:
        """For people, on stdout; silent with `--json`, where `document` is the result."""
        return self._console(stderr=False, quiet=self.json)

    def progress(self) -> Console:
        """On stderr; silent with `--quiet`."""
        return self._console(stderr=True, quiet=self.quiet)

    def document(self, value: Mapping[str, object]) -> None:
        """The one JSON document of a `--json` run."""
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")

    def _console(self, *, stderr: bool, quiet: bool) -> Console:
        from rich.console import Console

        plain = self.no_color or bool(os.environ.get("NO_COLOR"))
        # Square brackets in a path are no markup, and numbers need no colours of their own.
        return Console(
            stderr=stderr,
            quiet=quiet,
            color_system=None if plain else "auto",  # `no_color` would keep bold and dim
            markup=False,
            highlight=False,
            emoji=False,
        )


def repository_root(start: Path) -> Path:
    """The nearest directory at or above `start` that holds `.git`, else `start` itself."""
    start = start.absolute()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)
