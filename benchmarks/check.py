"""What `proofstone check` costs on top of the command that it runs, and how soon it answers.

`python -m benchmarks.check [--quick]`
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import NO_AIM, Measurement, show, timed
from proofstone.git.repository import open_repository
from proofstone.git.snapshot import take_snapshot
from proofstone.git.store import open_store

PROOFSTONE = [sys.executable, "-c", "import sys; from proofstone.cli.main import main; sys.exit(main())"]
VERIFY = f"{sys.executable} -m pytest -q"

SUITE = """
import time

import pytest

from work import spin


@pytest.mark.parametrize("number", range({tests}))
def test_number(number):
    time.sleep({sleep})
    assert spin({spin}) >= 0
"""
WORK = "def spin(count):\n    return sum(n * n % 7 for n in range(count))\n"


@dataclass(frozen=True)
class Shape:
    """A suite that waits and computes, and how much faster a second check of the same tree is to be."""

    tests: int
    sleep: float
    spin: int
    faster: float


QUICK = Shape(tests=20, sleep=0.1, spin=20_000, faster=3)
WHOLE = Shape(tests=50, sleep=0.15, spin=400_000, faster=20)


@dataclass(frozen=True)
class Place:
    """A folder with a HOME and a state of its own."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.folder / "home"), "PROOFSTONE_HOME": str(self.folder / "state")}
        return {"PATH": os.environ["PATH"], **own}

    def repository(self, files: Mapping[str, str]) -> Path:
        root = self.folder / "project"
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (self.folder / "home").mkdir()
        identity = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")
        for words in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", "Work"]):
            self.run(root, "git", *words)
        return root

    def check(self, root: Path, command: str) -> None:
        self.run(root, *PROOFSTONE, "check", "--quiet", "--verify", command)

    def run(self, root: Path, *words: str) -> None:
        done = subprocess.run(words, cwd=root, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def suite(folder: Path, shape: Shape) -> list[Measurement]:
    """The whole check against the bare command, the base known; then the same tree again."""
    place = Place(folder)
    tested = SUITE.format(tests=shape.tests, sleep=shape.sleep, spin=shape.spin)
    root = place.repository({"work.py": WORK, "test_work.py": tested})
    place.check(root, VERIFY)  # the base is known from here on
    first, bare = [], []
    for round_ in range(2):
        (root / "work.py").write_text(f"{WORK}\n\nROUND = {round_}\n")
        bare.append(timed(lambda: place.run(root, *VERIFY.split())))
        first.append(timed(lambda: place.check(root, VERIFY)))
    again = min(timed(lambda: place.check(root, VERIFY)) for _ in range(3))
    whole, alone = min(first), min(bare)
    allowed = 1.25 * alone + 1
    return [
        Measurement(
            f"check of a suite of {alone:.1f} s, against 1.25 × bare + 1 s",
            whole / allowed,
            "×",
            "≤ 1",
            whole <= allowed,
        ),
        Measurement("check of a suite, against the bare command", whole / alone, "×", "≤ 1.35", whole / alone <= 1.35),
        Measurement(
            "the same tree again: times faster", whole / again, "×", f"≥ {shape.faster}", whole / again >= shape.faster
        ),
        Measurement("the same tree again", again, "s", "≤ 1", again <= 1),
    ]


def many_files(folder: Path, count: int) -> list[Measurement]:
    """The snapshot, from nothing and with the last one's index kept, and a whole check."""
    place = Place(folder)
    root = place.repository({f"d{n % 200}/f{n}.txt": f"{n}\n" * 20 for n in range(count)})
    (root / "d0" / "f0.txt").write_text("changed\n")
    repository = open_repository(root)
    base = repository.git.run_line("rev-parse", "HEAD^{tree}")
    store = open_store(repository, folder / "other-state")
    first = timed(lambda: take_snapshot(store, base))
    second = min(timed(lambda: take_snapshot(store, base)) for _ in range(3))
    cold = timed(lambda: place.check(root, "grep -q changed d0/f0.txt"))
    warm = min(timed(lambda: place.check(root, "grep -q changed d0/f0.txt")) for _ in range(2))
    many = f"{count:,} files"
    return [
        Measurement(f"{many}: first snapshot", first, "s", "≤ 2", first <= 2),
        Measurement(f"{many}: second snapshot", second, "s", "≤ 0.5", second <= 0.5),
        Measurement(f"{many}: first check, checkouts and all", cold, "s", "≤ 10", cold <= 10),
        Measurement(f"{many}: the same tree again", warm, "s", "≤ 2", warm <= 2),
    ]


SMALL = {
    ".gitignore": "__pycache__/\n",
    "calc.py": "def add(a, b):\n    return a + b\n",
    "test_calc.py": (
        "import unittest\n\nfrom calc import add\n\n\nclass Test(unittest.TestCase):\n"
        "    def test_ints(self):\n        self.assertEqual(add(1, 2), 3)\n\n"
        "    def test_texts(self):\n        self.assertEqual(add('a', 'b'), 'ab')\n"
    ),
}
"""A project with two tests."""


def smallest(folder: Path) -> list[Measurement]:
    """What the smallest check costs: the programs that it starts, and its processor time against the bare tests."""
    place = Place(folder)
    root = place.repository(SMALL)
    (root / "calc.py").write_text("def add(a, b):\n    return (a + b)\n")
    bare = min(processor_time(lambda: place.run(root, sys.executable, "-m", "unittest", "-q")) for _ in range(5))
    check = [*PROOFSTONE, "check", "--quiet"]
    cold_count = count_programs(place, root, check)
    warm_count = count_programs(place, root, check)
    warm = min(processor_time(lambda: place.run(root, *check)) for _ in range(5))
    cold = min(processor_time(lambda: place.run(root, *check, "--no-cache")) for _ in range(5))
    return [
        Measurement("two tests: programs started by a first check", cold_count, "", "≤ 100", cold_count <= 100),
        Measurement("two tests: programs started by a second check", warm_count, "", "≤ 50", warm_count <= 50),
        Measurement("two tests: processor time without the cache, against bare", cold / bare, "×", NO_AIM, True),
        Measurement("two tests: processor time of a second check, against bare", warm / bare, "×", NO_AIM, True),
    ]


def processor_time(action: Callable[[], object]) -> float:
    """Seconds of processor time that the programs use which it starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def count_programs(place: Place, root: Path, words: Sequence[str]) -> float:
    """The number of programs that are started, as strace sees them; infinite without strace, so that no aim is met."""
    log = place.folder / "programs.log"
    if shutil.which("strace") is None:
        return math.inf
    place.run(root, "strace", "-f", "-qq", "-e", "trace=execve", "-e", "status=successful", "-o", str(log), *words)
    return sum("execve(" in line for line in log.read_text().splitlines())


def help_page() -> list[Measurement]:
    """`proofstone --help` against a bare interpreter: what a person waits for before anything happens."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}

    def start(*words: str) -> None:
        subprocess.run(words, env=environment, capture_output=True, check=True)

    start(*PROOFSTONE, "--help")
    pairs = [
        (timed(lambda: start(*PROOFSTONE, "--help")), timed(lambda: start(sys.executable, "-c", ""))) for _ in range(9)
    ]
    page, bare = min(page for page, _ in pairs), min(bare for _, bare in pairs)
    return [
        Measurement("proofstone --help", page * 1000, "ms", "≤ 150", page <= 0.15),
        Measurement("proofstone --help, against a bare interpreter", page / bare, "×", "≤ 3", page / bare <= 3),
    ]


def run(quick: bool = False) -> list[Measurement]:
    with tempfile.TemporaryDirectory(prefix="proofstone-bench-") as place:
        folder = Path(place)
        for name in ("small", "suite", "files"):
            (folder / name).mkdir()
        return [
            *help_page(),
            *smallest(folder / "small"),
            *many_files(folder / "files", 2_000 if quick else 20_000),
            *suite(folder / "suite", QUICK if quick else WHOLE),
        ]


if __name__ == "__main__":
    show(run)
