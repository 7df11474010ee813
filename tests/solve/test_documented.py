"""The examples of the control loop in the documentation can be copied, and print what stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from proofstone.agents.roles.registry import LOOP_ROLES
from proofstone.agents.script_file import read_script
from tests.workshop import Workshop

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"\d+\.\d+|\d{8}T\d{6}Z-[0-9a-f]{6}")
"""How long it took and how it is called; and figures, since Ω is made of time."""


def _section(page: str, heading: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.split(r"^##", text.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def _example() -> tuple[str, str]:
    """The script, and what is typed and printed."""
    section = _section("solve.md", "An example to copy")
    (script,) = (text for kind, text in FENCE.findall(section) if kind == "yaml")
    *_, shown = (text for kind, text in FENCE.findall(section) if kind == "console")
    return script, shown


def test_the_example_can_be_copied_and_prints_what_the_page_says(tmp_path: Path) -> None:
    script, shown = _example()
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"notes.txt": "milk\nbread\ntea\n"})
    (root.parent / "team.yaml").write_text(script, encoding="utf-8")
    command, *said = shown.splitlines()
    done = workshop.proofstone(root, *shlex.split(command.removeprefix("$ proofstone ")))
    assert done.returncode == 0, done.stderr
    printed = [VARYING.sub("N", line).split() for line in (done.stderr + done.stdout).splitlines()]
    for line in said:
        beginning = VARYING.sub("N", line).partition("…")[0].split()
        assert any(one[: len(beginning)] == beginning for one in printed), line


def test_what_a_script_may_answer_is_of_the_schema(tmp_path: Path) -> None:
    (script,) = (text for kind, text in FENCE.findall(_section("scripts.md", "In the control loop")) if kind == "yaml")
    (tmp_path / "team.yaml").write_text(script, encoding="utf-8")
    asked = {"planner": "fail", "executor": "execute", "agent_validator": "judge"}
    entries = read_script(tmp_path / "team.yaml").entries
    assert [entry.role for entry in entries] == list(asked)
    for entry in entries:
        LOOP_ROLES[asked[entry.role]].output.model_validate(entry.output)
