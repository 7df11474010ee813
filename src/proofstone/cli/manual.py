"""`proofstone manual`: show the pages of the manual that this version was released with."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

import typer

import proofstone
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import escape_control
from proofstone.errors import InputError, MachineError

app = typer.Typer(add_completion=False)

_PACKAGE: Final = Path(proofstone.__file__).parent
_FOLDERS: Final = (_PACKAGE / "manual", _PACKAGE.parents[1] / "docs")
"""Where the pages are: in the installed package, or in the checkout that it runs from."""
_LEFT_OUT: Final = ("decisions/", "rules/")
"""Records for developers, and what `proofstone explain` shows."""


@app.command()
def manual(
    page: Annotated[
        str | None, typer.Argument(metavar="[PAGE]", help="The name of a page, such as `ci` or `how-to/ci`.")
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show a page of the manual, as Markdown. Without PAGE, list the pages with their titles.

    The pages are those of the installed version; nothing is fetched.
    """
    output = Output(json=as_json, no_color=no_color)
    pages = list_pages()
    if page is None:
        titles = {name: _read_title(path) for name, path in pages.items()}
        if as_json:
            output.print_document({"pages": titles})
            return
        width = max(map(len, titles))
        for name, title in titles.items():
            output.result_console().print(f"{name:<{width}}  {title}", soft_wrap=True, markup=False)
        return
    name = _find_page(page, pages)
    text = pages[name].read_text("utf-8")
    if as_json:
        output.print_document({"page": name, "text": text})
    else:
        output.result_console().print(escape_control(text), soft_wrap=True, markup=False, highlight=False)


def list_pages() -> dict[str, Path]:
    """Return the pages of the manual by name, which is their path without the suffix."""
    folder = next((folder for folder in _FOLDERS if (folder / "README.md").is_file()), None)
    if folder is None:
        raise MachineError(
            f"{_FOLDERS[0]}: the manual is not there, so this installation is incomplete",
            hint="install Proofstone again",
        )
    names = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
    return {name: path for name, path in names.items() if not name.startswith(_LEFT_OUT)}


def _find_page(asked: str, pages: dict[str, Path]) -> str:
    wanted = asked.removeprefix("docs/").removesuffix(".md").lower()
    found = [name for name in pages if name.lower() == wanted] or [
        name for name in pages if name.rpartition("/")[2].lower() == wanted
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{asked}: there is more than one such page", hint=f"name one of {', '.join(found)}")
    near = get_close_matches(wanted, [*pages, *(name.rpartition("/")[2] for name in pages)], n=1)
    hint = f"did you mean {near[0]}?" if near else "`proofstone manual` lists the pages"
    raise InputError(f"{asked}: the manual has no such page", hint=hint)


def _read_title(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), "")
