"""Find out, by trying, which sandbox this machine can provide."""

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
from proofstone.sandbox.bubblewrap import BubblewrapSandbox, LayerKind
from proofstone.sandbox.job import Sandbox
from proofstone.sandbox.limits import create_control_group
from proofstone.sandbox.process import build_launcher_command
from proofstone.sandbox.supervised import SupervisedSandbox
from proofstone.sandbox.unprivileged import STAGE, runs_as_root, stage_spec

_LEVELS = (Assurance.BUBBLEWRAP, Assurance.LANDLOCK, Assurance.PLAIN)


@dataclass(frozen=True)
class SandboxFacts:
    """The results of the trials."""

    bubblewrap: str
    """The path of the program; empty if there is none."""
    namespaces: bool
    namespaces_error: str
    layers: LayerKind
    landlock: int
    """The version of Landlock; 0 if there is none."""
    cgroup: bool

    @property
    def best_level(self) -> Assurance:
        if self.namespaces:
            return Assurance.BUBBLEWRAP
        return Assurance.LANDLOCK if self.landlock else Assurance.PLAIN


def load_sandbox_facts(cache: Path, scratch: Path, search: str) -> SandboxFacts:
    """Return the facts that were found since the machine started with the same bubblewrap; otherwise probe again.

    `search` is the PATH to find bubblewrap in.
    """
    program = shutil.which("bwrap", path=search) or ""
    stamp = Path(program).stat().st_mtime_ns if program else 0
    boot = Path("/proc/sys/kernel/random/boot_id")
    key = [program, stamp, boot.read_text().strip() if boot.is_file() else "", os.getuid(), str(cache.parent)]
    try:
        cached = json.loads(cache.read_text("utf-8"))
        if cached["key"] == key:
            return SandboxFacts(**cached["facts"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # there is no cache, or another version wrote it: probe again
    facts = try_sandboxes(scratch, search)
    if facts.best_level is Assurance.BUBBLEWRAP:  # what is missing may be installed at any time
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = cache.with_name(f"{cache.name}.{os.getpid()}")
        temporary.write_text(json.dumps({"key": key, "facts": asdict(facts)}), "utf-8")
        temporary.replace(cache)
    return facts


def try_sandboxes(scratch: Path, search: str | None = None) -> SandboxFacts:
    """Try everything once. `scratch` is where layers would be; `search` is the PATH for bubblewrap, if not the usual
    one.
    """
    program = shutil.which("bwrap", path=search) or ""
    works, error = _try_bubblewrap(program, scratch)
    group = create_control_group(0, 64)
    if group:
        group.close()
    return SandboxFacts(
        bubblewrap=program,
        namespaces=works,
        namespaces_error=error,
        layers=_find_layer_kind(scratch) if works else "none",
        landlock=_find_landlock_version(),
        cgroup=group is not None,
    )


def choose_sandbox(facts: SandboxFacts, level: str, *, require: bool) -> Sandbox:
    """Return the sandbox for this machine: the strongest one, or the requested level."""
    chosen_level = facts.best_level if level == "auto" else Assurance(level)
    if _LEVELS.index(chosen_level) < _LEVELS.index(facts.best_level):
        raise SandboxError(
            f"the sandbox level {chosen_level} is not available here: {_explain_missing(facts, chosen_level)}",
            hint=_HINT,
        )
    if require and chosen_level is not Assurance.BUBBLEWRAP:
        reason = _explain_missing(facts, Assurance.BUBBLEWRAP)
        raise SandboxError(f"a sandbox is required, but the level here would be {chosen_level}: {reason}", hint=_HINT)
    return (
        BubblewrapSandbox(facts.bubblewrap, facts.layers)
        if chosen_level is Assurance.BUBBLEWRAP
        else SupervisedSandbox(chosen_level)
    )


_HINT = "run `proofstone doctor` to see what is missing on this machine and how to get it"


def _explain_missing(facts: SandboxFacts, level: Assurance) -> str:
    if level is Assurance.LANDLOCK:
        return "the kernel has no Landlock"
    if not facts.bubblewrap:
        return "bubblewrap (bwrap) is not installed"
    return facts.namespaces_error or "the settings choose a weaker level"


def _try_bubblewrap(program: str, scratch: Path) -> tuple[bool, str]:
    if not program:
        return False, "bubblewrap is not installed"
    flags = ["--unshare-user", "--unshare-pid", "--unshare-net", "--cap-drop", "ALL", "--new-session"]
    argv = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *flags, "--", "/bin/sh", "-c", "exit 0"]
    return _try_spec({"layers": [], "namespaces": True, "argv": argv}, scratch)


def _find_layer_kind(scratch: Path) -> LayerKind:
    """Return which kind of throwaway layer the kernel can mount here."""
    kinds: tuple[LayerKind, ...] = ("disk", "memory")
    for kind in kinds:
        if _try_layer(scratch, memory=kind == "memory"):
            return kind
    return "none"


def _try_layer(scratch: Path, *, memory: bool) -> bool:
    """Return whether a file of the lower layer can be written to, and a new one created."""
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        lower, at, top = (Path(folder, name) for name in ("lower", "at", "top"))
        for path in (lower, at, top):
            path.mkdir()
        (lower / "there").touch()
        layer = {"lower": [str(lower)], "at": str(at), "scratch": str(top), "memory": memory, "size_mb": 0}
        target = f"{STAGE}/layer-0/at" if runs_as_root() else str(at)
        argv = ["/bin/sh", "-c", 'echo more >> "$0/there" && echo new > "$0/new"', target]
        works, _ = _try_spec({"layers": [layer], "argv": argv}, Path(folder))
        _make_removable(Path(folder))
    return works


def _try_spec(spec: dict[str, Any], scratch: Path) -> tuple[bool, str]:
    """Return whether the launcher can set this up and run it, and its error if not."""
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        spec_file = Path(folder, "spec")
        spec_file.write_bytes(marshal.dumps(stage_spec(spec, [scratch]) if runs_as_root() else spec))
        result = subprocess.run(
            [*build_launcher_command("try_setup"), str(spec_file)],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    return result.returncode == 0, result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]


def _make_removable(folder: Path) -> None:
    """Restore the permissions of a directory that overlayfs leaves without any."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink() and not os.access(path, os.R_OK | os.X_OK):
            path.chmod(0o700)


def _find_landlock_version() -> int:
    if sys.platform != "linux":
        return 0
    version = ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1)
    return max(0, int(version))
