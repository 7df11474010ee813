"""Checks that hang, multiply, shout or stay: each ends in time, and nothing of it stays on the machine."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from proofstone.ledger.artifacts import ArtifactStore
from tests.check.hazards.processes import control_groups, mounts_below, running
from tests.needs import needs
from tests.waiting import PATIENCE
from tests.workshop import CheckRun, Workshop, command

pytestmark = needs("bwrap")
LEVELS = ("bubblewrap", "landlock", "plain")


def project(workshop: Workshop, *, level: str = "bubblewrap", seconds: int = 60, more: str = "") -> Path:
    settings = f'[sandbox]\nlevel = "{level}"\n{more}\n[limits]\ncheck_seconds = {seconds}\nslots = 2\n'
    workshop.trust_everything()
    root = workshop.repo({"proofstone.toml": settings, "a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n"})
    return root


# Started from a small process: the kernel counts what the process was before it became another program.
WEIGHED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as file:
    print(process.pid, usage.ru_maxrss, file=file)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def checked(workshop: Workshop, root: Path, verify: str) -> tuple[CheckRun, int, int]:
    """The check, the process that it was, and the most memory that it had (KiB)."""
    out, err, usage = workshop.folder / "out", workshop.folder / "err", workshop.folder / "usage"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        arguments = [sys.executable, "-c", WEIGHED, str(usage), *command("check", "--json", "--verify", verify)]
        done = subprocess.run(arguments, cwd=root, env=workshop.environment, stdout=stdout, stderr=stderr)
    pid, most = map(int, usage.read_text().split())
    store = ArtifactStore(workshop.proofstone_home / "artifacts")
    return CheckRun(done.returncode, out.read_text(), err.read_text(), store), pid, most


def nothing_left(workshop: Workshop, pid: int, *words: str) -> None:
    assert running(*words) == []
    assert workshop.leftovers == []
    assert control_groups(pid) == []
    assert mounts_below(workshop.proofstone_home) == []


def odd_number() -> str:
    """A time to sleep that no other process sleeps."""
    return f"{3000 + secrets.randbelow(900)}.{secrets.randbelow(10**9)}"


@pytest.mark.few(1)
@pytest.mark.parametrize("level", LEVELS)
def test_a_check_that_hangs_is_ended_and_unverifiable(workshop: Workshop, level: str) -> None:
    root, nap = project(workshop, level=level, seconds=2), odd_number()
    done, pid, _ = checked(workshop, root, f"test -f a.txt; trap '' TERM INT HUP; sleep {nap}; sleep {nap}")
    assert done.report.outcome == "unverifiable", done.stderr
    assert "not finished" in done.check("verify").reason
    nothing_left(workshop, pid, "sleep", nap)


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "stay",
    [
        "setsid sleep {} >/dev/null 2>&1 &",
        "(setsid sh -c 'sleep {} & sleep {} &' &) ",
        "nohup sleep {} >/dev/null 2>&1 &",
        'python3 -c \'import os, time; os.fork() or os.setsid() or os.fork() or os.execlp("sleep", "sleep", "{}")\' &',
        "sleep {} & disown 2>/dev/null;",
    ],
)
def test_a_process_that_wants_to_stay_does_not(workshop: Workshop, level: str, stay: str) -> None:
    root, nap = project(workshop, level=level), odd_number()
    done, pid, _ = checked(workshop, root, f"{stay.replace('{}', nap)}\ntest -f a.txt")
    assert done.check("verify").verdict == "pass", done.stderr
    nothing_left(workshop, pid, "sleep", nap)


BOMB = """
import os, sys, time
made = failed = 0
while made < 3000 and failed < 200:
    try:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        made += 1
    except OSError:
        failed += 1
print('made', made, flush=True)
sys.exit(1 if failed else 0)
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("level", LEVELS)
def test_processes_are_bounded(workshop: Workshop, level: str) -> None:
    root = project(workshop, level=level, seconds=30, more="processes = 64")
    workshop.write(root, {"bomb.py": BOMB})
    done, pid, _ = checked(workshop, root, "python3 bomb.py")
    assert done.report.outcome != "passed", done.stderr
    made = [int(line.split()[1]) for line in done.output("verify").splitlines() if line.startswith("made")]
    assert all(count < 64 for count in made)
    nothing_left(workshop, pid, "python3", "bomb.py")


def test_memory_is_bounded_and_the_limit_is_named(workshop: Workshop) -> None:
    root = project(workshop, more="memory_mb = 200")
    workshop.write(root, {"grow.py": "kept = []\nwhile len(kept) < 4000:\n    kept.append(bytearray(1 << 20))\n"})
    done, pid, _ = checked(workshop, root, "python3 grow.py")
    assert done.report.outcome != "passed", done.stderr
    nothing_left(workshop, pid, "python3", "grow.py")


FLOOD = """
import os
block = (b'x' * 99 + b'\\n') * 10000
assert sum(os.write(1, block) for _ in range(1000)) == 10**9
"""


def test_a_gigabyte_of_output_costs_proofstone_no_memory_and_little_disk(workshop: Workshop) -> None:
    root = project(workshop, seconds=120, more="\n[check]\n")
    workshop.write(root, {"flood.py": FLOOD})
    done, pid, most = checked(workshop, root, "python3 flood.py")
    assert done.exit == 0, done.stderr
    assert most < 400 << 10, f"{most >> 10} MiB"
    kept = sum(file.stat().st_size for file in (workshop.proofstone_home / "artifacts").rglob("*") if file.is_file())
    assert kept < 100 << 20
    nothing_left(workshop, pid, "python3", "flood.py")


@pytest.mark.ci
def test_one_endless_line_is_no_different(workshop: Workshop) -> None:
    root = project(workshop, seconds=3)
    done, pid, most = checked(workshop, root, "test -f a.txt; tr '\\0' x < /dev/zero")
    assert done.report.outcome == "unverifiable", done.stderr
    assert most < 400 << 10, f"{most >> 10} MiB"
    nothing_left(workshop, pid, "tr", "\\0")


def wait_until(seen: Callable[[], bool], tries: int = 2400) -> bool:
    pause = threading.Event()
    return any(seen() or pause.wait(0.05) for _ in range(tries))


@pytest.mark.few(1)
@pytest.mark.parametrize("level", LEVELS)
def test_an_interrupt_ends_the_check_and_leaves_nothing(workshop: Workshop, level: str) -> None:
    root, nap = project(workshop, level=level), odd_number()
    process = workshop.start(root, "check", "--json", "--verify", f"sleep {nap}; test -f a.txt")
    assert wait_until(lambda: bool(running("sleep", nap)))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode not in (0, 1), (out, err)
    assert "Traceback" not in err
    nothing_left(workshop, process.pid, "sleep", nap)


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("started", [1, 2])
def test_killed_outright_it_leaves_no_process_and_the_next_run_sweeps_its_folders(
    workshop: Workshop, level: str, started: int
) -> None:
    """`started`: how many of the two trees are under way, so that the other is caught while it starts."""
    root, nap = project(workshop, level=level), odd_number()
    own_slots = {"TMPDIR": str(workshop.home)}  # other runs on this machine may hold the shared ones
    process = workshop.start(root, "check", "--json", "--verify", f"sleep {nap}; test -f a.txt", env=own_slots)
    assert wait_until(lambda: len(running("sleep", nap)) >= started)
    process.kill()
    process.communicate()
    assert wait_until(lambda: not running("sleep", nap)), running("sleep", nap)
    assert len(workshop.leftovers) == 1
    done = workshop.check(root, "--verify", "test -f a.txt")
    assert done.exit == 0, done.stderr
    assert workshop.leftovers == [] and control_groups(process.pid) == []
