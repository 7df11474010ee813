"""A repository whose check can be broken off, and everything that must be as it was afterwards."""

from __future__ import annotations

import itertools
import json
import os
import signal
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.check.hazards.processes import groups_of_the_dead
from tests.waiting import wait_until
from tests.workshop import CheckRun, Workshop

VERIFY = "grep -q good value.txt"

Files = dict[str, tuple[int, bytes]]


@dataclass(frozen=True)
class State:
    """What a crash must not touch."""

    rows: list[str]
    """The hashes of the ledger, in order."""
    files: Files
    """The repository, with its index and refs, byte for byte; without the anchor that Proofstone itself writes."""
    objects: Files


@dataclass
class Bench:
    workshop: Workshop
    root: Path
    numbers: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)
    groups_left: list[Path] = field(default_factory=list)
    """Control groups that a killed run could not remove itself: the next run must."""

    @classmethod
    def made(cls, folder: Path) -> Bench:
        bench = cls.unchecked(folder)
        honest = bench.check()
        assert honest.exit == 0, honest.stderr
        return bench

    @classmethod
    def unchecked(cls, folder: Path) -> Bench:
        workshop = Workshop.apart(folder)
        root = workshop.repo({"value.txt": "good\n", "other.txt": "left alone\n"})
        workshop.write(root, {"staged.txt": "staged\n"})
        workshop.git(root, "add", "staged.txt")
        bench = cls(workshop, root)
        bench.change()
        return bench

    def change(self, word: str = "good") -> None:
        """A change that no run has seen yet: nothing about it is cached."""
        self.workshop.write(self.root, {"value.txt": f"{word} {self.numbers()}\n"})

    def check(self, *args: str, env: Mapping[str, str] | None = None, wrap: Sequence[str] = ()) -> CheckRun:
        return self.workshop.check(self.root, "--verify", VERIFY, *args, env=env, wrap=wrap)

    def state(self) -> State:
        objects = {name: file for name, file in _files(self.root).items() if name.startswith(".git/objects/")}
        return State(self.rows(), self.files(), objects)

    def files(self) -> Files:
        own = (".git/objects/", ".git/refs/proofstone/")
        return {name: file for name, file in _files(self.root).items() if not name.startswith(own)}

    def rows(self) -> list[str]:
        asked = self.workshop.proofstone(
            self.root, "ledger", "query", "SELECT hash FROM chain ORDER BY seq", "--limit", "100000", "--json"
        )
        assert asked.returncode == 0, asked.stderr
        return [row["hash"] for row in json.loads(asked.stdout)["rows"]]

    def last_event(self) -> dict[str, str]:
        """What the ledger says came last about the last run."""
        sql = "SELECT type, payload FROM events ORDER BY seq DESC LIMIT 1"
        asked = self.workshop.proofstone(self.root, "ledger", "query", sql, "--json")
        (row,) = json.loads(asked.stdout)["rows"]
        return {"type": row["type"], **json.loads(row["payload"])}

    def assert_unharmed(self, before: State) -> None:
        """The ledger verifies and holds every earlier row; the repository is as it was."""
        verified = self.workshop.proofstone(self.root, "ledger", "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        after = self.state()
        assert after.rows[: len(before.rows)] == before.rows
        assert after.files == before.files
        assert {name: after.objects.get(name) for name in before.objects} == before.objects

    def assert_works_again(self) -> None:
        """The next runs give the right answers, and nothing of the broken one is left."""
        good = self.check()
        assert good.exit == 0, good.stderr + good.stdout
        self.change("bad")
        bad = self.check()
        assert bad.exit == 1, bad.stderr + bad.stdout
        assert bad.report.outcome == "failed"
        self.change()
        assert self.workshop.leftovers == []
        assert [group for group in self.groups_left if group.exists()] == []
        assert self.mounts() == []

    def processes(self) -> list[str]:
        """Whatever still runs and belongs to this bench: our programs are told paths below its folder."""
        mark = os.fsencode(self.workshop.folder)
        return [os.fsdecode(line) for line in _command_lines().values() if mark in line]

    def wait_until_nothing_runs(self) -> None:
        """After a kill: whatever was started ends by itself."""
        self.groups_left = groups_of_the_dead()
        wait_until(lambda: not self.processes(), lambda: f"still running: {self.processes()}")

    def mounts(self) -> list[str]:
        mark = str(self.workshop.folder)
        return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if mark in line]

    def end_what_is_left(self) -> None:
        """A test that fails leaves no process behind either."""
        mark = os.fsencode(self.workshop.folder)
        for pid, line in _command_lines().items():
            if mark in line:
                os.kill(pid, signal.SIGKILL)


def _command_lines() -> dict[int, bytes]:
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                found[int(place.name)] = (place / "cmdline").read_bytes()
            except OSError:
                continue  # gone meanwhile
    return found


def _files(root: Path) -> Files:
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        if stat.S_ISREG(info.st_mode):
            found[path.relative_to(root).as_posix()] = (info.st_mode, path.read_bytes())
    return found
