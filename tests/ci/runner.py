"""Jobs of CI services, done on this machine: the steps of a workflow, of an action and of a template, in their order.

Expressions are filled from a context. Actions of others are played: a checkout is a clone, an upload a copy. `sudo` and
`apt-get` do nothing, because the machine of the tests has what they would install.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

_EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
Document = Mapping[str, Any]


def read_yaml(text: str) -> Document:
    document: Document = YAML(typ="safe").load(text)
    return document


@dataclass
class Job:
    """A job, and what has come of its steps."""

    origin: Path
    """The repository that is checked out."""
    folder: Path
    variables: Mapping[str, str]
    context: dict[str, str]
    output: str = ""
    code: int = 0
    """The exit code of the first step that failed."""
    artifacts: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.temporary.mkdir(parents=True)
        programs = self.folder / "programs"
        programs.mkdir()
        for name in ("sudo", "apt-get"):
            (programs / name).write_text("#!/bin/sh\nexit 0\n")
            (programs / name).chmod(0o755)
        self.variables = {
            **self.variables,
            "PATH": f"{programs}:{self.variables['PATH']}",
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
        }
        self.context |= {"runner.temp": str(self.temporary), "runner.os": "Linux"}

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"

    def checkout(self, revision: str) -> None:
        """Clone as the action and the runner of GitLab do: all of the history, without a branch."""
        self.shell(f"git clone --quiet {self.origin} {self.workspace}", self.folder, {})
        self.shell(f"git checkout --quiet --detach {revision}", self.workspace, {})

    def shell(self, script: str, place: Path, variables: Mapping[str, str]) -> None:
        """Run a script as a runner does, and go on only if it succeeds."""
        words = ["bash", "-e", "-o", "pipefail", "-c", script]
        done = subprocess.run(words, cwd=place, env={**self.variables, **variables}, capture_output=True, text=True)
        self.output += done.stdout + done.stderr
        self.code = self.code or done.returncode

    def do_workflow(self, workflow: Document) -> None:
        """Do the steps of the only job of a workflow for GitHub Actions."""
        (job,) = workflow["jobs"].values()
        self.do_steps(job["steps"])

    def do_steps(self, steps: list[Document]) -> None:
        for step in steps:
            if self.code and step.get("if") != "always()":
                continue
            if uses := step.get("uses"):
                self._play(uses.partition("@")[0], step.get("with", {}))
            else:
                place = self.workspace if self.workspace.exists() else self.folder
                variables = {name: self.fill(str(value)) for name, value in step.get("env", {}).items()}
                self.shell(self.fill(step["run"]), place, variables)

    def do_action(self, action: Document, inputs: Mapping[str, str]) -> None:
        """Do the steps of a composite action."""
        defaults = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()}
        self.context |= {f"inputs.{name}": self.fill(value) for name, value in {**defaults, **inputs}.items()}
        self.do_steps(action["runs"]["steps"])

    def do_template(self, template: Document) -> None:
        """Do the only job of a template for GitLab."""
        (job,) = template.values()
        variables = {name: str(value) for name, value in job.get("variables", {}).items()}
        for part in ("before_script", "script"):
            for line in job[part]:
                if not self.code:
                    self.shell(line, self.workspace, variables)
        for line in job["after_script"]:
            self.shell(line, self.workspace, variables)
        for path in job["artifacts"]["paths"]:
            self.artifacts[path] = self.workspace / path

    def _play(self, action: str, given: Document) -> None:
        match action:
            case "actions/checkout":
                assert given["fetch-depth"] == 0 and given["persist-credentials"] is False
                self.checkout(self.fill(given["ref"]))
            case "actions/upload-artifact":
                source = Path(self.fill(given["path"]))
                assert source.is_dir(), self.output
                self.artifacts[given["name"]] = Path(shutil.copytree(source, self.folder / "artifacts"))
            case "actions/setup-python" | "actions/setup-node":
                pass
            case _:
                raise AssertionError(f"{action} is not played")

    def fill(self, text: str) -> str:
        """Return the text with every expression replaced by its value."""
        return _EXPRESSION.sub(lambda match: self.context[match[1]], text)
