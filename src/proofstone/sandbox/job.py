"""What a sandbox is asked to run, what the run may see, and what came of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from proofstone.common.models import Assurance
from proofstone.common.secrets import NO_SECRETS, SecretMask


@dataclass(frozen=True)
class Bind:
    """A file or directory of the machine, seen at another path (or the same)."""

    source: Path
    at: Path
    writable: bool = False


@dataclass(frozen=True)
class OwnHome:
    """A HOME that is none of the person's, made for one program."""

    folder: Path
    """On the machine; it keeps what is written there."""
    shared: tuple[tuple[Path, str], ...] = ()
    """Folders and files of the person's that the program reads and writes as its own, never as copies (a login that is
    renewed in a copy is lost to the person): where each is, and its path from the new HOME."""
    kept: tuple[tuple[Path, str], ...] = ()
    """The same, but read-only: what lies inside a shared folder and decides what the program does the next time that
    the person starts it, outside."""
    renewed: tuple[str, ...] | None = None
    """Patterns of paths from the new HOME: the only things in shared folders that the program changes for good. None:
    all that is there."""


@dataclass(frozen=True)
class View:
    """What a check sees of the world. The frozen files stand where the repository stands."""

    root: Path
    """The repository's own path."""
    files: Path
    """The checkout of the frozen tree; never written to."""
    copy_at: Path | None = None
    """Where a level without mounts puts its copy of the files, in place of the copy before; None: a folder of the
    job's own."""
    over: tuple[Path, ...] = ()
    """What a build of this very tree wrote, seen above the files."""
    under: tuple[Path, ...] = ()
    """What a set-up wrote, seen where the tree has no file of that name."""
    git: Path | None = None
    """The minimal `.git`."""
    objects: tuple[Bind, ...] = ()
    """Object stores that the minimal `.git` borrows from."""
    home: Path | None = None
    """The person's HOME, below a layer that is thrown away."""
    dependencies: tuple[Path, ...] = ()
    """Directories inside or outside the repository that hold dependencies, each below such a layer."""
    bytecode: Mapping[Path, Path] = field(default_factory=dict)
    """For a dependency: a directory with its bytecode, laid over it."""
    includes: tuple[Bind, ...] = ()
    handed: tuple[Bind, ...] = ()
    """Files and folders of the engine's that this one run may read, or write where the bind says so. `Place.handed`
    says where it finds them."""
    masked: tuple[Path, ...] = ()
    """What no check may see: Proofstone's own state, credentials."""
    unmasked: tuple[Path, ...] = ()
    """Folders of a program that may be read although they lie below what is masked: it is installed there. None that a
    repository can choose."""
    hidden: tuple[str, ...] = ()
    """Files of the tree that are shown empty, by their paths from its root. Where a work tree is kept, that takes
    mounts."""
    visible: tuple[Path, ...] = ()
    """Directories that must stay visible although they lie below a private /tmp or /run."""
    sockets: tuple[Path, ...] = ()
    network: bool = False
    hosts: tuple[str, ...] | None = None
    """With these, a network of its own from which nothing but they can be reached: `api.example.com` (port 443),
    `example.com:8080`, `*.example.com`, `127.0.0.1:11434`. `network` is not used then."""
    own_home: OwnHome | None = None
    """HOME for this one job; `home` stays where it is, for what dependencies need there."""
    work_tree: Path | None = None
    """A folder that stands at `root` and keeps what is written there: an executor's. `files`, `over`, `under` and
    `git` are not used then."""


@dataclass(frozen=True)
class Limits:
    seconds: float = 900
    memory_mb: int = 8192
    processes: int = 4096
    disk_mb: int = 0
    """What the job may write to disk, in MiB; 0: no limit."""
    allowed: frozenset[str] = frozenset()
    """Groups of system calls that are not refused: see `seccomp.py`."""
    idle_seconds: float | None = None
    """How long it may be silent."""


@dataclass(frozen=True)
class Place:
    """Where things are, as the check sees them."""

    root: Path
    report: Path
    probes: Path
    temporary: Path
    module_path: tuple[Path, ...] = ()
    """Where modules of the project must be looked up, when the checkout is not at the repository's path."""
    handed: tuple[Path, ...] = ()
    """Where each of the view's `handed` is."""
    home: Path | None = None
    """HOME, where the view has one of the job's own."""


class Sink(Protocol):
    """Takes the combined output while it is produced."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True)
class Job:
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    view: View
    place: Place
    scratch: Path
    """A directory of this job's own."""
    limits: Limits = field(default_factory=Limits)
    keep: bool = False
    """What it writes into the repository is wanted afterwards: see `Sandbox.written`."""
    cancel: threading.Event = field(default_factory=threading.Event)
    on_output: Callable[[bytes], None] | None = None
    stdin: int | None = None
    """What it reads from; None: nothing."""
    enough: threading.Event | None = None
    """Set when it is no longer needed: it is ended then."""
    on_refused: Callable[[str], None] | None = None
    """Told of each connection that was refused: `example.com:443`."""
    mask: SecretMask = NO_SECRETS
    """Values that are taken out of its output before anybody gets it."""


@dataclass(frozen=True)
class Execution:
    """How it ended, as the engine saw it."""

    exit_code: int | None
    """None when it was ended by the engine."""
    duration_ms: int
    timed_out: bool = False
    """At its deadline, or because it was silent for too long: then `limit` says so."""
    cancelled: bool = False
    ended: bool = False
    """By the engine, because `enough` was set."""
    limit: str = ""
    """The limit that ended it, in words."""
    setup_error: str = ""
    """Why the sandbox itself could not start it."""


class Sandbox(Protocol):
    """One level of assurance."""

    @property
    def level(self) -> Assurance: ...

    def place(self, view: View, scratch: Path) -> Place:
        """Prepare `scratch` and say where the check will find things."""
        ...

    def run(self, job: Job, sink: Sink) -> Execution: ...

    def written(self, job: Job) -> Path:
        """After a job with `keep`: the directory that holds what it wrote into the repository."""
        ...
