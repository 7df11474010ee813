"""`proofstone manual` shows the pages that messages name."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

from proofstone.cli.main import main
from proofstone.cli.manual import list_pages

SOURCE = Path(__file__).parents[2] / "src/proofstone"


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["manual", *args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_page_is_found_by_its_name_or_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    whole = run(capsys, "how-to/ci")
    assert whole[0] == 0 and whole[1].startswith("# Check a pull request")
    assert run(capsys, "ci") == run(capsys, "docs/how-to/ci.md") == whole
    titles = json.loads(run(capsys, "--json")[1])["pages"]
    assert titles["plan"] == "The form of a plan" and all(titles.values())
    assert not [name for name in titles if name.startswith(("decisions", "rules"))]


def test_a_page_that_is_not_there_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "plam")
    assert (code, "did you mean plan?" in err) == (2, True)


def test_every_page_that_a_message_names_is_in_the_manual() -> None:
    names = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"`proofstone manual ([a-z/-]+)`", path.read_text("utf-8"))
    }
    known = {name.rpartition("/")[2] for name in list_pages()} | set(list_pages())
    assert {"plan", "gate", "scripts"} <= names <= known


def test_the_wheel_holds_every_page_and_the_site_has_a_place_for_it() -> None:
    root = SOURCE.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert all(target == f"proofstone/manual/{source.removeprefix('docs/')}" for source, target in included.items())
    pages = {f"docs/{name}.md" for name in list_pages()}
    assert {
        page for page in pages if not any(page == name or page.startswith(f"{name}/") for name in included)
    } == set()
    places = set(re.findall(r"[\w/.-]+\.md", (root / "mkdocs.yml").read_text("utf-8")))
    assert {page.removeprefix("docs/") for page in pages} <= places


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[a test](../../tests/x.py#L3)", "a test (`tests/x.py`)"),
        ("[`tests/x.py`](../../tests/x.py)", "`tests/x.py`"),
        ("[a page](../check.md#a)", "[a page](../check.md#a)"),
        ("[a site](https://example.org/a)", "[a site](https://example.org/a)"),
    ],
)
def test_on_the_site_a_link_out_of_the_manual_is_the_path_of_the_file(link: str, shown: str) -> None:
    module = runpy.run_path(str(SOURCE.parents[1] / "docs/site_hook.py"))
    assert module["write_outside_links"](f"See {link}.", "how-to/ci.md") == f"See {shown}."
