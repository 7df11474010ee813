"""A small project with a plan, `proofstone gate` run on it, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.workshop import Workshop

FILES: Mapping[str, str | bytes] = {
    "shop/__init__.py": "",
    "shop/cart.py": "def total(prices):\n    return sum(prices)\n",
    "tests/__init__.py": "",
    "tests/test_cart.py": (
        "import unittest\n\nfrom shop.cart import total\n\n\nclass Cart(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    ),
}


def task(
    name: str,
    *,
    files: str = "",
    verify: str = "",
    done: str = "All tests pass",
    attributes: str = "",
    action: str = "Do it.",
    further: str = "",
) -> str:
    """One task in the form of a plan; by default one that `work` can do."""
    stem = name.lower().replace(" ", "_")
    files = files or f"shop/{stem}.py, tests/test_{stem}.py"
    verify = verify or f"python3 -m unittest tests.test_{stem}"
    return (
        f'<task type="auto" {attributes}>\n<name>{name}</name>\n<files>{files}</files>\n<action>{action}</action>\n'
        f"<verify>{verify}</verify>\n<done>{done}</done>\n{further}</task>\n"
    )


def plan(*tasks: str, head: str = "phase: shop\nplan: 01\n") -> str:
    return f"---\n{head}---\n# More of a shop\n\n<tasks>\n{''.join(tasks)}</tasks>\n"


def work(stem: str, value: int = 1) -> str:
    """Shell that does a task honestly: a module, and a test of it."""
    return (
        f"printf 'def {stem}():\\n    return {value}\\n' > shop/{stem}.py\n"
        f"printf 'import unittest\\n\\nfrom shop.{stem} import {stem}\\n\\n\\nclass T(unittest.TestCase):\\n"
        f"    def test_it(self):\\n        self.assertEqual({stem}(), {value})\\n' > tests/test_{stem}.py\n"
    )


def agent(**tasks: str) -> str:
    """An executor for `cmd:` that does this shell for each task, by number: `t1=…`."""
    cases = "".join(f"task-{int(name[1:]):02})\n{shell}\n;;\n" for name, shell in tasks.items())
    return f"cmd:case $PROOFSTONE_TASK_ID in\n{cases}esac\n"


@dataclass(frozen=True)
class Gated:
    """What one `proofstone gate --json` gave."""

    exit: int
    stdout: str
    stderr: str

    @cached_property
    def json(self) -> dict[str, Any]:
        assert self.stdout, f"exit {self.exit}, no document:\n{self.stderr}"
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @property
    def states(self) -> list[str]:
        return [task["state"] for task in self.json["tasks"]]

    @property
    def attempts(self) -> list[int]:
        return [task["attempts"] for task in self.json["tasks"]]

    def failures(self, number: int) -> list[str]:
        return [failure["type"] for failure in self.json["tasks"][number - 1]["failures"]]

    def reasons(self, number: int) -> set[str]:
        """Everything that was held against a task, by the name of the check or rule."""
        failures = self.json["tasks"][number - 1]["failures"]
        return {reason["check"] for failure in failures for reason in failure["reasons"]}


@dataclass(frozen=True)
class Site:
    workshop: Workshop
    root: Path

    @classmethod
    def made(cls, folder: Path, text: str, files: Mapping[str, str | bytes] = FILES, settings: str = "") -> Site:
        folder.mkdir(exist_ok=True)
        workshop = Workshop.apart(folder)
        own = {"proofstone.toml": settings} if settings else {}
        root = workshop.repo({**files, **own, "PLAN.md": text})
        return cls(workshop, root)

    def gate(self, executor: str, *args: str, env: Mapping[str, str] | None = None) -> Gated:
        return self._gated("gate", "PLAN.md", "--executor", executor, *args, env=env)

    def resume(self, *args: str, run: str = "last") -> Gated:
        return self._gated("resume", run, *args)

    def _gated(self, *args: str, env: Mapping[str, str] | None = None) -> Gated:
        done = self.workshop.proofstone(self.root, *args, "--json", "--quiet", env=env)
        return Gated(done.returncode, done.stdout, done.stderr)

    def proofstone(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.workshop.proofstone(self.root, *args)

    def git(self, *args: str) -> str:
        return self.workshop.git(self.root, *args)

    @property
    def branch(self) -> str:
        """The branch of the only run so far, as the gate names it."""
        return "proofstone/shop-01"

    def subjects(self, branch: str | None = None) -> list[str]:
        """What was committed, oldest first, without the project's own commits."""
        return self.git("log", "--reverse", "--format=%s", f"main..{branch or self.branch}").splitlines()

    def shown(self, path: str) -> str:
        return self.git("show", f"{self.branch}:{path}")

    @property
    def leftovers(self) -> list[Path]:
        """Work trees that nobody works in any more."""
        work = self.workshop.proofstone_home / "work"
        return [place for run in work.iterdir() for place in run.iterdir()] if work.is_dir() else []

    def processes(self) -> list[str]:
        """What still runs of programs that were started here."""
        mark, found = os.fsencode(self.workshop.folder), []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    line = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                found += [line.decode("utf-8", "replace")] if mark in line else []
        return found
