"""What a sandbox runs, what the program may see, and how it ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from proofstone.common.models import Assurance
from proofstone.common.secrets import NO_SECRETS, SecretMask


@dataclass(frozen=True)
class BindMount:
    """A file or directory of the machine, visible at another path (or the same)."""

    source: Path
    at: Path
    writable: bool = False


@dataclass(frozen=True)
class PrivateHome:
    """A private HOME for one program."""

    folder: Path
    """The folder on the machine; it keeps what is written there."""
    shared: tuple[tuple[Path, str], ...] = ()
    """The user's folders and files that the program reads and writes directly, never as copies (a login that is renewed
    in a copy is lost to the user): the path of each, and its path relative to the new HOME.
    """
    read_only: tuple[tuple[Path, str], ...] = ()
    """The same for read-only paths: files inside a shared folder that decide what the program does the next time that
    the user starts it, outside.
    """
    renewable: tuple[str, ...] | None = None
    """Patterns of paths relative to the new HOME: the only files in shared folders that the program may change
    permanently. None means all of them.
    """


@dataclass(frozen=True)
class SandboxView:
    """What a check sees. The frozen files are at the repository's path."""

    root: Path
    """The repository's own path."""
    files: Path
    """The checkout of the frozen tree; it is never written to."""
    copy_at: Path | None = None
    """Where a level without mounts puts its copy of the files, replacing an earlier copy; None for a
    folder of the job.
    """
    overlays: tuple[Path, ...] = ()
    """What a build of this very tree wrote, visible above the files."""
    underlays: tuple[Path, ...] = ()
    """What a setup wrote, visible where the tree has no file of that name."""
    git: Path | None = None
    """The minimal `.git`."""
    objects: tuple[BindMount, ...] = ()
    """The object stores that the minimal `.git` borrows from."""
    home: Path | None = None
    """The user's HOME, below a layer that is discarded."""
    dependencies: tuple[Path, ...] = ()
    """Directories inside or outside the repository that hold dependencies, each below such a layer."""
    bytecode: Mapping[Path, Path] = field(default_factory=dict)
    """For a dependency: a directory with its bytecode, laid over it."""
    includes: tuple[BindMount, ...] = ()
    engine_binds: tuple[BindMount, ...] = ()
    """Files and folders of the engine that this run may read, or write if the bind is writable.
    `SandboxPaths.engine_paths` has their paths inside the sandbox.
    """
    masked: tuple[Path, ...] = ()
    """What no check may see: Proofstone's own state, credentials."""
    unmasked: tuple[Path, ...] = ()
    """Folders of a program that may be read although they are below a masked folder, because it is installed there. A
    repository cannot choose them.
    """
    hidden: tuple[str, ...] = ()
    """Files of the tree that appear empty, by their paths from its root. Where a work tree is kept,
    this needs mounts.
    """
    visible: tuple[Path, ...] = ()
    """Directories that must stay visible although they are below a private /tmp or /run."""
    sockets: tuple[Path, ...] = ()
    network: bool = False
    hosts: tuple[str, ...] | None = None
    """If set, the only hosts that can be reached: `api.example.com` (port 443), `example.com:8080`, `*.example.com`,
    `127.0.0.1:11434`. `network` is ignored then.
    """
    own_home: PrivateHome | None = None
    """The HOME of this job; `home` stays where it is, for dependencies that need it."""
    work_tree: Path | None = None
    """An executor's folder that is mounted at `root` and keeps what is written there. `files`, `over`, `under` and
    `git` are not used then.
    """


@dataclass(frozen=True)
class JobLimits:
    """The limits of a job."""

    seconds: float = 900
    memory_mb: int = 8192
    processes: int = 4096
    disk_mb: int = 0
    """How much the job may write to disk, in MiB; 0 means no limit."""
    allowed: frozenset[str] = frozenset()
    """Groups of system calls that are not refused: see `seccomp.py`."""
    idle_seconds: float | None = None
    """How long the job may be without output."""


@dataclass(frozen=True)
class SandboxPaths:
    """The paths of files and folders, as the check sees them."""

    root: Path
    report: Path
    probes: Path
    temporary: Path
    module_path: tuple[Path, ...] = ()
    """Where modules of the project must be looked up if the checkout is not at the repository's path."""
    engine_paths: tuple[Path, ...] = ()
    """The path of each of the view's `handed` binds."""
    home: Path | None = None
    """The private HOME, if the view has one."""


class OutputSink(Protocol):
    """Takes the combined output while it is produced."""

    def write(self, data: bytes, /) -> object: ...


SANDBOX_VARIABLE: Final = "PROOFSTONE_SANDBOX"
"""Set for every job: our own commands refuse inside a sandbox what only a person may do."""


@dataclass(frozen=True)
class SandboxJob:
    """A command to run in a sandbox."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    view: SandboxView
    paths: SandboxPaths
    scratch: Path
    """A directory for this job only."""
    limits: JobLimits = field(default_factory=JobLimits)
    keeps_writes: bool = False
    """Whether the caller needs what the job writes into the repository: see `Sandbox.find_written`."""
    cancel: threading.Event = field(default_factory=threading.Event)
    on_output: Callable[[bytes], None] | None = None
    stdin: int | None = None
    """The file descriptor of its standard input; None for no input."""
    stop: threading.Event | None = None
    """Set by the caller when the job is no longer needed; the job is then ended."""
    on_refused: Callable[[str], None] | None = None
    """Called for each connection that was refused, with `example.com:443`."""
    mask: SecretMask = NO_SECRETS
    """Secret values that are masked in the output before anybody gets it."""


@dataclass(frozen=True)
class SandboxResult:
    """How a job ended, as the engine saw it."""

    exit_code: int | None
    """None if the engine ended it."""
    duration_ms: int
    timed_out: bool = False
    """Whether it reached its deadline, or was silent for too long; in that case `limit` says so."""
    cancelled: bool = False
    was_stopped: bool = False
    """Whether the engine ended it because `enough` was set."""
    limit: str = ""
    """The limit that ended it, in words."""
    setup_error: str = ""
    """Why the sandbox itself could not start it."""


class Sandbox(Protocol):
    """One level of assurance."""

    @property
    def level(self) -> Assurance: ...

    def prepare(self, view: SandboxView, scratch: Path) -> SandboxPaths:
        """Prepare `scratch` and return the paths that the check will see."""
        ...

    def run(self, job: SandboxJob, sink: OutputSink) -> SandboxResult: ...

    def find_written(self, job: SandboxJob) -> Path:
        """After a job with `keep`, return the directory that holds what it wrote into the repository."""
        ...
