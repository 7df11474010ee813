"""Kill `check`, `gate` and `run` with SIGKILL at seeded moments, let them go on, and assert what must be true.

    python -m tests.crash.kills --count 1000 --seed 1 --state kills.jsonl

A case is one fresh repository, one command, honest or lying work, and one to six kills in a row: at a named fault
point, after a part of the usual time (the engine alone or its process group), at a system call, or of one program
that the engine started. After each kill the ledger must verify and hold every row that could be seen before; when the
command has then been started again and has ended, nothing is lost, doubled, wrongly passed or left over. `--state` is
a file to which each finished case is added, so that the same command goes on where it was broken off.
`--case N` does one case alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forked
from tests.check.hazards.processes import control_groups, family_of, mounts_below
from tests.crash.targets import TARGETS, Link, Target
from tests.waiting import wait_until
from tests.workshop import command

WAYS = {"fault": 50, "engine": 15, "group": 20, "call": 7, "child": 8}
"""How a kill is delivered, with weights."""
LYING = 0.3
"""The part of the cases in which the work lies."""
USED = 0.5
"""The part of the cases in which the ledger and the caches exist before."""
CALLS = ("fsync", "fdatasync", "rename", "openat", "mkdir", "unlink", "pwrite64", "write", "close", "clone3", "poll")
KILLED = -signal.SIGKILL
_LONGEST = 300.0
"""Seconds after which a command is taken for hanging."""


@dataclass(frozen=True)
class Kill:
    way: str
    point: str = ""
    """A fault point or a system call."""
    count: int = 1
    part: float = 0.0
    """Of the usual time."""

    def __str__(self) -> str:
        return f"{self.way} {self.point}:{self.count}" if self.point else f"{self.way} at {self.part:.3f}"


@dataclass(frozen=True)
class Undisturbed:
    """What one honest run of a command does when it is left alone."""

    seconds: float
    points: Mapping[str, int]
    """How often it comes by each fault point."""
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    number: int
    command: str
    lie: str
    used: bool
    kills: Sequence[Kill]

    @classmethod
    def drawn(cls, seed: str, number: int, points: Mapping[str, Mapping[str, int]]) -> Case:
        """Return the case with this number; equal seeds and fault points give equal cases."""
        dice = random.Random(f"{seed}:{number}")
        command = dice.choice(sorted(TARGETS))
        lie = dice.choice(TARGETS[command].lies) if dice.random() < LYING else ""
        used = dice.random() < USED
        kills = [_draw_kill(dice, points[command], first=number == 0) for number in range(dice.randint(1, 6))]
        return cls(number, command, lie, used, tuple(kills))

    def __str__(self) -> str:
        state = "used" if self.used else "fresh"
        return f"case {self.number}: {self.command}, {self.lie or 'honest'}, {state}; {', '.join(map(str, self.kills))}"


def _draw_kill(dice: random.Random, points: Mapping[str, int], *, first: bool) -> Kill:
    (way,) = dice.choices(list(WAYS), list(WAYS.values()))
    if way == "fault":
        point = dice.choice(sorted(points))
        most = points[point] if first else max(1, points[point] // 3)  # less is left to do
        return Kill(way, point, dice.randint(1, most))
    if way == "call":
        return Kill(way, dice.choice(CALLS), int(1.5 ** dice.uniform(0, 15)))
    return Kill(way, part=dice.random() * (1.0 if first else dice.random()))


@dataclass
class Harness:
    folder: Path
    seed: str
    known: dict[str, Undisturbed] = field(default_factory=dict)

    def measure(self) -> None:
        """See what each command does when it is left alone."""
        for name, kind in TARGETS.items():
            target = kind.make(self.folder / f"undisturbed-{name}")
            trace = self.folder / f"trace-{name}"
            started = time.monotonic()
            ended = self._finish(target, target.begin(), {"PROOFSTONE_FAULT_TRACE": str(trace)})
            seconds = time.monotonic() - started
            target.assert_ended(ended, None)
            points = Counter(line.split()[1] for line in trace.read_text().splitlines())
            self.known[name] = Undisturbed(seconds, points, target.summary(ended))
            target.end()

    def draw(self, number: int) -> Case:
        return Case.drawn(self.seed, number, {name: one.points for name, one in self.known.items()})

    def run(self, case: Case) -> int:
        """Carry out a case and return how many kills were delivered; what is wrong is an AssertionError."""
        usual = self.known[case.command]
        target = TARGETS[case.command].make(self.folder / f"case-{case.number}", case.lie, used=case.used)
        try:
            files = _files(target.root) if case.command == "check" else {}
            delivered, ended = self._kill_in_turn(target, case, usual)
            if ended is None:
                ended = self._finish(target, target.proceed())
            assert "Traceback" not in ended.stderr, ended.stderr
            target.assert_ended(ended, usual.summary)
            self._assert_clean(target)
            if case.command == "check":
                assert _files(target.root) == files, "the repository was changed"
        finally:
            _end_what_is_left(target)
        target.end()
        return delivered

    def _kill_in_turn(
        self, target: Target, case: Case, usual: Undisturbed
    ) -> tuple[int, subprocess.CompletedProcess[str] | None]:
        """Return how many kills were delivered, and how the command ended if it ended by itself."""
        delivered, args = 0, target.begin()
        for kill in case.kills:
            seen, ended, hit = self._deliver(target, kill, args, usual)
            wait_until(lambda: not _alive(target), lambda: f"still running: {_alive(target)}")
            target.assert_ledger_kept(seen)
            delivered += hit
            if ended.returncode == KILLED:
                args = target.proceed()
            elif not hit:
                return delivered, ended  # the kill would have come later
            else:  # a program of the engine was killed, and the engine has gone on
                target.is_disturbed = True
                if case.command != "check":
                    return delivered, ended
                assert ended.returncode in (0, 1, 2), f"{ended.returncode}: {ended.stderr}"
                assert not (target.lie and ended.returncode == 0), "a lie passed, because a program was killed"
                args = target.proceed()
        if case.command == "check":
            target.is_disturbed = False  # the same change is checked once more, undisturbed
        return delivered, None

    def _deliver(
        self, target: Target, kill: Kill, args: Sequence[str], usual: Undisturbed
    ) -> tuple[list[Link], subprocess.CompletedProcess[str], bool]:
        """Start the command and kill it. The rows that were seen before, how it ended, and whether the kill hit."""
        if kill.way == "call":
            ended = self._traced(target, kill, args)
            return target.links(), ended, ended.returncode == KILLED
        environment = dict(target.workshop.environment)
        if kill.way == "fault":
            environment["PROOFSTONE_FAULT"] = f"{kill.point}:{kill.count}"
        running = forked.Running(args, target.root, environment)
        target.pids.append(running.pid)
        if kill.way == "fault":
            assert running.wait(_LONGEST), "it hangs"
            ended = running.result()
            return target.links(), ended, ended.returncode == KILLED
        ended_by_itself = running.wait(kill.part * usual.seconds)
        seen, hit = target.links(), False
        if not ended_by_itself:
            hit = _strike(running.pid, kill)
        assert running.wait(_LONGEST), "it hangs"
        ended = running.result()
        return seen, ended, hit and (kill.way == "child" or ended.returncode == KILLED)

    def _traced(self, target: Target, kill: Kill, args: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Have the kernel deliver the kill to the engine's first thread at its n-th call of this kind."""
        inject = f"inject={kill.point}:signal=KILL:when={kill.count}"
        words = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={kill.point}", "-e", inject, *command(*args)]
        started = subprocess.Popen(
            words,
            cwd=target.root,
            env=target.workshop.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        target.pids += family_of(started.pid)
        output, errors = started.communicate(timeout=_LONGEST)
        return subprocess.CompletedProcess(words, started.returncode, output, errors)

    def _finish(
        self, target: Target, args: Sequence[str], more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        running = forked.Running(args, target.root, {**target.workshop.environment, **(more or {})})
        target.pids.append(running.pid)
        assert running.wait(_LONGEST), "it hangs"
        return running.result()

    def _assert_clean(self, target: Target) -> None:
        wait_until(lambda: not _alive(target), lambda: f"still running: {_alive(target)}")
        target.assert_ledger_kept(())
        target.assert_nothing_doubled()
        if target.workshop.leftovers:  # killed while it tidied up, with its end on record: the next run does it
            target.proofstone("check", "--quiet", "--verify", "grep -q sum shop/cart.py")
        left = target.leftovers()
        assert left == [], f"left over: {left}"
        assert mounts_below(target.workshop.folder) == []
        groups = [str(group) for pid in target.pids for group in control_groups(pid)]
        assert groups == [], "control groups are left"
        target.git("fsck", "--strict", "--no-dangling")


def _strike(pid: int, kill: Kill) -> bool:
    """Kill; whether there was somebody to kill."""
    with suppress(ProcessLookupError):
        if kill.way == "group":
            os.killpg(pid, signal.SIGKILL)
        elif kill.way == "engine":
            os.kill(pid, signal.SIGKILL)
        else:
            children = sorted(family_of(pid)[1:])
            if not children:
                return False
            os.kill(children[int(kill.part * 1000) % len(children)], signal.SIGKILL)
        return True
    return False


def _alive(target: Target) -> list[str]:
    """Return the command lines of processes that were told of the target's folder, zombies left out."""
    mark, found = os.fsencode(target.workshop.folder), []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()  # empty for zombies
        except OSError:
            continue
        if mark in line and int(place.name) != os.getpid():
            found.append(f"{place.name} {line.decode('utf-8', 'replace')}")
    return found


def _end_what_is_left(target: Target) -> None:
    for line in _alive(target):
        with suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)


def _files(root: Path) -> dict[str, bytes]:
    """Return the repository without Proofstone's own refs and without objects, which git may pack."""
    own = (".git/objects/", ".git/refs/proofstone/")
    found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(own)}


# The program.


def main() -> int:
    options = _options()
    done = _finished(options.state, options.seed)
    folder = Path(tempfile.mkdtemp(prefix="proofstone-kills-", dir=options.folder))
    harness = Harness(folder, options.seed)
    harness.measure()
    for name, one in harness.known.items():
        _say(f"{name}: {one.seconds:.1f} s undisturbed, {sum(one.points.values())} fault points")
    numbers = [options.case] if options.case is not None else range(10**9)
    failed, started = [], time.monotonic()
    for number in numbers:
        if options.case is None and _delivered(done) >= options.count:
            break
        if options.case is None and number in done:
            continue
        case = harness.draw(number)
        record: dict[str, Any] = {"seed": options.seed, "number": number, "case": str(case), "command": case.command}
        record["lie"] = case.lie
        try:
            record["kills"] = harness.run(case)
        except Exception:  # noqa: BLE001  whatever it is, the case is written down and the others are tried
            record |= {"kills": 0, "error": traceback.format_exc()}
            failed.append(number)
            _say(f"FAILED {case}\n{record['error']}")
        done[number] = record
        if options.state:
            with options.state.open("a") as file:
                file.write(json.dumps(record) + "\n")
        if number % 20 == 0 or options.case is not None:
            passed = time.monotonic() - started
            _say(f"{case}: {_delivered(done)} kills, {passed:.0f} s")
    _print_summary(done)
    if not any("error" in record for record in done.values()):
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.kills", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many kills are to be delivered")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--case", type=int, help="do this case alone")
    parser.add_argument("--state", type=Path, help="a file of finished cases, which is added to")
    parser.add_argument("--folder", type=Path, help="where repositories are made; a temporary folder by default")
    return parser.parse_args()


def _finished(state: Path | None, seed: str) -> dict[int, dict[str, Any]]:
    """Return the cases on file; those that failed are tried again."""
    if state is None or not state.exists():
        return {}
    records = [json.loads(line) for line in state.read_text().splitlines()]
    return {record["number"]: record for record in records if record["seed"] == seed and "error" not in record}


def _delivered(done: Mapping[int, Mapping[str, Any]]) -> int:
    return sum(record["kills"] for record in done.values())


def _print_summary(done: Mapping[int, Mapping[str, Any]]) -> None:
    for name in sorted(TARGETS):
        records = [record for record in done.values() if record["command"] == name]
        lying = sum(bool(record["lie"]) for record in records)
        wrong = [record["number"] for record in records if "error" in record]
        kills = sum(record["kills"] for record in records)
        _say(f"{name}: {len(records)} cases ({lying} lying), {kills} kills, failed: {wrong or 'none'}")
    _say(f"in all: {_delivered(done)} kills")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
