"""Commands that the kill harness starts and kills: `check`, `gate` and `run`, on honest work and on work that lies.

A target knows how its command is started, how it is continued after a kill, and what must be true when it has ended.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from proofstone.ledger.connection import ledger_path
from tests.gate.stage import agent, work
from tests.pipeline.stage import REQUEST, TEAM, executor
from tests.staging import FILES, Entry, plan, task
from tests.workshop import Workshop

Link = tuple[int, str, str]
"""What the chain says of a row: its number, its table, and the hash over all that it says."""

PASSED, FAILED, NEEDS_A_PERSON = 0, 1, 3
_BROKEN = "def total(prices):\n    return sum(prices) + 1\n"
_OTHER_TEST = "import unittest\n\n\nclass Cart(unittest.TestCase):\n    def test_nothing(self):\n        pass\n"
_HALF_DONE = work("one", 2).replace("assertEqual(one(), 2)", "assertEqual(one(), 1)")


@dataclass
class Target(ABC):
    """One command in one fresh repository."""

    workshop: Workshop
    root: Path
    lie: str = ""
    """What is wrong with the work; empty for honest work."""
    earlier: frozenset[str] = frozenset()
    """Runs of other commands, from before."""
    is_disturbed: bool = False
    """Whether a program of the engine was killed and the engine went on: then honest work may end without a pass."""
    pids: list[int] = field(default_factory=list)
    """Every engine that was started here."""

    command: ClassVar[str]
    lies: ClassVar[Sequence[str]]

    @abstractmethod
    def begin(self) -> Sequence[str]:
        """Return the arguments that start the command for the first time."""

    @abstractmethod
    def proceed(self) -> Sequence[str]:
        """Return the arguments that a person would use after a kill."""

    @abstractmethod
    def assert_ended(self, ended: subprocess.CompletedProcess[str], expected: Mapping[str, Any] | None) -> None:
        """Assert what must be true at the end; `expected` is the summary of an undisturbed honest run."""

    @abstractmethod
    def summary(self, ended: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
        """Return what a disturbed run must have in common with an undisturbed one."""

    @classmethod
    @abstractmethod
    def make(cls, folder: Path, lie: str = "", *, used: bool = False) -> Target:
        """Return a target in a fresh repository; if `used`, the ledger and the caches exist already."""

    def proofstone(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.workshop.proofstone(self.root, *args)

    def git(self, *args: str) -> str:
        return self.workshop.git(self.root, *args)

    def links(self) -> list[Link]:
        """Return all rows of the ledger, read by a process of its own accord: what is seen here is committed."""
        path = ledger_path(self.workshop.proofstone_home)
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as file:
            if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'chain'").fetchone():
                return []
            return file.execute("SELECT seq, tbl, hash FROM chain ORDER BY seq").fetchall()

    def query(self, sql: str) -> list[dict[str, Any]]:
        asked = self.proofstone("ledger", "query", sql, "--limit", "100000", "--json")
        assert asked.returncode == 0, asked.stderr
        rows: list[dict[str, Any]] = json.loads(asked.stdout)["rows"]
        return rows

    def assert_ledger_kept(self, seen: Sequence[Link]) -> None:
        """Assert that the ledger verifies and still begins with the rows that were seen."""
        now = self.links()
        assert now[: len(seen)] == list(seen), f"{len(seen)} rows were seen, and they are not the first of {len(now)}"
        if now:
            verified = self.proofstone("ledger", "verify")
            assert verified.returncode == 0, verified.stdout + verified.stderr

    def assert_nothing_doubled(self) -> None:
        messages = [tuple(row.values()) for row in self.query("SELECT run_id, message_id FROM messages")]
        assert not _repeated(messages), f"said twice: {_repeated(messages)}"
        ended: set[str] = set()
        for row in self.query("SELECT run_id, type FROM events WHERE type LIKE 'run.%' ORDER BY seq"):
            assert not (row["type"] == "run.finished" and row["run_id"] in ended), f"{row['run_id']} finished twice"
            (ended.add if row["type"] == "run.finished" else ended.discard)(row["run_id"])  # it may be resumed

    def leftovers(self) -> list[str]:
        """Return files and folders that an ended run must not leave: scratch, work trees, locks of git."""
        home = self.workshop.proofstone_home
        work = home / "work"
        trees = [str(place) for run in work.iterdir() for place in run.iterdir()] if work.is_dir() else []
        places = [self.root / ".git", *(home.glob("repos/*/git"))]
        locks = [str(file) for place in places for file in place.rglob("*.lock")]
        return [*self.workshop.leftovers, *trees, *locks]

    def end(self) -> None:
        shutil.rmtree(self.workshop.folder, ignore_errors=True)

    def _runs(self) -> list[str]:
        started = self.query("SELECT run_id FROM events WHERE type = 'run.started' ORDER BY seq")
        return [row["run_id"] for row in started if row["run_id"] not in self.earlier]

    def _use(self) -> None:
        """Have a ledger, a private git directory and caches made by a check."""
        checked = self.proofstone("check", "--json", "--quiet", "--verify", "grep -q sum shop/cart.py")
        assert checked.returncode == PASSED, checked.stderr
        self.earlier = frozenset(self._runs())

    def _assert_exit(self, ended: subprocess.CompletedProcess[str]) -> None:
        allowed = (FAILED,) if self.lie else (PASSED, FAILED, NEEDS_A_PERSON) if self.is_disturbed else (PASSED,)
        assert ended.returncode in allowed, f"exit {ended.returncode}: {ended.stdout}{ended.stderr}"

    def _proceed_with_run(self) -> Sequence[str]:
        if self.links() and self._runs():
            return ("resume", "last", "--json", "--quiet")
        return self.begin()


class CheckTarget(Target):
    """`proofstone check` of a small Python project: the same change is checked again after each kill."""

    command = "check"
    lies = ("broken", "deleted-test", "verify")

    @classmethod
    def make(cls, folder: Path, lie: str = "", *, used: bool = False) -> CheckTarget:
        target = cls(*_repository(folder, FILES), lie)
        if used:
            target._use()
        target.workshop.write(target.root, target._change())
        return target

    def _change(self) -> Mapping[str, str]:
        if self.lie == "broken":
            return {"shop/cart.py": _BROKEN}
        if self.lie == "deleted-test":
            return {"shop/cart.py": _BROKEN, "tests/test_cart.py": _OTHER_TEST}
        tested = "from shop.more import more\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n"
        return {
            "shop/more.py": "def more():\n    return 1\n",
            "tests/test_more.py": f"import unittest\n\n{tested}        self.assertEqual(more(), 1)\n",
        }

    def begin(self) -> Sequence[str]:
        wrong = " && grep -q absent shop/cart.py" if self.lie == "verify" else ""
        return ("check", "--json", "--quiet", "--verify", f"grep -q sum shop/cart.py{wrong}")

    def proceed(self) -> Sequence[str]:
        return self.begin()

    def summary(self, ended: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
        report = json.loads(ended.stdout)
        checks = [(line["name"], line["verdict"], line["baseline"]) for line in report["checks"]]
        return {"outcome": report["outcome"], "tree": report["tree"], "checks": checks}

    def assert_ended(self, ended: subprocess.CompletedProcess[str], expected: Mapping[str, Any] | None) -> None:
        self._assert_exit(ended)
        assert len(self.git("log", "--branches", "--format=%s").splitlines()) == 1, "check commits nothing"
        found = self.summary(ended)
        if self.lie:
            assert found["outcome"] == "failed"
            tree = found["tree"]
            sql = "SELECT payload FROM events WHERE type = 'run.finished'"
            outcomes = [json.loads(row["payload"]) for row in self.query(sql)]
            assert not [one for one in outcomes if one.get("tree") == tree and one["outcome"] == "passed"]
        elif expected is not None:
            assert found == expected, found


class GateTarget(Target):
    """`proofstone gate` of a plan with one or two tasks and an executor that is a shell script."""

    command = "gate"
    lies = ("half-done", "deleted-test", "nothing")

    @classmethod
    def make(cls, folder: Path, lie: str = "", *, used: bool = False) -> GateTarget:
        # One task that lies: a second one would never be begun.
        text = plan(task("One")) if lie else plan(task("One"), task("Two"))
        target = cls(*_repository(folder, {**FILES, "PLAN.md": text}), lie)
        if used:
            target._use()
        return target

    def begin(self) -> Sequence[str]:
        shell = {
            "": work("one"),
            "half-done": _HALF_DONE,
            "deleted-test": f"{work('one')}rm tests/test_cart.py\n",
            "nothing": "true",
        }[self.lie]
        by = agent(t1=shell) if self.lie else agent(t1=shell, t2=work("two"))
        return ("gate", "PLAN.md", "--executor", by, "--json", "--quiet")

    def proceed(self) -> Sequence[str]:
        return self._proceed_with_run()

    def summary(self, ended: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
        return {"history": self.git("log", "--reverse", "--format=%s %T", "proofstone/shop-01").splitlines()}

    def assert_ended(self, ended: subprocess.CompletedProcess[str], expected: Mapping[str, Any] | None) -> None:
        self._assert_exit(ended)
        assert self.git("status", "--porcelain") == ""
        events = self._task_events()
        if self.lie:
            assert len(self.git("log", "--branches", "--format=%s").splitlines()) == 1, "a lie was committed"
            for happened in events.values():
                assert not {"task.approved", "task.committed"} & set(happened), happened
            return
        if expected is not None:
            history, whole = self.summary(ended)["history"], expected["history"]
            assert history == (whole[: len(history)] if ended.returncode else whole), history
        assert len(self._runs()) == 1
        if ended.returncode:
            return
        for happened in events.values():
            assert happened.count("task.committed") == 1, happened
            assert "task.started" not in happened[happened.index("task.approved") :], happened

    def _task_events(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for row in self.query("SELECT task_id, type FROM events WHERE type LIKE 'task.%' ORDER BY seq"):
            found.setdefault(row["task_id"], []).append(row["type"])
        return found


class RunTarget(Target):
    """`proofstone run` with scripted agents for every role."""

    command = "run"
    lies = ("wrong", "escape")

    @classmethod
    def make(cls, folder: Path, lie: str = "", *, used: bool = False) -> RunTarget:
        target = cls(*_repository(folder, FILES), lie)
        if used:
            target._use()
        return target

    def begin(self) -> Sequence[str]:
        return ("run", REQUEST, "--backend", f"script:{self._script()}", "--json", "--quiet")

    def _script(self) -> Path:
        path = self.workshop.folder / "script.yaml"
        if not path.exists():
            entries = [{name: value for name, value in entry.items() if value} for entry in (self._executor(), *TEAM)]
            path.write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")
        return path

    def _executor(self) -> Entry:
        if self.lie == "escape":  # the test that was there is replaced, and nobody is told
            honest = executor()
            empty = {"run": {"command": f"printf '{_OTHER_TEST}' > tests/test_cart.py"}}
            return {**honest, "steps": [*honest["steps"], empty]}
        return executor(body="return 1" if self.lie else "return len(prices)")

    def proceed(self) -> Sequence[str]:
        return self._proceed_with_run()

    def summary(self, ended: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
        report = json.loads(ended.stdout)
        return {name: report[name] for name in ("outcome", "tree", "dispatches")}

    def assert_ended(self, ended: subprocess.CompletedProcess[str], expected: Mapping[str, Any] | None) -> None:
        commits = self.git("log", "--branches", "--format=%H").splitlines()
        assert self.git("status", "--porcelain") == ""
        self._assert_exit(ended)
        if self.lie or ended.returncode:
            assert len(commits) == 1, "what did not pass was committed"
            return
        report = json.loads(ended.stdout)
        assert len(commits) == 2, "one commit, and the base"
        assert self.git("rev-parse", report["branch"]) == report["commit"] == commits[0]
        if expected is not None and not self.is_disturbed:
            assert self.summary(ended) == expected, self.summary(ended)
        sql = "SELECT run_id, payload FROM messages WHERE type = 'Output'"
        answers = [(row["run_id"], json.loads(row["payload"])["dispatch"]) for row in self.query(sql)]
        assert not _repeated(answers), f"answered twice: {_repeated(answers)}"


TARGETS: Mapping[str, type[Target]] = {one.command: one for one in (CheckTarget, GateTarget, RunTarget)}


def _repository(folder: Path, files: Mapping[str, str | bytes]) -> tuple[Workshop, Path]:
    folder.mkdir()
    workshop = Workshop.apart(folder)
    return workshop, workshop.repo(files)


def _repeated(values: Sequence[Any]) -> list[Any]:
    return [value for value, times in Counter(values).items() if times > 1]
