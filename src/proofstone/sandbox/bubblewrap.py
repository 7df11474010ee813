"""The strongest level: bubblewrap, with the frozen tree at the repository's own path.

- The machine's root is read-only; /tmp, /run and /dev are private; Proofstone's state and credentials are masked.
- The frozen checkout, HOME and dependencies are lower layers: what a check writes there is discarded.
- An executor's work tree is bound there instead and keeps what is written; so does a private HOME beside the user's.
- User, pid, ipc, host-name, time, cgroup and (unless declared) network namespaces; no capabilities; a new session and
  keyring; a seccomp filter (`seccomp.py`). Kernel settings below /proc and /sys are read-only, and information about
  the machine there is masked.
- Root of the machine is a user without rights inside (`unprivileged.py`).
- Sockets of the machine (docker, D-Bus, ssh-agent) are in /run and /tmp and not visible.
- If hosts are named, one socket leads out of the network namespace, to these hosts only (`gateway.py`, `relay.py`).

Where layers are not available, the checkout is copied and dependencies are read-only.
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
from proofstone.sandbox.gateway import Gateway, NetworkHost, parse_hosts
from proofstone.sandbox.job import SANDBOX_VARIABLE, OutputSink, SandboxJob, SandboxPaths, SandboxResult, SandboxView
from proofstone.sandbox.limits import ControlGroup, limit_resources
from proofstone.sandbox.mounts import (
    PRIVATE_HOME,
    build_home_mounts,
    find_open_sockets,
    find_tool_folders,
    parse_mounts,
    read_mount_table,
    remove_mount_points,
)
from proofstone.sandbox.process import run_launcher
from proofstone.sandbox.seccomp import NAMESPACES, build_filter
from proofstone.sandbox.unprivileged import HOME_ENTRIES, find_closed_folders, runs_as_root, stage_spec

LayerKind = Literal["disk", "memory", "none"]
"""Where throwaway layers store what is written: beside the checkout, in memory, or nowhere because there are none."""

PROBES_FOLDER = Path(__file__).parents[1] / "check" / "probes"
RELAY_SCRIPT = Path(__file__).with_name("relay.py")
_INTERPRETER = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
"""The interpreter outside any virtual environment: an executor may be changing that very environment."""
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
"""Files of the kernel's own file systems that tell about the machine, its other users or its keys."""


@dataclass(frozen=True)
class OverlayLayer:
    """A directory as a check sees it, with a layer on top that takes the writes."""

    lower: tuple[Path, ...]
    at: Path
    memory: bool


@dataclass(frozen=True)
class BubblewrapSandbox:
    """The sandbox that uses bubblewrap."""

    program: str
    layers: LayerKind

    @property
    def level(self) -> Assurance:
        return Assurance.BUBBLEWRAP

    def prepare(self, view: SandboxView, scratch: Path) -> SandboxPaths:
        (scratch / "report").mkdir(parents=True)
        return SandboxPaths(
            root=view.root,
            report=_INSIDE / "report",
            probes=_INSIDE / "probes",
            temporary=Path("/tmp"),
            engine_paths=tuple(bind.at for bind in view.engine_binds),
            home=PRIVATE_HOME if view.own_home else None,
        )

    def run(self, job: SandboxJob, sink: OutputSink) -> SandboxResult:
        layers = list(self._list_layers(job))
        layer_folders = [job.scratch / f"layer-{number}" for number in range(len(layers))]
        for folder in layer_folders:
            (folder / "at").mkdir(parents=True)
            (folder / "top").mkdir()
        hosts = None if job.view.hosts is None else parse_hosts(job.view.hosts)
        with limit_resources(job.limits.memory_mb, job.limits.processes) as group:
            spec = self._build_spec(job, layers, layer_folders, group)
            if runs_as_root():
                spec = stage_spec(spec, list_own_folders(job))
            with (
                remove_mount_points(job.view) if job.view.work_tree else nullcontext(),
                nullcontext() if hosts is None else Gateway(job.scratch / _GATEWAY, hosts, job.on_refused),
            ):
                return run_launcher(job, spec, group, sink)

    def _build_spec(
        self, job: SandboxJob, layers: list[OverlayLayer], layer_folders: list[Path], group: ControlGroup | None
    ) -> dict[str, Any]:
        return {
            "groups": group.procs_files if group else (),
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
                for layer, folder in zip(layers, layer_folders, strict=True)
            ],
            "argv": self._build_command(
                job, [(layer.at, folder / "at") for layer, folder in zip(layers, layer_folders, strict=True)]
            ),
            "env": {**job.env, SANDBOX_VARIABLE: self.level.value},
        }

    def find_written(self, job: SandboxJob) -> Path:
        if self._is_copied(job):
            return job.scratch / "copy"
        number = next(number for number, layer in enumerate(self._list_layers(job)) if layer.at == job.view.root)
        return job.scratch / f"layer-{number}" / "top" / "upper"

    def _is_copied(self, job: SandboxJob) -> bool:
        """Return whether the files are copied: there are no layers, or none whose content would outlive the run."""
        return self.layers == "none" or (job.keeps_writes and self.layers == "memory")

    def _list_layers(self, job: SandboxJob) -> Iterator[OverlayLayer]:
        view = job.view
        if self.layers == "none":
            return
        in_memory = self.layers == "memory"
        if view.home and not view.home.is_relative_to(view.root):
            # In memory: HOME usually contains Proofstone's state, and a layer may not be inside what it covers.
            for folder in _find_outermost_tools(view, view.home) if runs_as_root() else _find_coverable(view.home):
                yield OverlayLayer((folder,), folder, memory=True)
        if not view.work_tree and not self._is_copied(job):
            yield OverlayLayer((*view.overlays, view.files, *view.underlays), view.root, memory=in_memory)
        for folder in view.dependencies:
            compiled = (view.bytecode[folder],) if folder in view.bytecode else ()
            yield OverlayLayer((*compiled, folder), folder, memory=in_memory)

    def _build_command(self, job: SandboxJob, layers: list[tuple[Path, Path]]) -> list[str]:
        view, nothing = job.view, job.scratch / "nothing"
        nothing.touch()  # not /dev/null: a device cannot be opened below a bind mount
        command = [
            self.program,
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            *_build_kernel_options(nothing),
        ]
        size = ["--size", str(job.limits.disk_mb << 20)] if job.limits.disk_mb else []
        for private in _PRIVATE:
            if Path(private).is_dir() and not Path(private).is_symlink():
                command += [*size, "--tmpfs", private]
        command += ["--perms", "1777", *size, "--tmpfs", "/tmp"]
        command += _build_visible_options(view)
        command += self._build_file_options(job, dict(layers))
        if view.git and not view.work_tree:
            command += ["--ro-bind", str(view.git), str(view.root / ".git")]
        for bind in (*view.objects, *view.includes, *view.engine_binds):
            command += ["--bind" if bind.writable else "--ro-bind", str(bind.source), str(bind.at)]
        for bind in view.objects:
            if (bind.source / "info" / "alternates").is_file():  # every store is bound; this file names paths outside
                command += ["--ro-bind", str(nothing), str(bind.at / "info" / "alternates")]
        for path in view.sockets:
            command += ["--bind-try", str(path), str(path)]
        command += ["--ro-bind", str(PROBES_FOLDER), str(_INSIDE / "probes")]
        command += ["--bind", str(job.scratch / "report"), str(_INSIDE / "report")]
        command += _build_mask_options(view, nothing)
        command += build_home_mounts(view.own_home, view.root, nothing) if view.own_home else []
        command += _build_hide_options(view, nothing)
        invisible = (Path("/tmp"), view.root, *map(Path, _PRIVATE), *view.masked, *((view.home,) if view.home else ()))
        for path in find_open_sockets(view.root, invisible, view.sockets):
            command += ["--ro-bind", str(nothing), str(path)]
        command += ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        command += [] if view.network and view.hosts is None else ["--unshare-net"]
        command += ["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--chdir", str(job.cwd)]
        if view.hosts is None:
            return [*command, "--", *job.argv]
        command += ["--ro-bind", str(job.scratch / _GATEWAY), str(_INSIDE / _GATEWAY)]
        command += ["--ro-bind", str(RELAY_SCRIPT), str(_INSIDE / RELAY_SCRIPT.name)]
        return [*command, "--", *_build_relay_command(parse_hosts(view.hosts), job.argv)]

    def _build_file_options(self, job: SandboxJob, layers: dict[Path, Path]) -> list[str]:
        """Return the options for HOME, the files and the dependencies, in this order: each may be inside the one
        before.
        """
        view = job.view
        command: list[str] = []
        if view.home and not view.home.is_relative_to(view.root):
            shows_all = view.own_home is None and not runs_as_root()
            command += (
                _build_home_options(view.home, layers) if shows_all else _build_tool_options(view, view.home, layers)
            )
        if view.work_tree:
            command += ["--bind", str(view.work_tree), str(view.root)]
        elif view.root in layers:
            command += ["--bind", str(layers[view.root]), str(view.root)]
        else:
            command += ["--bind", str(copy_files(view, job.scratch / "copy")), str(view.root)]
        for folder in view.dependencies:
            if folder in layers:
                command += ["--bind", str(layers[folder]), str(folder)]
            else:
                command += ["--ro-bind", str(folder), str(folder)]
        return command


def copy_files(view: SandboxView, to: Path) -> Path:
    """Copy the files as layers would show them: the topmost folder is written last."""
    for folder in (*view.underlays, view.files, *reversed(view.overlays)):
        shutil.copytree(folder, to, symlinks=True, dirs_exist_ok=True)
    return to


def list_own_folders(job: SandboxJob) -> list[Path]:
    """Return the folders that the engine has created for this job: nobody else uses their files."""
    view = job.view
    optional = (view.work_tree, view.copy_at, view.own_home.folder if view.own_home else None)
    return [job.scratch, view.files, *view.overlays, *view.underlays, *(folder for folder in optional if folder)]


def _build_kernel_options(nothing: Path) -> list[str]:
    """Return the options that make kernel settings read-only and mask information about the machine."""
    words = [word for path in _READ_ONLY if os.access(path, os.F_OK) for word in ("--ro-bind", path, path)]
    for path in _MASKED:
        if not os.access(path, os.F_OK):
            continue  # it does not exist, or neither this user nor the check can access it
        words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", str(nothing), path]  # noqa: PTH112
    return words


def _find_coverable(home: Path) -> list[Path]:
    """Return the folders of HOME that a layer can cover.

    The kernel does not allow a layer over a folder that has something mounted inside, such as a volume of a container.
    Then each of HOME's own folders without such a mount is covered by itself.
    """
    mount_points = _find_mounts_below(home)
    if not mount_points:
        return [home]
    children = sorted(path for path in home.iterdir() if path.is_dir() and not path.is_symlink())
    return [path for path in children if not any(at.is_relative_to(path) for at in mount_points)]


def _find_mounts_below(home: Path) -> list[Path]:
    return [at for at, _ in parse_mounts(read_mount_table() or "") if at != home and at.is_relative_to(home)]


def _build_home_options(home: Path, layers: dict[Path, Path]) -> list[str]:
    """Return the options for HOME below its layer.

    Where HOME cannot be covered as a whole, its folders are below their layers, and the rest is read-only.
    """
    if home in layers:
        return ["--bind", str(layers[home]), str(home)]
    covered = [path for path in layers if path.parent == home]
    return [word for path in covered for word in ("--bind", str(layers[path]), str(path))]


def _build_relay_command(hosts: tuple[NetworkHost, ...], argv: tuple[str, ...]) -> list[str]:
    """Return the program's command behind the relay, which carries its connections to the gateway."""
    addresses = {(address, str(host.port)): str(host) for host in hosts for address in host.loopback_addresses}
    relay_words = [word for address_and_port, host in addresses.items() for word in (*address_and_port, host)]
    relay = [str(_INTERPRETER), "-I", "-S", str(_INSIDE / RELAY_SCRIPT.name), str(_INSIDE / _GATEWAY)]
    return [*relay, *relay_words, "--", *argv]


def _find_outermost_tools(view: SandboxView, home: Path) -> list[Path]:
    """Return the folders of root's HOME that its checks see, each to be covered by itself.

    HOME is closed to the user that the checks run as, and where its file system cannot map owners, nothing in HOME
    could be reached through it.
    """
    mount_points = _find_mounts_below(home)
    folders: list[Path] = []
    for folder in sorted(_find_visible_in_home(view, home), key=lambda path: len(path.parts)):
        if folder.is_dir() and not any(folder.is_relative_to(above) for above in folders):
            folders.append(folder)
    return [folder for folder in folders if not any(at.is_relative_to(folder) for at in mount_points)]


def _find_visible_in_home(view: SandboxView, home: Path) -> list[Path]:
    """Return what is visible of HOME if it is not visible as a whole: toolchains, caches, and for root some settings.

    Checks of other users see these settings anyway.
    """
    entries = HOME_ENTRIES if view.own_home is None else ()
    settings = [home / name for name in entries if (home / name).exists() and not (home / name).is_symlink()]
    return [*find_tool_folders(home, (*view.visible, *view.unmasked)), *settings]


def _build_tool_options(view: SandboxView, home: Path, layers: dict[Path, Path]) -> list[str]:
    """Return the options for root, and for a program with a private HOME: it sees only the tools of the user's HOME."""
    command = ["--tmpfs", str(home)]
    for path in _find_visible_in_home(view, home):
        layer_folder = next((folder for folder in (home, *reversed(path.parents), path) if folder in layers), None)
        if layer_folder is None:
            command += ["--ro-bind", str(path), str(path)]
        else:
            command += ["--bind", str(layers[layer_folder] / path.relative_to(layer_folder)), str(path)]
    return command


def _build_visible_options(view: SandboxView) -> list[str]:
    """Return the options for folders that the check needs although they are below a directory that was just made
    private.
    """
    interpreter = () if view.hosts is None else (Path(sys.base_prefix), _INTERPRETER.parent)
    needed = (*view.visible, *((view.home,) if view.home else ()), *view.dependencies, *interpreter)
    needed_again = [
        path for path in needed if any(path.is_relative_to(private) for private in _PRIVATE) and path.exists()
    ]
    if runs_as_root():
        # HOME itself becomes visible later, through its tools.
        outside_home = [path for path in needed if view.home is None or not path.is_relative_to(view.home)]
        needed_again += [path for path in outside_home if path.is_dir() and find_closed_folders([path / "inside"])]
    return [word for path in sorted(set(needed_again)) for word in ("--ro-bind", str(path), str(path))]


def find_hidden_files(top: Path, view: SandboxView) -> list[str]:
    """Return the files below `top` that are to be empty.

    A file that no longer exists, or that is behind a link now, is left out: emptying it would create a file in its
    place, or empty another file.
    """
    real = top.resolve()
    return [path for path in view.hidden if (top / path).is_file() and (top / path).resolve() == real / path]


def _build_hide_options(view: SandboxView, nothing: Path) -> list[str]:
    files = find_hidden_files(view.work_tree or view.files, view)
    return [word for path in files for word in ("--ro-bind", str(nothing), str(view.root / path))]


def _build_mask_options(view: SandboxView, nothing: Path) -> list[str]:
    """Return the options that make masked directories and files empty. A path that does not exist needs no mask.

    An unmasked folder inside a mask comes after the mask, and a mask inside that folder comes after it again: the
    innermost option wins.
    """
    masks = {path.resolve() for path in view.masked}
    unmasked = {at: path for path in view.unmasked if path.is_dir() for at in _find_below_masks(path, view.masked)}
    command: list[str] = []
    for at in sorted({*masks, *unmasked}, key=lambda path: (len(path.parts), path)):
        if at.is_dir() and at in masks:
            command += ["--tmpfs", str(at)]
        elif at in unmasked:
            command += ["--ro-bind", str(unmasked[at]), str(at)]
        elif at.is_file():
            command += ["--ro-bind", str(nothing), str(at)]
    return command


def _find_below_masks(path: Path, masked: tuple[Path, ...]) -> set[Path]:
    """Return where a folder is below a mask: by the path that was given, which may contain a link, and by its real
    path.
    """
    given_paths = {mask.resolve() / path.relative_to(mask) for mask in masked if path.is_relative_to(mask)}
    real_paths = {path.resolve() for mask in masked if path.resolve().is_relative_to(mask.resolve())}
    return (given_paths | real_paths) - {mask.resolve() for mask in masked}
