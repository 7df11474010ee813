"""The options `--html`, `--md`, `--sarif` and `--junit`: the files that a report is written to. Bad files are refused
before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from proofstone.app.report_pages import require_report_file
from proofstone.errors import InputError
from proofstone.machine.files import write_atomic

HTML: Final = "--html"
MARKDOWN: Final = "--md"
SARIF: Final = "--sarif"
JUNIT: Final = "--junit"

HtmlOption = Annotated[
    Path | None,
    typer.Option(
        HTML,
        metavar="FILE",
        help="Write the report as a page for a browser, with the diff; `-` is stdout.",
        show_default=False,
    ),
]
MarkdownOption = Annotated[
    Path | None,
    typer.Option(
        MARKDOWN, metavar="FILE", help="Write the report as Markdown, with the diff; `-` is stdout.", show_default=False
    ),
]
SarifOption = Annotated[
    Path | None,
    typer.Option(
        SARIF,
        metavar="FILE",
        help="Write the findings as SARIF 2.1.0, for code hosts and editors; `-` is stdout.",
        show_default=False,
    ),
]
JunitOption = Annotated[
    Path | None,
    typer.Option(
        JUNIT,
        metavar="FILE",
        help="Write the test results, on the base and now, as JUnit XML; `-` is stdout.",
        show_default=False,
    ),
]
_STDOUT: Final = Path("-")


@dataclass(frozen=True)
class ReportFiles:
    """The files that a report is written to, by option. There may be none."""

    files: Mapping[str, Path]

    @classmethod
    def check(cls, files: Mapping[str, Path | None], repository: Path, *, as_json: bool) -> ReportFiles:
        """Return the files if all of them can be written."""
        given = {option: file for option, file in files.items() if file is not None}
        on_stdout = [option for option, file in given.items() if file == _STDOUT]
        if as_json and on_stdout:
            raise InputError(f"{on_stdout[0]} - and --json: both would be written to stdout", hint="name a file")
        paths: dict[str, Path] = {}
        for option, file in given.items():
            path = file if file == _STDOUT else require_report_file(option, file, repository)
            same = next((other for other, taken in paths.items() if taken == path), None)
            if same is not None:
                raise InputError(f"{same} and {option}: both name the same file", hint="name two files")
            paths[option] = path
        return cls(paths)

    @property
    def is_empty(self) -> bool:
        return not self.files

    @property
    def uses_stdout(self) -> bool:
        """Whether a file takes the place of the ordinary result."""
        return _STDOUT in self.files.values()

    def write(self, renderers: Mapping[str, Callable[[], str]]) -> list[Path]:
        """Write the report in every format that is asked for, and return the files."""
        written = []
        for option, file in self.files.items():
            text = renderers[option]()
            if file == _STDOUT:
                sys.stdout.write(text)
            else:
                write_atomic(file, text.encode("utf-8", "backslashreplace"))
                written.append(file)
        return written
