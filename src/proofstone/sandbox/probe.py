"""What sandbox this machine can give, found by trying it."""

from __future__ import annotations

import ctypes
import json
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proofstone.common.models import Assurance
from proofstone.errors import SandboxError
from proofstone.sandbox.bubblewrap import Bubblewrap, LayerKind
from proofstone.sandbox.job import Sandbox
from proofstone.sandbox.limits import make_group
from proofstone.sandbox.process import launcher
from proofstone.sandbox.supervised import Supervised
from proofstone.sandbox.unprivileged import STAGE, is_root, stage

_ORDER = (Assurance.BUBBLEWRAP, Assurance.LANDLOCK, Assurance.PLAIN)


@dataclass(frozen=True)
class SandboxFacts:
    """What was tried, and what the machine said."""

    bubblewrap: str
    """Path of the program; empty if there is none."""
    namespaces: bool
    namespaces_error: str
    layers: LayerKind
    landlock: int
    """Version of Landlock; 0 if there is none."""
    cgroup: bool

    @property
    def best(self) -> Assurance:
        if self.namespaces:
            return Assurance.BUBBLEWRAP
        return Assurance.LANDLOCK if self.landlock else Assurance.PLAIN


def remembered_facts(cache: Path, scratch: Path, search: str) -> SandboxFacts:
    """What was found since the machine started, with the same bubblewrap; otherwise tried again. `search` is where
    it may lie."""
    program = shutil.which("bwrap", path=search) or ""
    stamp = Path(program).stat().st_mtime_ns if program else 0
    boot = Path("/proc/sys/kernel/random/boot_id")
    key = [program, stamp, boot.read_text().strip() if boot.is_file() else "", os.getuid(), str(cache.parent)]
    try:
        known = json.loads(cache.read_text("utf-8"))
        if known["key"] == key:
            return SandboxFacts(**known["facts"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # not there, or written by another version: try again
    facts = probe(scratch, search)
    if facts.best is Assurance.BUBBLEWRAP:  # what is missing may be installed any minute
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = cache.with_name(f"{cache.name}.{os.getpid()}")
        aside.write_text(json.dumps({"key": key, "facts": asdict(facts)}), "utf-8")
        aside.replace(cache)
    return facts


def probe(scratch: Path, search: str | None = None) -> SandboxFacts:
    """Try everything once; `scratch` is where layers would lie, `search` where bubblewrap may, if not on PATH."""
    program = shutil.which("bwrap", path=search) or ""
    works, said = _bubblewrap_works(program, scratch)
    group = make_group(0, 64)
    if group:
        group.close()
    return SandboxFacts(
        bubblewrap=program,
        namespaces=works,
        namespaces_error=said,
        layers=_layers(scratch) if works else "none",
        landlock=_landlock_version(),
        cgroup=group is not None,
    )


def choose(facts: SandboxFacts, level: str, *, require: bool) -> Sandbox:
    """The sandbox for this machine: the strongest there is, or the one asked for."""
    wanted = facts.best if level == "auto" else Assurance(level)
    if _ORDER.index(wanted) < _ORDER.index(facts.best):
        raise SandboxError(f"the sandbox level {wanted} cannot be had here: {_why(facts, wanted)}", hint=_HINT)
    if require and wanted is not Assurance.BUBBLEWRAP:
        raise SandboxError(
            f"a sandbox is required, and the level here would be {wanted}: {_why(facts, Assurance.BUBBLEWRAP)}",
            hint=_HINT,
        )
    return Bubblewrap(facts.bubblewrap, facts.layers) if wanted is Assurance.BUBBLEWRAP else Supervised(wanted)


_HINT = "`proofstone doctor` says what is missing on this machine and how to get it"


def _why(facts: SandboxFacts, wanted: Assurance) -> str:
    if wanted is Assurance.LANDLOCK:
        return "the kernel has no Landlock"
    if not facts.bubblewrap:
        return "bubblewrap (bwrap) is not installed"
    return facts.namespaces_error or f"{facts.best} was chosen in the configuration"


def _bubblewrap_works(program: str, scratch: Path) -> tuple[bool, str]:
    if not program:
        return False, "bubblewrap is not installed"
    flags = ["--unshare-user", "--unshare-pid", "--unshare-net", "--cap-drop", "ALL", "--new-session"]
    argv = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *flags, "--", "/bin/sh", "-c", "exit 0"]
    return _try({"layers": [], "namespaces": True, "argv": argv}, scratch)


def _layers(scratch: Path) -> LayerKind:
    """Which kind of throwaway layer the kernel mounts for us here."""
    kinds: tuple[LayerKind, ...] = ("disk", "memory")
    for kind in kinds:
        if _layer_works(scratch, memory=kind == "memory"):
            return kind
    return "none"


def _layer_works(scratch: Path, *, memory: bool) -> bool:
    """Whether a file of the layer below can be written to, and a new one made."""
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        lower, at, top = (Path(folder, name) for name in ("lower", "at", "top"))
        for path in (lower, at, top):
            path.mkdir()
        (lower / "there").touch()
        layer = {"lower": [str(lower)], "at": str(at), "scratch": str(top), "memory": memory, "size_mb": 0}
        written = f"{STAGE}/layer-0/at" if is_root() else str(at)
        argv = ["/bin/sh", "-c", 'echo more >> "$0/there" && echo new > "$0/new"', written]
        works, _ = _try({"layers": [layer], "argv": argv}, Path(folder))
        _make_removable(Path(folder))
    return works


def _try(spec: dict[str, Any], scratch: Path) -> tuple[bool, str]:
    """Whether the launcher can set this up and run it, and what it said if not."""
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        file = Path(folder, "spec")
        file.write_bytes(marshal.dumps(stage(spec, [scratch]) if is_root() else spec))
        done = subprocess.run(
            [*launcher("try_setup"), str(file)], capture_output=True, check=False, stdin=subprocess.DEVNULL
        )
    return done.returncode == 0, done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]


def _make_removable(folder: Path) -> None:
    """Overlayfs leaves a directory without any permission behind."""
    for below in folder.rglob("*"):
        if below.is_dir() and not below.is_symlink() and not os.access(below, os.R_OK | os.X_OK):
            below.chmod(0o700)


def _landlock_version() -> int:
    if sys.platform != "linux":
        return 0
    version = ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1)
    return max(0, int(version))
