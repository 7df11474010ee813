"""A small repository with a plan, and `proofstone` started in it as people do."""

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
