"""The strongest level: bubblewrap, with the frozen tree at the repository's own path.

- the machine's root is read-only; /tmp, /run and /dev are private; Proofstone's state and credentials are masked;
- the frozen checkout, HOME and dependencies are lower layers: what a check writes there is thrown away with it;
- an executor's work tree is bound there instead, and keeps what is written; so is a HOME of its own, beside the
  person's;
- own user, pid, ipc, host-name, time, cgroup and (unless declared) network namespaces; no capabilities; a session and
  a keyring of its own; a seccomp filter (`seccomp.py`). Kernel settings below /proc and /sys are read-only, and what
  tells about the machine there is masked;
- root of the machine is a user without rights inside (`unprivileged.py`);
- sockets of the machine (docker, D-Bus, ssh-agent) live in /run and /tmp and are out of sight;
- where hosts are named, one socket leads out of the network namespace, to them alone (`gateway.py`, `relay.py`).
Where layers cannot be had, the checkout is copied and dependencies are read-only.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from proofstone.common.models import Assurance
from proofstone.sandbox.gateway import Gateway, Host, allowed
from proofstone.sandbox.job import Execution, Job, Place, Sink, View
from proofstone.sandbox.limits import Group, limited
from proofstone.sandbox.mounts import (
    HOME_INSIDE,
    home_mounts,
    mount_points,
    mount_table,
    mounts,
    open_sockets,
    tools_in,
)
from proofstone.sandbox.process import launch
from proofstone.sandbox.seccomp import NAMESPACES, build_filter
from proofstone.sandbox.unprivileged import HOME_ENTRIES, closed_folders, is_root, stage

LayerKind = Literal["disk", "memory", "none"]
"""Where throwaway layers keep what is written: beside the checkout, in memory, or there are none."""

PROBES = Path(__file__).parents[1] / "check" / "probes"
RELAY = Path(__file__).with_name("relay.py")
_INTERPRETER = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
"""Not that of a virtual environment: whoever works in the sandbox may be at work on that very one."""
_INSIDE = Path("/run/proofstone")
_GATEWAY = "gateway.sock"
_PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm")
_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
_MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/kpagecount",
    "/proc/kpageflags", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/sys/firmware",
    "/sys/fs/bpf", "/sys/fs/pstore", "/sys/kernel/config", "/sys/kernel/debug", "/sys/kernel/security",
    "/sys/kernel/tracing",
)  # fmt: skip
"""Of the kernel's own file systems: what tells about the machine, its other users or its keys."""


@dataclass(frozen=True)
class Layer:
    """A directory as a check sees it, with a layer on top that takes the writes."""

    lower: tuple[Path, ...]
    at: Path
    memory: bool


@dataclass(frozen=True)
class Bubblewrap:
    program: str
    layers: LayerKind

    @property
    def level(self) -> Assurance:
        return Assurance.BUBBLEWRAP

    def place(self, view: View, scratch: Path) -> Place:
        (scratch / "report").mkdir(parents=True)
        return Place(
            root=view.root,
            report=_INSIDE / "report",
            probes=_INSIDE / "probes",
            temporary=Path("/tmp"),
            handed=tuple(bind.at for bind in view.handed),
            home=HOME_INSIDE if view.own_home else None,
        )

    def run(self, job: Job, sink: Sink) -> Execution:
        layers = list(self._layers(job))
        mounted = [job.scratch / f"layer-{number}" for number in range(len(layers))]
        for folder in mounted:
            (folder / "at").mkdir(parents=True)
            (folder / "top").mkdir()
        hosts = None if job.view.hosts is None else allowed(job.view.hosts)
        with limited(job.limits.memory_mb, job.limits.processes) as group:
            spec = self._spec(job, layers, mounted, group)
            if is_root():
                spec = stage(spec, own_folders(job))
            with (
                mount_points(job.view) if job.view.work_tree else nullcontext(),
                nullcontext() if hosts is None else Gateway(job.scratch / _GATEWAY, hosts, job.on_refused),
            ):
                return launch(job, spec, group, sink)

    def _spec(self, job: Job, layers: list[Layer], mounted: list[Path], group: Group | None) -> dict[str, Any]:
        return {
            "groups": group.procs if group else (),
            "confine": False,
            "namespaces": True,
            "filter": build_filter(job.limits.allowed | ({NAMESPACES} if job.view.own_home else set())),
            "cwd": None,
            "layers": [
                {
                    "lower": [str(path) for path in layer.lower],
                    "memory": layer.memory,
                    "size_mb": job.limits.disk_mb,
                    "at": f"{folder}/at",
                    "scratch": f"{folder}/top",
                }
                for layer, folder in zip(layers, mounted, strict=True)
            ],
            "argv": self._command(
                job, [(layer.at, folder / "at") for layer, folder in zip(layers, mounted, strict=True)]
            ),
            "env": dict(job.env),
        }

    def written(self, job: Job) -> Path:
        if self._copied(job):
            return job.scratch / "copy"
        number = next(number for number, layer in enumerate(self._layers(job)) if layer.at == job.view.root)
        return job.scratch / f"layer-{number}" / "top" / "upper"

    def _copied(self, job: Job) -> bool:
        """Whether the files are copied: there are no layers, or none whose content would outlive the run."""
        return self.layers == "none" or (job.keep and self.layers == "memory")

    def _layers(self, job: Job) -> Iterator[Layer]:
        view = job.view
        if self.layers == "none":
            return
        in_memory = self.layers == "memory"
        if view.home and not view.home.is_relative_to(view.root):
            # In memory: HOME usually contains our own state, and a layer may not lie inside what it covers.
            for folder in _outermost_tools(view, view.home) if is_root() else _coverable(view.home):
                yield Layer((folder,), folder, memory=True)
        if not view.work_tree and not self._copied(job):
            yield Layer((*view.over, view.files, *view.under), view.root, memory=in_memory)
        for folder in view.dependencies:
            compiled = (view.bytecode[folder],) if folder in view.bytecode else ()
            yield Layer((*compiled, folder), folder, memory=in_memory)

    def _command(self, job: Job, layers: list[tuple[Path, Path]]) -> list[str]:
        view, nothing = job.view, job.scratch / "nothing"
        nothing.touch()  # not /dev/null: a device cannot be opened below a bind
        command = [self.program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_kernel_files(nothing)]
        size = ["--size", str(job.limits.disk_mb << 20)] if job.limits.disk_mb else []
        for private in _PRIVATE:
            if Path(private).is_dir() and not Path(private).is_symlink():
                command += [*size, "--tmpfs", private]
        command += ["--perms", "1777", *size, "--tmpfs", "/tmp"]
        command += _shown_again(view)
        command += self._files(job, dict(layers))
        if view.git and not view.work_tree:
            command += ["--ro-bind", str(view.git), str(view.root / ".git")]
        for bind in (*view.objects, *view.includes, *view.handed):
            command += ["--bind" if bind.writable else "--ro-bind", str(bind.source), str(bind.at)]
        for bind in view.objects:
            if (bind.source / "info" / "alternates").is_file():  # every store is bound; there it names paths of outside
                command += ["--ro-bind", str(nothing), str(bind.at / "info" / "alternates")]
        for path in view.sockets:
            command += ["--bind-try", str(path), str(path)]
        command += ["--ro-bind", str(PROBES), str(_INSIDE / "probes")]
        command += ["--bind", str(job.scratch / "report"), str(_INSIDE / "report")]
        command += _masks(view, nothing)
        command += home_mounts(view.own_home, view.root, nothing) if view.own_home else []
        command += _hides(view, nothing)
        unseen = (Path("/tmp"), view.root, *map(Path, _PRIVATE), *view.masked, *((view.home,) if view.home else ()))
        for path in open_sockets(view.root, unseen, view.sockets):
            command += ["--ro-bind", str(nothing), str(path)]
        command += ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        command += [] if view.network and view.hosts is None else ["--unshare-net"]
        command += ["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--chdir", str(job.cwd)]
        if view.hosts is None:
            return [*command, "--", *job.argv]
        command += ["--ro-bind", str(job.scratch / _GATEWAY), str(_INSIDE / _GATEWAY)]
        command += ["--ro-bind", str(RELAY), str(_INSIDE / RELAY.name)]
        return [*command, "--", *_relayed(allowed(view.hosts), job.argv)]

    def _files(self, job: Job, layers: dict[Path, Path]) -> list[str]:
        """HOME, the files, then dependencies: each may lie inside the one before."""
        view = job.view
        command: list[str] = []
        if view.home and not view.home.is_relative_to(view.root):
            shows_all = view.own_home is None and not is_root()
            command += _home(view.home, layers) if shows_all else _tools(view, view.home, layers)
        if view.work_tree:
            command += ["--bind", str(view.work_tree), str(view.root)]
        elif view.root in layers:
            command += ["--bind", str(layers[view.root]), str(view.root)]
        else:
            command += ["--bind", str(copied(view, job.scratch / "copy")), str(view.root)]
        for folder in view.dependencies:
            if folder in layers:
                command += ["--bind", str(layers[folder]), str(folder)]
            else:
                command += ["--ro-bind", str(folder), str(folder)]
        return command


def copied(view: View, to: Path) -> Path:
    """The files as layers would show them, as a copy: what lies on top is written last."""
    for folder in (*view.under, view.files, *reversed(view.over)):
        shutil.copytree(folder, to, symlinks=True, dirs_exist_ok=True)
    return to


def own_folders(job: Job) -> list[Path]:
    """Return the folders that the engine has made for this job: their files are nobody else's."""
    view = job.view
    given = (view.work_tree, view.copy_at, view.own_home.folder if view.own_home else None)
    return [job.scratch, view.files, *view.over, *view.under, *(folder for folder in given if folder)]


def _kernel_files(nothing: Path) -> list[str]:
    """The words that make kernel settings read-only and mask what tells about the machine."""
    words = [word for path in _READ_ONLY if os.access(path, os.F_OK) for word in ("--ro-bind", path, path)]
    for path in _MASKED:
        if not os.access(path, os.F_OK):
            continue  # not there, or out of this user's reach, and so of the check's
        words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", str(nothing), path]  # noqa: PTH112
    return words


def _coverable(home: Path) -> list[Path]:
    """What of HOME a layer can cover. The kernel lets nobody cover a folder that has something mounted inside, such
    as a volume of a container; then it is HOME's own folders, each for itself, without those."""
    inside = _mounted_below(home)
    if not inside:
        return [home]
    children = sorted(path for path in home.iterdir() if path.is_dir() and not path.is_symlink())
    return [path for path in children if not any(at.is_relative_to(path) for at in inside)]


def _mounted_below(home: Path) -> list[Path]:
    return [at for at, _ in mounts(mount_table() or "") if at != home and at.is_relative_to(home)]


def _home(home: Path, layers: dict[Path, Path]) -> list[str]:
    """HOME below its layer; or, where it cannot be covered as a whole, its folders below theirs and the rest as it is,
    read-only."""
    if home in layers:
        return ["--bind", str(layers[home]), str(home)]
    covered = [path for path in layers if path.parent == home]
    return [word for path in covered for word in ("--bind", str(layers[path]), str(path))]


def _relayed(hosts: tuple[Host, ...], argv: tuple[str, ...]) -> list[str]:
    """The program, behind one who carries its connections to the gateway."""
    places = {(address, str(host.port)): str(host) for host in hosts for address in host.stands_at}
    stand_ins = [word for place, host in places.items() for word in (*place, host)]
    relay = [str(_INTERPRETER), "-I", "-S", str(_INSIDE / RELAY.name), str(_INSIDE / _GATEWAY)]
    return [*relay, *stand_ins, "--", *argv]


def _outermost_tools(view: View, home: Path) -> list[Path]:
    """Return the folders of root's HOME that its checks see, each to be covered for itself: HOME is closed to the user
    that they run as, and where its file system cannot map owners, nothing in it could be reached through it."""
    mounted = _mounted_below(home)
    found: list[Path] = []
    for folder in sorted(_shown_of_home(view, home), key=lambda path: len(path.parts)):
        if folder.is_dir() and not any(folder.is_relative_to(above) for above in found):
            found.append(folder)
    return [folder for folder in found if not any(at.is_relative_to(folder) for at in mounted)]


def _shown_of_home(view: View, home: Path) -> list[Path]:
    """Return what is shown of HOME where it is not shown as a whole: toolchains and caches, and for root, whose checks
    would have them otherwise, some settings."""
    entries = HOME_ENTRIES if view.own_home is None else ()
    further = [home / name for name in entries if (home / name).exists() and not (home / name).is_symlink()]
    return [*tools_in(home, (*view.visible, *view.unmasked)), *further]


def _tools(view: View, home: Path, layers: dict[Path, Path]) -> list[str]:
    """For root, and for whoever has a HOME of their own: of the person's, nothing but what they work with, below its
    layer."""
    command = ["--tmpfs", str(home)]
    for path in _shown_of_home(view, home):
        below = next((folder for folder in (home, *reversed(path.parents), path) if folder in layers), None)
        if below is None:
            command += ["--ro-bind", str(path), str(path)]
        else:
            command += ["--bind", str(layers[below] / path.relative_to(below)), str(path)]
    return command


def _shown_again(view: View) -> list[str]:
    """What the check needs although it lies below a directory that was just made private."""
    interpreter = () if view.hosts is None else (Path(sys.base_prefix), _INTERPRETER.parent)
    needed = (*view.visible, *((view.home,) if view.home else ()), *view.dependencies, *interpreter)
    hidden = [path for path in needed if any(path.is_relative_to(private) for private in _PRIVATE) and path.exists()]
    if is_root():
        # HOME itself is shown by its tools, later.
        elsewhere = [path for path in needed if view.home is None or not path.is_relative_to(view.home)]
        hidden += [path for path in elsewhere if path.is_dir() and closed_folders([path / "inside"])]
    return [word for path in sorted(set(hidden)) for word in ("--ro-bind", str(path), str(path))]


def hidden_in(top: Path, view: View) -> list[str]:
    """The files below `top` that are to be empty. One that is no longer there, or lies behind a link by now, is left
    alone: to empty it would make a file in its place, or empty another."""
    real = top.resolve()
    return [path for path in view.hidden if (top / path).is_file() and (top / path).resolve() == real / path]


def _hides(view: View, nothing: Path) -> list[str]:
    there = hidden_in(view.work_tree or view.files, view)
    return [word for path in there for word in ("--ro-bind", str(nothing), str(view.root / path))]


def _masks(view: View, nothing: Path) -> list[str]:
    """Directories become empty, and so do files. A path that is not there needs no mask. What is not masked, below,
    comes after; and a mask inside of that after it again: the innermost has the last word."""
    masks = {path.resolve() for path in view.masked}
    shown = {at: path for path in view.unmasked if path.is_dir() for at in _below(path, view.masked)}
    command: list[str] = []
    for at in sorted({*masks, *shown}, key=lambda path: (len(path.parts), path)):
        if at.is_dir() and at in masks:
            command += ["--tmpfs", str(at)]
        elif at in shown:
            command += ["--ro-bind", str(shown[at]), str(at)]
        elif at.is_file():
            command += ["--ro-bind", str(nothing), str(at)]
    return command


def _below(path: Path, masked: tuple[Path, ...]) -> set[Path]:
    """Where a folder is below what is masked: by the path that it is called by, where a link may be on the way, and by
    its own."""
    called = {mask.resolve() / path.relative_to(mask) for mask in masked if path.is_relative_to(mask)}
    real = {path.resolve() for mask in masked if path.resolve().is_relative_to(mask.resolve())}
    return (called | real) - {mask.resolve() for mask in masked}
