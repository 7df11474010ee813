"""A small project with a plan, `proofstone gate` run on it, and what came of it."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofstone.ledger.connection import ledger_path
from proofstone.ledger.sqlite import SqliteLedger
from tests.cli.running import START, proofstone
from tests.staging import CommandResult, set_up_repository
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
class Site:
    workshop: Workshop
    root: Path

    @classmethod
    def made(cls, folder: Path, text: str, files: Mapping[str, str | bytes] = FILES, settings: str = "") -> Site:
        return cls(*set_up_repository(folder, files, settings, PLAN=text))

    def gate(self, executor: str, *args: str, env: Mapping[str, str] | None = None) -> GateResult:
        return self._gate("gate", "PLAN.md", "--executor", executor, *args, env=env)

    def resume(self, *args: str, run: str = "last") -> GateResult:
        return self._gate("resume", run, *args)

    def _gate(self, *args: str, env: Mapping[str, str] | None = None) -> GateResult:
        return GateResult.of(self.workshop.proofstone(self.root, *args, "--json", "--quiet", env=env))

    def proofstone(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.workshop.proofstone(self.root, *args)

    def git(self, *args: str) -> str:
        return self.workshop.git(self.root, *args)

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
DEADLINE = 120
_CONTROLLED = "import os; os.close(os.open(os.ttyname(0), os.O_RDWR)); "
"""The first terminal that the leader of a session opens is the one whose Ctrl-C reaches it."""


@dataclass(frozen=True)
class Shop:
    root: Path
    home: Path

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return proofstone(*args, home=self.home, cwd=self.root, env=env)

    def document(self, *args: str) -> dict[str, Any]:
        done = self.run(*args, "--json")
        found: dict[str, Any] = json.loads(done.stdout)
        return {"exit": done.returncode, **found}

    def git(self, *args: str) -> str:
        return subprocess.run(["git", *args], cwd=self.root, check=True, capture_output=True, text=True).stdout

    @property
    def rows(self) -> int:
        """How many rows the ledger has."""
        with closing(SqliteLedger(ledger_path(self.home), "read")) as ledger:
            return ledger.head().seq

    @property
    def state(self) -> str:
        return (self.root / "STATE.md").read_text("utf-8")

    def at_a_terminal(self, *args: str, typed: Mapping[str, str]) -> tuple[int, str]:
        """Exit code and everything shown; each text is typed when what it answers has been shown."""
        master, slave = pty.openpty()
        environment = {**os.environ, "PROOFSTONE_HOME": str(self.home), "COLUMNS": "200", "TERM": "xterm"}
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", _CONTROLLED + START, *args],
            cwd=self.root,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        try:
            shown = _talk(master, typed)
            return process.wait(DEADLINE), shown
        finally:
            process.kill()
            process.wait()
            os.close(master)


def _talk(master: int, typed: Mapping[str, str]) -> str:
    shown, answers = "", list(typed.items())
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            data = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        shown += data.decode("utf-8", "replace")
        if answers and answers[0][0] in shown:
            os.write(master, answers.pop(0)[1].encode())
    return shown


def make_shop(folder: Path, plan: str) -> Shop:
    root = folder / "shop"
    root.mkdir()
    shop = Shop(root, folder / "home")
    (root / "shop.py").write_text("PRICE = 1\n")
    (root / "PLAN.md").write_text(plan)
    shop.git("init", "-q", "-b", "main")
    shop.git("config", "user.name", "Ada")
    shop.git("config", "user.email", "ada@example.org")
    shop.git("add", "-A")
    shop.git("commit", "-qm", "base")
    return shop
