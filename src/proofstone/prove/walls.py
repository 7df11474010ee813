"""Try the walls of this machine: run hostile commands as checks, at the sandbox level that checks get here.

Where possible, the result is observed from outside (a file that was written, a process that survived). Otherwise the
attempts report it themselves: they have every reason to say that they got through.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofstone.check.models import CheckReport
from proofstone.common.models import Assurance
from proofstone.errors import MachineError
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path
from proofstone.prove.attempts import PROGRAMS
from proofstone.prove.catalogue import SampleProject
from proofstone.prove.processes import create_home
from proofstone.prove.results import Wall
from proofstone.prove.trial import SampleRepository, TrialBench
from proofstone.sandbox.rules import THREATS, Threat, advise_on_threat

_ADD_KEY: Final = {"x86_64": 248, "aarch64": 217}
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
_SESSION_KEYRING, _UNLINK = -3, 9
_CREATE_EXCLUSIVELY, _REMOVE = 0o3000, 0

_libc = ctypes.CDLL(None, use_errno=True)

_SERVICE: Final = """
import os, socket, sys
os.chdir(sys.argv[1])
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
os.chmod("socket", 0o666)
server.listen()
print("listening", flush=True)
sys.stdin.read()
"""


@contextmanager
def run_socket_service(parent: Path) -> Iterator[str]:
    """Run a process in a new folder that listens on a socket open to every user, and yield the folder. A connection
    counts as reached, even without an answer.
    """
    with tempfile.TemporaryDirectory(prefix="proofstone-", dir=parent) as folder:
        Path(folder).chmod(0o755)
        argv = [sys.executable, "-I", "-c", _SERVICE, folder]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                if process.stdout is None or not process.stdout.readline():
                    raise MachineError(f"cannot create a socket in {parent}")
                yield folder
            finally:
                process.kill()


@contextmanager
def run_bystander(mark: str) -> Iterator[int]:
    """Run a process with this mark in its command line, and yield its process id."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def add_session_key(name: str) -> Iterator[str]:
    """Add a key of this name to our session keyring, which children inherit. Yield an empty string where that is
    impossible.
    """
    machine = os.uname().machine
    key = -1
    if machine in _ADD_KEY:
        key = _libc.syscall(_ADD_KEY[machine], b"user", name.encode(), b"secret", 6, _SESSION_KEYRING)
    try:
        yield name if key > 0 else ""
    finally:
        if key > 0:
            _libc.syscall(_KEYCTL[machine], _UNLINK, key, _SESSION_KEYRING)


@contextmanager
def create_shared_memory(name: str) -> Iterator[int]:
    """Create a shared memory segment open to every user, and yield its key. Yield 0 where that is impossible."""
    key = zlib.crc32(name.encode()) & 0x7FFFFFFF
    segment = _libc.shmget(key, ctypes.c_size_t(4096), _CREATE_EXCLUSIVELY | 0o666)
    try:
        yield key if segment >= 0 else 0
    finally:
        if segment >= 0:
            _libc.shmctl(segment, _REMOVE, None)


def find_processes(mark: str) -> list[int]:
    """Return the processes of the machine that have this mark in their command line."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                pids.append(int(folder.name))
        except OSError:
            continue  # it has ended meanwhile
    return pids


class UserObserver:
    """Observe from outside as which users the processes with a mark run, while the block lasts."""

    def __init__(self, mark: str) -> None:
        self.users: set[int] = set()
        self._mark = mark
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._collect_users, daemon=True)

    def __enter__(self) -> UserObserver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _collect_users(self) -> None:
        while not self._stop.wait(0.1):
            for pid in find_processes(self._mark):
                try:
                    status = Path("/proc", str(pid), "status").read_text("utf-8", "replace")
                except OSError:
                    continue  # it has ended meanwhile
                line = next(line for line in status.splitlines() if line.startswith("Uid:"))
                self.users |= {int(user) for user in line.split()[1:]}


_MEMORY_MB, _PROCESSES, _DISK_MB = 256, 64, 64
_SETTINGS: Final = (
    f'[sandbox]\nlevel = "{{level}}"\nmemory_mb = {_MEMORY_MB}\nprocesses = {_PROCESSES}\ndisk_mb = {_DISK_MB}\n'
)
_ROOT_ONLY: Final = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
"""Files that only root can read on most machines."""


@dataclass
class _AttemptSetup:
    """Where the attempts run, and what they need to know."""

    bench: TrialBench
    level: Assurance
    mark: str = field(default_factory=lambda: f"proofstone-prove-{secrets.token_hex(6)}")
    untried: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.bench.folder / "walls"

    @property
    def writes(self) -> dict[str, Path]:
        return {
            "write-etc": Path("/etc", self.mark),
            "write-usr": Path("/usr", self.mark),
            "write-home": self.bench.home / self.mark,
            "write-repository": self.root / self.mark,
            "write-git": self.root / ".git" / self.mark,
        }

    @contextmanager
    def start_services(self) -> Iterator[dict[str, object]]:
        """Run services and a process of the machine while the attempts last, and yield how to find them."""
        with ExitStack() as stack:
            tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
            abstract.bind(f"\0{self.mark}")
            abstract.listen()
            folders = {"socket-run": "/run", "socket-tmp": tempfile.gettempdir(), "socket-home": str(self.bench.home)}
            folders["socket-elsewhere"] = str(self.bench.folder)
            sockets = {}
            for name, parent in folders.items():
                if os.access(parent, os.W_OK | os.X_OK):
                    sockets[name] = stack.enter_context(run_socket_service(Path(parent)))
                else:
                    self.untried[name] = f"{parent} is not writable on this machine"
            pid = stack.enter_context(run_bystander(f"{self.mark}-bystander"))
            key = stack.enter_context(add_session_key(self.mark))
            segment = stack.enter_context(create_shared_memory(self.mark))
            self.untried |= {} if key else {"session-key": "this kernel has no keyrings"}
            self.untried |= {} if segment else {"shared-memory": "this kernel has no shared memory segments"}
            yield {
                "port": tcp.getsockname()[1],
                "abstract": self.mark,
                "sockets": sockets,
                "bystander_pid": pid,
                "key": key,
                "shared_memory": segment,
            }

    def private_files(self) -> dict[str, list[str]]:
        """Return the files that a check must not be able to read, by attempt. Those in HOME are created here."""
        credential = self.bench.home / ".ssh" / "id_ed25519"
        credential.parent.mkdir(mode=0o700)
        notes = self.bench.home / "notes.txt"
        for file in (credential, notes):
            file.write_text("private", "utf-8")
        root_only = [name for name in _ROOT_ONLY if Path(name).exists() and not Path(name).stat().st_mode & 0o004]
        if not root_only:
            self.untried["read-root"] = "this machine has none of the usual files that only root can read"
        if os.geteuid() != 0:
            self.untried["read-root-home"] = (
                "Proofstone does not run as root; your own HOME can be read, but no credentials"
            )
        return {
            "read-root": root_only,
            "read-root-home": [] if "read-root-home" in self.untried else [str(notes)],
            "credentials": [str(credential)],
        }


def try_walls(bench: TrialBench, level: Assurance) -> list[Wall]:
    """Try each wall and return whether it held."""
    setup = _AttemptSetup(bench, level)
    create_home(bench.home)
    mount_point = bench.folder / "mount-point"
    mount_point.mkdir()
    with setup.start_services() as services:
        known = services | {
            "own_mounts": level is Assurance.BUBBLEWRAP,
            "mount_point": str(mount_point),
            "writes": {name: str(path) for name, path in setup.writes.items()},
            **setup.private_files(),
            "time_namespace": _inode("/proc/self/ns/time"),
            "watched": f"{setup.mark}-watched",
            "bystander": f"{setup.mark}-bystander",
            "outliving": f"{setup.mark}-outliving",
            "state": str(bench.state),
            "crowd": 3 * _PROCESSES,
            "hoard_mb": 2 * _MEMORY_MB,
            "fill_mb": 3 * _DISK_MB,
        }
        with UserObserver(f"{setup.mark}-watched") as watch:
            through = _run_attempts(setup, known)
    through["host-root"] = 0 in watch.users
    if not watch.users:
        setup.untried["host-root"] = "no process of the check was observed from outside"
    through |= {name: path.exists() for name, path in setup.writes.items()}
    through["outlive"] = _kill_survivors(f"{setup.mark}-outliving")
    for path in setup.writes.values():
        path.unlink(missing_ok=True)
    return [_judge(threat, setup, through) for threat in THREATS]


def _judge(threat: Threat, setup: _AttemptSetup, through: Mapping[str, bool]) -> Wall:
    as_root = os.geteuid() == 0
    wall = Wall(
        name=threat.protection,
        attempt=threat.name,
        subject=threat.subject.value,
        held=not through.get(threat.name),
        is_promised=threat.is_prevented_at(setup.level, as_root=as_root),
    )
    if threat.name in setup.untried:
        return wall.model_copy(update={"held": None, "detail": f"not tried: {setup.untried[threat.name]}"})
    if wall.held:
        return wall
    return wall.model_copy(update={"fix": advise_on_threat(threat, setup.level, as_root=as_root)})


def _run_attempts(setup: _AttemptSetup, known: Mapping[str, object]) -> dict[str, bool]:
    """Run the attempts as `--verify` commands of one check, and read what each of them reports."""
    bench = setup.bench
    files = {**PROGRAMS, "proofstone.toml": _SETTINGS.format(level=setup.level), "known.json": json.dumps(known)}
    sample = SampleRepository(setup.root, bench.folder / "walls-pristine")
    sample.make(
        SampleProject(about="attempts", test="true", files=files),
        bench.process_runner,
        bench.build_environment(setup.root, {}),
    )
    (setup.root / "change.txt").write_text("something to check\n", "utf-8")
    options = [f"--verify=python3 {name}" for name in PROGRAMS]
    consent = bench.folder / "own.toml"  # the attempts are our own code, so a weak sandbox is acceptable
    consent.write_text("[trust]\nweaker_sandbox = true\n", "utf-8")
    done, document = bench.run_check(setup.root, sample.base, options, {"PROOFSTONE_CONFIG": str(consent)})
    if done.code not in (0, 1):
        raise MachineError(f"the walls could not be tried: `proofstone check` ended with {done.code}: {done.last_line}")
    store = ArtifactStore(artifacts_path(bench.state))
    through: dict[str, bool] = {}
    for line in CheckReport.model_validate_json(document).checks:
        if line.artifact is None or not line.name.startswith("verify"):
            continue
        for output_line in store.read(line.artifact).decode("utf-8", "replace").splitlines():
            if output_line.startswith('{"name"'):
                answer = json.loads(output_line)
                through[answer["name"]] = answer["through"]
    if "state" not in through:
        raise MachineError(f"the walls could not be tried: the attempts did not run: {done.last_line}")
    return through


def _inode(path: str) -> int:
    return Path(path).stat().st_ino if Path(path).exists() else 0


def _kill_survivors(mark: str) -> bool:
    """Return whether a process with this mark is still alive, and kill it."""
    alive = find_processes(mark)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return bool(alive)
