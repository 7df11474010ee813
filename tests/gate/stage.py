"""A stage for the task gate: a small project with a plan, `proofstone gate` run on it, and what came of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.staging import FILES, CommandResult, Staged, set_up_repository

CHECKPOINT = """\
# A shop

<task type="checkpoint:decision">
<name>Task 1: Colour</name>
<decision>Which colour?</decision>
</task>
"""
ONE_TASK = """\
# A shop

<task type="auto">
<name>Task 1: Basket</name>
<files>basket.py</files>
<action>Write a basket with a total.</action>
<verify>python3 -c "import basket; assert basket.total([1, 2]) == 3"
python3 -c "import basket; assert basket.total([]) == 0"</verify>
<done>the basket adds up</done>
</task>
"""
BASKET = "cmd:printf 'def total(prices):\\n    return sum(prices)\\n' > basket.py"


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
class GateResult(CommandResult):
    """What one `proofstone gate --json` gave."""

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
class Stage(Staged):
    @classmethod
    def set_up(cls, folder: Path, text: str, files: Mapping[str, str | bytes] = FILES, settings: str = "") -> Stage:
        return cls(*set_up_repository(folder, files, settings, PLAN=text))

    def gate(self, executor: str, *args: str, env: Mapping[str, str] | None = None) -> GateResult:
        return self._gate("gate", "PLAN.md", "--executor", executor, *args, env=env)

    def resume(self, *args: str, run: str = "last") -> GateResult:
        return self._gate("resume", run, *args)

    def _gate(self, *args: str, env: Mapping[str, str] | None = None) -> GateResult:
        return GateResult.of(self.proofstone(*args, "--json", "--quiet", env=env))

    @property
    def json_status(self) -> dict[str, Any]:
        """What `proofstone status` says about the last run."""
        document: dict[str, Any] = json.loads(self.proofstone("status", "last", "--json").stdout)
        return document

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The JSON in the only column of each row of the ledger that is found."""
        rows = json.loads(self.proofstone("ledger", "query", sql, "--json").stdout)["rows"]
        return [json.loads(next(iter(row.values()))) for row in rows]

    @property
    def state(self) -> str:
        return (self.root / "STATE.md").read_text("utf-8")

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
