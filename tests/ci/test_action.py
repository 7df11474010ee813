"""The GitHub action and the files for CI that `init` writes: valid by the schemas of the services, and done."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from proofstone.init.models import CiService, RepositoryFacts
from proofstone.init.rules.proposals import list_proposals
from tests.workshop import START, Workshop

ACTION = Path(__file__).parents[2] / "action.yml"


def read_yaml(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = YAML(typ="safe").load(path.read_text("utf-8"))
    return document


def test_the_files_for_ci_are_valid(tmp_path: Path) -> None:
    facts = RepositoryFacts(services=tuple(CiService), version="1")
    schemas = {ACTION: "vendor.github-actions"}
    for proposal in list_proposals(facts):
        path = tmp_path / proposal.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(proposal.content)
        schemas[path] = "vendor.gitlab-ci" if "gitlab" in proposal.path else "vendor.github-workflows"
    assert len(schemas) == 3
    for path, schema in schemas.items():
        words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_passes_inputs_by_variables_only() -> None:
    """An expression inside a script would be text that a pull request chooses."""
    steps = read_yaml(ACTION)["runs"]["steps"]
    assert all("${{" not in step["run"] for step in steps)


@pytest.mark.parametrize(("inputs", "expected"), [({}, 1), ({"verify": "test -e absent-$HOME", "comment": "false"}, 1)])
def test_the_check_of_the_action_runs(tmp_path: Path, inputs: dict[str, str], expected: int) -> None:
    """The last step, as a runner does it: variables are filled from the inputs, and bash gets the script."""
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"conftest.py": "", "a.py": "def f():\n    return 1\n"})
    workshop.write(root, {"test_a.py": "from a import f\n\n\ndef test_f():\n    assert f() == 2\n"})
    base = workshop.git(root, "rev-parse", "HEAD")
    workshop.commit(root)
    temporary = tmp_path / "runner"
    program = temporary / "proofstone-program/bin/proofstone"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{START}" "$@"\n')
    program.chmod(0o755)
    action = read_yaml(ACTION)
    values = {name: str(entry["default"]) for name, entry in action["inputs"].items()} | {"base": base} | inputs
    step = action["runs"]["steps"][-1]
    filled = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)
        for name, text in step["env"].items()
    }
    output = tmp_path / "output"
    variables = {**workshop.environment, **filled, "RUNNER_TEMP": str(temporary), "GITHUB_OUTPUT": str(output)}
    variables |= {"GITHUB_TOKEN": "", "GITHUB_ACTIONS": "true", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=root, env=variables, capture_output=True, text=True
    )
    assert done.returncode == expected, done.stdout + done.stderr
    assert "::error" in done.stdout
    folder = Path(output.read_text().strip().removeprefix("report="))
    assert (folder / "report.sarif").exists() and (folder / "junit.xml").exists()
