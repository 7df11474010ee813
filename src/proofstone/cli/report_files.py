"""The options `--html` and `--md`: where a page goes. Bad files are refused before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from proofstone.app.report_pages import require_report_file
from proofstone.documents.html import write_html
from proofstone.documents.markdown_page import write_markdown
from proofstone.documents.model import Document
from proofstone.errors import InputError
from proofstone.machine.files import write_atomic

HtmlOption = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write the report as a page for a browser, with the diff; `-` is stdout.",
        show_default=False,
    ),
]
MarkdownOption = Annotated[
    Path | None,
    typer.Option(
        "--md", metavar="FILE", help="Write the report as Markdown, with the diff; `-` is stdout.", show_default=False
    ),
]
_STDOUT: Final = Path("-")


@dataclass(frozen=True)
class ReportFiles:
    """The files that a page is written to. None of them need be given."""

    html: Path | None = None
    markdown: Path | None = None

    @classmethod
    def check(cls, html: Path | None, markdown: Path | None, repository: Path, *, as_json: bool) -> ReportFiles:
        """Return the files if all of them can be written."""
        given = [(option, file) for option, file in (("--html", html), ("--md", markdown)) if file is not None]
        on_stdout = [option for option, file in given if file == _STDOUT]
        if as_json and on_stdout:
            raise InputError(f"{on_stdout[0]} - and --json: both would be written to stdout", hint="name a file")
        paths = [file if file == _STDOUT else require_report_file(option, file, repository) for option, file in given]
        if len(paths) == 2 and paths[0] == paths[1]:
            raise InputError("--html and --md: both name the same file", hint="name two files")
        by_option = dict(zip((option for option, _ in given), paths, strict=True))
        return cls(by_option.get("--html"), by_option.get("--md"))

    @property
    def is_empty(self) -> bool:
        return self.html is None and self.markdown is None

    @property
    def uses_stdout(self) -> bool:
        """Whether a page takes the place of the ordinary result."""
        return _STDOUT in (self.html, self.markdown)

    def write(self, document: Document, tone: str) -> list[Path]:
        """Write the page in every format that is asked for, and return the files."""
        writers: tuple[tuple[Path | None, Callable[[], str]], ...] = (
            (self.html, lambda: write_html(document, tone)),
            (self.markdown, lambda: write_markdown(document)),
        )
        written = []
        for file, render in writers:
            if file == _STDOUT:
                sys.stdout.write(render())
            elif file is not None:
                write_atomic(file, render().encode("utf-8", "backslashreplace"))
                written.append(file)
        return written
