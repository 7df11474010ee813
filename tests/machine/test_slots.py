"""Slots shared by several processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from proofstone.errors import MachineError
from proofstone.machine.locks import CheckSlots

HOLDER = """
import sys, threading, time
from pathlib import Path
from proofstone.machine.locks import CheckSlots
with CheckSlots(int(sys.argv[2]), Path(sys.argv[1])).acquire(threading.Event()):
    print("in", flush=True)
    sys.stdin.read()
print("out", flush=True)
"""


def holder(folder: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_third_process_waits_until_one_of_two_slots_is_free(tmp_path: Path) -> None:
    first, second = holder(tmp_path, 2), holder(tmp_path, 2)
    assert first.stdout and second.stdout and first.stdout.readline() == second.stdout.readline() == "in\n"
    entered = threading.Event()

    def wait() -> None:
        with CheckSlots(2, tmp_path).acquire(threading.Event()):
            entered.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not entered.wait(0.5)
    first.kill()  # a slot is free again however its holder ends
    first.wait()
    assert entered.wait(30)
    thread.join()
    second.communicate()
    assert first.stdin and first.stdout
    first.stdin.close()
    first.stdout.close()


def test_files_that_cannot_be_written_to_serve_and_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "slots"
    folder.mkdir(parents=True)
    for name in ("turnstile", "slot-0"):
        (folder / name).touch(mode=0o444)
    # In the folder itself, so that those above it need not be open to anybody else.
    program = (
        "import os, threading; from pathlib import Path; from proofstone.machine.locks import CheckSlots\n"
        "if os.getuid() == 0: os.setresuid(65534, 65534, 65534)\n"
        "with CheckSlots(1, Path('.')).acquire(threading.Event()): print('in')"
    )
    folder.chmod(0o755)
    (folder / "turnstile").unlink()
    (folder / "turnstile").symlink_to("slot-0")
    with (
        pytest.raises(MachineError, match="turnstile: cannot be opened") as refused,
        CheckSlots(1, folder).acquire(threading.Event()),
    ):
        pass
    assert "PROOFSTONE_HOME" in (refused.value.hint or "")
    (folder / "turnstile").unlink()
    (folder / "turnstile").touch(mode=0o444)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.stdout == "in\n", done.stderr


def test_whoever_is_cancelled_stops_waiting(tmp_path: Path) -> None:
    first = holder(tmp_path, 1)
    assert first.stdout and first.stdout.readline() == "in\n"
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    with CheckSlots(1, tmp_path).acquire(cancel):
        assert first.poll() is None  # the slot is still held: nobody gave it to us
    assert cancel.is_set()
    first.communicate()


def test_no_more_run_at_once_than_there_are_slots_and_everybody_gets_their_turns(tmp_path: Path) -> None:
    done: list[int] = []
    inside: list[int] = []
    most = 0
    lock = threading.Lock()

    def work(number: int) -> None:
        nonlocal most
        for _ in range(5):
            with CheckSlots(2, tmp_path).acquire(threading.Event()):
                with lock:
                    inside.append(number)
                    most = max(most, len(inside))
                time.sleep(0.01)
                with lock:
                    inside.remove(number)
                    done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted([0, 1, 2, 3] * 5)
    assert most == 2
