"""The examples of the pipeline in the documentation can be copied, and print what stands there."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from proofstone.agents.roles.registry import ROLES
from proofstone.agents.script_file import read_script
from tests.workshop import Workshop

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
"""How a run is called."""


def _fences(page: str, heading: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    return FENCE.findall(text)


def _first(page: str, heading: str, kind: str, number: int = 1) -> str:
    return [text for its, text in _fences(page, heading) if its == kind][number - 1]


@dataclass(frozen=True)
class Copied:
    """The example, as somebody has copied it."""

    root: Path
    said: list[str]
    """By the page."""
    done: CompletedProcess[str]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Copied:
    workshop = Workshop.apart(tmp_path_factory.mktemp("copied"))
    root = workshop.repo({"README.md": "# Shop\n\nIt adds up prices.\n"})
    (root.parent / "team.yaml").write_text(_first("run.md", "An example to copy", "yaml"), encoding="utf-8")
    command, *said = _first("run.md", "An example to copy", "console", 2).splitlines()
    return Copied(root, said, workshop.proofstone(root, *shlex.split(command.removeprefix("$ proofstone "))))


def test_the_example_can_be_copied_and_prints_what_the_page_says(copied: Copied) -> None:
    assert copied.done.returncode == 0, copied.done.stderr
    printed = [VARYING.sub("RUN", line).split() for line in (copied.done.stderr + copied.done.stdout).splitlines()]
    for line in copied.said:
        beginning = VARYING.sub("RUN", line).partition("…")[0].split()
        assert any(one[: len(beginning)] == beginning for one in printed), line


def test_whatever_the_example_writes_is_told_by_the_page(copied: Copied) -> None:
    table = (DOCS / "run.md").read_text(encoding="utf-8").partition("## Where things are written")[2]
    named = set(re.findall(r"`([\w/.-]+\.(?:md|yaml|html))`", table.partition("\n## ")[0]))
    (folder,) = (one for one in (copied.root / ".proofstone").iterdir() if not one.name.endswith("-g1"))
    written = {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}
    assert written
    assert written - named == set()


def test_what_a_script_may_answer_is_of_the_schema(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(_first("scripts.md", "In the pipeline", "yaml"), encoding="utf-8")
    entries = read_script(tmp_path / "team.yaml").entries
    assert [entry.role for entry in entries] == ["reviewer", "reviewer", "planner"]
    for entry in entries:
        ROLES[entry.role].output.model_validate(entry.output)
