"""`proofstone` in a process of its own that need not import it first: most of what a short command takes is the import.

A process that has imported it is forked for each: what runs is the same program, with its own arguments, variables,
folder, output and end. Only what Python reads when it starts cannot be given to it this way.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from tests import nursery

_READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ")
_PROGRAM = """#!{python} -IS
import json, os, socket, sys
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.connect({door!r})
ours, theirs = socket.socketpair()
request = dict(program={program!r}, args=sys.argv[1:], cwd=os.getcwd(), env=dict(os.environ))
socket.send_fds(door, [json.dumps(request).encode()], [0, 1, 2, theirs.fileno()])
theirs.close()
sys.exit(int(ours.recv(64)) & 0xFF)
"""


def needs_a_start(variables: Mapping[str, str]) -> bool:
    """Whether Python, or the C library below it, would have read one of these variables when it started."""
    return any(name.startswith(_READ_AT_START) for name in variables)


def run(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], told: str = "", called: Path = Path(nursery.__file__)
) -> subprocess.CompletedProcess[str]:
    """`proofstone` with these arguments, and this on its standard input, seen through to its end; by what it was
    called."""
    request = json.dumps({"program": str(called), "args": args, "cwd": str(cwd), "env": dict(env)}).encode()
    assert len(request) <= nursery.MOST
    ours, theirs = socket.socketpair()
    with ours, _file(told) as read, _file() as output, _file() as errors:
        with theirs:
            socket.send_fds(_way(), [request], [file.fileno() for file in (read, output, errors, theirs)])
        answer = ours.recv(64)
        assert answer, "whoever was to see `proofstone` through is gone"
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(["proofstone", *args], int(answer), output.read(), errors.read())


class Running:
    """A run of `proofstone` that leads a process group of its own and is not waited for."""

    def __init__(self, args: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        request = {"program": nursery.__file__, "args": args, "cwd": str(cwd), "env": dict(env), "leads": True}
        text = json.dumps(request).encode()
        assert len(text) <= nursery.MOST
        self._args = args
        self._output, self._errors = _file(), _file()
        self._answer, theirs = socket.socketpair()
        with theirs, _file() as read:
            files = [read.fileno(), self._output.fileno(), self._errors.fileno(), theirs.fileno()]
            socket.send_fds(_way(), [text], files)
        self._received = b""
        self.pid = int(self._read_line())

    def wait(self, seconds: float | None = None) -> bool:
        """Return whether the run has ended, after at most so many seconds."""
        return bool(select.select([self._answer], [], [], seconds)[0])

    def result(self) -> subprocess.CompletedProcess[str]:
        """Wait for the end of the run and return its exit code and output; may be called once."""
        code = int(self._read_line())
        with self._answer, self._output, self._errors:
            self._output.seek(0)
            self._errors.seek(0)
            return subprocess.CompletedProcess(
                ["proofstone", *self._args], code, self._output.read(), self._errors.read()
            )

    def _read_line(self) -> bytes:
        """Return what comes before the next line break, or before the end."""
        while b"\n" not in self._received:
            more = self._answer.recv(64)
            if not more:
                break
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        assert line, "whoever was to see `proofstone` through is gone"
        return line


def program() -> Path:
    """A program `proofstone` that has the same process forked: for whoever starts it by its path, as git's hooks do."""
    _way()
    return _place() / "proofstone"


def _file(content: str = "") -> IO[str]:
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115  whoever asks for it closes it
    file.write(content)
    file.seek(0)
    return file


@cache
def _place() -> Path:
    """Where the program lies, and the door that it knocks at: not deep, for the kernel takes no long path there."""
    folder = tempfile.TemporaryDirectory(prefix="proofstone-")
    atexit.register(folder.cleanup)
    place = Path(folder.name)
    file = place / "proofstone"
    file.write_text(_PROGRAM.format(python=sys.executable, door=str(place / "door"), program=str(file)))
    file.chmod(0o755)
    return place


@cache
def _way() -> socket.socket:
    """The way to the process that is forked, one for each worker."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(str(_place() / "door"))
        door.listen()
        process = subprocess.Popen(
            [sys.executable, "-W", "error", nursery.__file__, str(theirs.fileno()), str(door.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_"))},
            pass_fds=(theirs.fileno(), door.fileno()),
        )

    @atexit.register
    def leave() -> None:
        ours.close()
        process.wait()

    return ours
