"""The walls of this machine, each really tried: hostile commands run as checks, at the level that checks get here.

What they could do is seen from outside where it can be (a file that was written, a process that lives on), and
otherwise by their own word: they have every reason to say that they got through.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofstone.adapters.ledger.artifacts import ArtifactStore
from proofstone.adapters.ledger.location import artifacts_path
from proofstone.contracts.report import CheckReport
from proofstone.contracts.verdict import Assurance
from proofstone.core.threats import THREATS, Threat, advise
from proofstone.errors import MachineError
from proofstone.surfaces.prove.attempts import PROGRAMS
from proofstone.surfaces.prove.bait import UserWatch, bystander, find_processes, service, session_key, shared_memory
from proofstone.surfaces.prove.results import Wall
from proofstone.surfaces.prove.sample import Sample
from proofstone.surfaces.prove.surroundings import fresh_home
from proofstone.surfaces.prove.trial import Bench
from proofstone.surfaces.prove.tricks import Project

_MEMORY_MB, _PROCESSES, _DISK_MB = 256, 64, 64
_SETTINGS: Final = (
    f'[sandbox]\nlevel = "{{level}}"\nmemory_mb = {_MEMORY_MB}\nprocesses = {_PROCESSES}\ndisk_mb = {_DISK_MB}\n'
)
_ROOT_ONLY: Final = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
"""Files that only root can read, on most machines."""


@dataclass
class _Ground:
    """Where the attempts take place, and what they need to know."""

    bench: Bench
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
    def listening(self) -> Iterator[dict[str, object]]:
        """Services and a process of the machine, for as long as the attempts last, and how to find them."""
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
                    sockets[name] = stack.enter_context(service(Path(parent)))
                else:
                    self.untried[name] = f"{parent} is not writable here"
            pid = stack.enter_context(bystander(f"{self.mark}-bystander"))
            key = stack.enter_context(session_key(self.mark))
            segment = stack.enter_context(shared_memory(self.mark))
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
        """Files that a check must not be able to read, by attempt. Those in HOME are made here."""
        credential = self.bench.home / ".ssh" / "id_ed25519"
        credential.parent.mkdir(mode=0o700)
        notes = self.bench.home / "notes.txt"
        for file in (credential, notes):
            file.write_text("private", "utf-8")
        root_only = [name for name in _ROOT_ONLY if Path(name).exists() and not Path(name).stat().st_mode & 0o004]
        if not root_only:
            self.untried["read-root"] = "this machine has none of the usual files that only root may read"
        if os.geteuid() != 0:
            self.untried["read-root-home"] = (
                "Proofstone does not run as root; your own HOME can be read, but no credentials"
            )
        return {
            "read-root": root_only,
            "read-root-home": [] if "read-root-home" in self.untried else [str(notes)],
            "credentials": [str(credential)],
        }


def try_walls(bench: Bench, level: Assurance) -> list[Wall]:
    """Each wall: whether it held."""
    ground = _Ground(bench, level)
    fresh_home(bench.home)
    mount_point = bench.folder / "mount-point"
    mount_point.mkdir()
    with ground.listening() as services:
        known = services | {
            "own_mounts": level is Assurance.BUBBLEWRAP,
            "mount_point": str(mount_point),
            "writes": {name: str(path) for name, path in ground.writes.items()},
            **ground.private_files(),
            "time_namespace": _inode("/proc/self/ns/time"),
            "watched": f"{ground.mark}-watched",
            "bystander": f"{ground.mark}-bystander",
            "outliving": f"{ground.mark}-outliving",
            "state": str(bench.state),
            "crowd": 3 * _PROCESSES,
            "hoard_mb": 2 * _MEMORY_MB,
            "fill_mb": 3 * _DISK_MB,
        }
        with UserWatch(f"{ground.mark}-watched") as watch:
            through = _attempted(ground, known)
    through["host-root"] = 0 in watch.users
    if not watch.users:
        ground.untried["host-root"] = "no process of the check was seen from outside"
    through |= {name: path.exists() for name, path in ground.writes.items()}
    through["outlive"] = _ended(f"{ground.mark}-outliving")
    for path in ground.writes.values():
        path.unlink(missing_ok=True)
    return [_judge(threat, ground, through) for threat in THREATS]


def _judge(threat: Threat, ground: _Ground, through: Mapping[str, bool]) -> Wall:
    about = {"name": threat.wall, "attempt": threat.name, "subject": threat.subject.value}
    if threat.name in ground.untried:
        return Wall(**about, held=None, detail=f"not tried: {ground.untried[threat.name]}")
    if not through.get(threat.name):
        return Wall(**about, held=True)
    return Wall(**about, held=False, fix=advise(threat, ground.level, as_root=os.geteuid() == 0))


def _attempted(ground: _Ground, known: Mapping[str, object]) -> dict[str, bool]:
    """The attempts as `--verify` commands of one check; each is asked what it could do."""
    bench = ground.bench
    files = {**PROGRAMS, "proofstone.toml": _SETTINGS.format(level=ground.level), "known.json": json.dumps(known)}
    sample = Sample(ground.root, bench.folder / "walls-pristine")
    sample.make(Project(about="attempts", test="true", files=files), bench.errands, bench.variables(ground.root, {}))
    (ground.root / "change.txt").write_text("something to check\n", "utf-8")
    options = [f"--verify=python3 {name}" for name in PROGRAMS]
    consent = bench.folder / "own.toml"  # what is tried here is ours, at whatever level
    consent.write_text("[trust]\nweaker_sandbox = true\n", "utf-8")
    done, document = bench.check(ground.root, sample.base, options, {"PROOFSTONE_CONFIG": str(consent)})
    if done.code not in (0, 1):
        raise MachineError(
            f"the walls could not be tried: `proofstone check` ended with {done.code}: {done.last_words}"
        )
    store = ArtifactStore(artifacts_path(bench.state))
    through: dict[str, bool] = {}
    for line in CheckReport.model_validate_json(document).checks:
        if line.artifact is None or not line.name.startswith("verify"):
            continue
        for said in store.read(line.artifact).decode("utf-8", "replace").splitlines():
            if said.startswith('{"name"'):
                answer = json.loads(said)
                through[answer["name"]] = answer["through"]
    if "state" not in through:
        raise MachineError(f"the walls could not be tried: the attempts did not run: {done.last_words}")
    return through


def _inode(path: str) -> int:
    return Path(path).stat().st_ino if Path(path).exists() else 0


def _ended(mark: str) -> bool:
    """Whether a process of that mark lives; it is ended then."""
    alive = find_processes(mark)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return bool(alive)
