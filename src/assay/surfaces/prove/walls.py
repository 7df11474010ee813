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
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from assay.adapters.ledger.artifacts import ArtifactStore
from assay.adapters.ledger.location import artifacts_path
from assay.contracts.report import CheckReport
from assay.contracts.verdict import Assurance
from assay.errors import MachineError
from assay.surfaces.prove.attempts import PROGRAMS
from assay.surfaces.prove.results import Wall
from assay.surfaces.prove.sample import Sample
from assay.surfaces.prove.surroundings import fresh_home
from assay.surfaces.prove.trial import Bench
from assay.surfaces.prove.tricks import Project

_MEMORY_MB, _PROCESSES = 256, 64
_SETTINGS: Final = f'[sandbox]\nlevel = "{{level}}"\nmemory_mb = {_MEMORY_MB}\nprocesses = {_PROCESSES}\n'
_GROUPS: Final = "run under a delegated group: systemd-run --user --scope -p Delegate=yes assay check"
_NAMESPACES: Final = "only the level bubblewrap holds it; `assay doctor` says how to get it"
_ELSEWHERE: Final = "let services keep their sockets in /run, in /tmp or below HOME"

# Name of the attempt, the wall in words, what would raise it.
_WALLS: Final[tuple[tuple[str, str, str], ...]] = (
    ("mount", "the machine's root cannot be made writable", _NAMESPACES),
    ("write-etc", "nothing is written to /etc", _NAMESPACES),
    ("write-usr", "nothing is written to /usr", _NAMESPACES),
    ("write-home", "nothing is written to HOME", _NAMESPACES),
    ("write-repository", "nothing is written to the work tree", _NAMESPACES),
    ("write-git", "nothing is written to the repository's .git", _NAMESPACES),
    ("network", "the network, and services of the machine on it, cannot be reached", _NAMESPACES),
    ("abstract-socket", "abstract sockets of the machine cannot be reached", _NAMESPACES),
    ("socket-run", "sockets in /run cannot be reached", _NAMESPACES),
    ("socket-tmp", "sockets in temporary folders cannot be reached", _NAMESPACES),
    ("socket-home", "sockets below HOME cannot be reached", _NAMESPACES),
    ("socket-elsewhere", "sockets anywhere else on the disk cannot be reached", _ELSEWHERE),
    ("processes", "other processes cannot be seen", _NAMESPACES),
    ("state", "Assay's own state cannot be read", _NAMESPACES),
    ("outlive", "nothing outlives the check that started it", _NAMESPACES),
    ("crowd", "the limit on processes holds", _GROUPS),
    ("hoard", "the limit on memory holds", _GROUPS),
)


@dataclass
class _Ground:
    """Where the attempts take place, and what they need to know."""

    bench: Bench
    level: Assurance
    mark: str = field(default_factory=lambda: f"assay-prove-{secrets.token_hex(6)}")
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
                    sockets[name] = stack.enter_context(_service(Path(parent)))
                else:
                    self.untried[name] = f"{parent} is not writable here"
            stack.enter_context(_bystander(f"{self.mark}-bystander"))
            yield {"port": tcp.getsockname()[1], "abstract": self.mark, "sockets": sockets}


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
            "bystander": f"{ground.mark}-bystander",
            "outliving": f"{ground.mark}-outliving",
            "state": str(bench.state),
            "crowd": 3 * _PROCESSES,
            "hoard_mb": 2 * _MEMORY_MB,
        }
        through = _attempted(ground, known)
    through |= {name: path.exists() for name, path in ground.writes.items()}
    through["outlive"] = _ended(f"{ground.mark}-outliving")
    for path in ground.writes.values():
        path.unlink(missing_ok=True)
    return [_wall(name, words, fix, ground, through) for name, words, fix in _WALLS]


def _wall(name: str, words: str, fix: str, ground: _Ground, through: Mapping[str, bool]) -> Wall:
    if name in ground.untried:
        return Wall(name=words, held=None, detail=f"not tried: {ground.untried[name]}")
    return Wall(name=words, held=True) if not through.get(name) else Wall(name=words, held=False, fix=fix)


def _attempted(ground: _Ground, known: Mapping[str, object]) -> dict[str, bool]:
    """The attempts as `--verify` commands of one check; each is asked what it could do."""
    bench = ground.bench
    files = {**PROGRAMS, "assay.toml": _SETTINGS.format(level=ground.level), "known.json": json.dumps(known)}
    sample = Sample(ground.root, bench.folder / "walls-pristine")
    sample.make(Project(about="attempts", test="true", files=files), bench.errands, bench.variables(ground.root, {}))
    (ground.root / "change.txt").write_text("something to check\n", "utf-8")
    options = [f"--verify=python3 {name}" for name in PROGRAMS]
    done, document = bench.check(ground.root, sample.base, options, {})
    if done.code not in (0, 1):
        raise MachineError(f"the walls could not be tried: `assay check` ended with {done.code}: {done.last_words}")
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


@contextmanager
def _service(parent: Path) -> Iterator[str]:
    """A listening socket in a folder of its own; whoever connects has reached it, also if nobody answers."""
    with tempfile.TemporaryDirectory(prefix="assay-", dir=parent) as folder, socket.socket(socket.AF_UNIX) as server:
        handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            server.bind(f"/proc/self/fd/{handle}/socket")  # the whole path may be too long for an address
        finally:
            os.close(handle)
        server.listen()
        yield folder


@contextmanager
def _bystander(mark: str) -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark]) as process:
        try:
            yield
        finally:
            process.kill()


def _ended(mark: str) -> bool:
    """Whether a process of that mark lives; it is ended then."""
    alive = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                alive.append(int(folder.name))
        except OSError:
            continue  # it has ended meanwhile
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return bool(alive)
