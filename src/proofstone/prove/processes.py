"""Runs one program of a trial and leaves nothing of it behind, whatever it starts and however the trial ends.

Not a sandbox: the supervisor that runs checks at the weakest level adopts every orphan, and ends with us.

What the programs of a trial see of this machine: its programs, a HOME and a state of their own, no more.

A trick must not reach the person's HOME, and their git configuration must not decide how a trial ends.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofstone.machine.files import remove
from proofstone.sandbox.job import Execution, Job, Limits, Place, View
from proofstone.sandbox.limits import make_group
from proofstone.sandbox.process import launch

_SHELL: Final = ("/bin/sh", "-euc")
_MOST_OUTPUT: Final = 1 << 20
_MEMORY_MB, _PROCESSES = 4096, 1024


@dataclass(frozen=True)
class Done:
    code: int | None
    """None when it was ended: at its deadline, at a limit, or because the person left."""
    output: str

    @property
    def last_words(self) -> str:
        return self.output.strip().rpartition("\n")[2][:300]


@dataclass
class _Head:
    """The beginning of the output; a flood costs nothing."""

    data: bytearray = field(default_factory=bytearray)

    def write(self, data: bytes, /) -> None:
        self.data += data[: _MOST_OUTPUT - len(self.data)]


@dataclass(frozen=True)
class Errands:
    """Runs programs in one worker's folder until `stop` is set."""

    folder: Path
    stop: threading.Event

    def run(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        *,
        seconds: float,
        limited: bool = True,
        stop: threading.Event | None = None,
    ) -> Done:
        """To its end or its deadline. `limited`: with bounds on memory and processes, where there are groups."""
        folder = self.folder / f"errand-{secrets.token_hex(4)}"
        folder.mkdir(parents=True)
        group = make_group(_MEMORY_MB, _PROCESSES) if limited else None
        wanted = {
            "groups": group.procs if group else (),
            "confine": False,
            "layers": [],
            "argv": list(argv),
            "cwd": str(cwd),
            "env": dict(env),
        }
        job = Job(
            argv=tuple(argv),
            cwd=cwd,
            env=env,
            view=View(root=cwd, files=cwd),
            place=Place(root=cwd, report=folder, probes=folder, temporary=folder),
            scratch=folder,
            limits=Limits(seconds, _MEMORY_MB, _PROCESSES),
            cancel=stop or self.stop,
        )
        head = _Head()
        ended = launch(job, wanted, group, head)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        return Done(ended.exit_code, _words(ended, head))

    def shell(self, lines: str, cwd: Path, env: Mapping[str, str], *, seconds: float) -> Done:
        return self.run([*_SHELL, lines], cwd, env, seconds=seconds)

    @contextmanager
    def background(self, lines: str, cwd: Path, env: Mapping[str, str], *, seconds: float) -> Iterator[None]:
        """Lines that run until the block ends."""
        if not lines:
            yield
            return
        over = threading.Event()
        argv = [*_SHELL, lines]
        thread = threading.Thread(target=self.run, args=(argv, cwd, env), kwargs={"seconds": seconds, "stop": over})
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _words(ended: Execution, head: _Head) -> str:
    """What it said, and what ended it if it did not end by itself."""
    said = head.data.decode("utf-8", "replace")
    if ended.setup_error:
        return f"{said}\n{ended.setup_error}"
    if ended.timed_out:
        return f"{said}\nnot finished after {ended.duration_ms / 1000:.0f} s"
    return f"{said}\nended at {ended.limit}" if ended.limit else said


_KEPT: Final = ("LANG", "LC_ALL", "TZ", "TMPDIR", "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY")
# Version managers look below HOME for their programs; the real one is named to them.
_BELOW_HOME: Final[Mapping[str, str]] = {
    "PYENV_ROOT": ".pyenv",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
    "MISE_DATA_DIR": ".local/share/mise",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
}
_GITCONFIG: Final = """\
[user]
	name = An author
	email = author@example.invalid
[init]
	defaultBranch = main
[commit]
	gpgSign = false
"""
_IMPORT_SECONDS: Final = 60


def variables(search: str, home: Path, state: Path) -> dict[str, str]:
    """The environment of a trial's programs."""
    real = Path(os.environ.get("HOME") or "/")
    found = {name: str(real / below) for name, below in _BELOW_HOME.items() if (real / below).is_dir()}
    kept = {name: os.environ[name] for name in (*_KEPT, *_BELOW_HOME) if name in os.environ}
    own = {
        "PATH": search,
        "HOME": str(home),
        "PROOFSTONE_HOME": str(state),
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return found | kept | own


def fresh_home(home: Path) -> None:
    """HOME as a new author has it: who they are, and nothing else."""
    if home.exists():
        remove(home)
    home.mkdir(mode=0o700, parents=True)
    (home / ".gitconfig").write_text(_GITCONFIG, "utf-8")


def search_path(needs: Iterable[str]) -> str:
    """PATH as the person has it; where it lacks something that stands beside Proofstone's own interpreter, with that
    folder in front: `proofstone prove` works from an environment that nobody has activated."""
    theirs = os.environ.get("PATH", os.defpath)
    beside = os.pathsep.join((str(Path(sys.executable).parent), theirs))
    wanted = sorted(set(needs))
    if not missing(wanted, theirs) or len(missing(wanted, beside)) >= len(missing(wanted, theirs)):
        return theirs
    return beside


def missing(needs: Sequence[str], search: str) -> dict[str, str]:
    """What is not there, each with how to say it."""
    found = {}
    for need in needs:
        kind, _, name = need.rpartition(":")
        if kind == "python" and not _importable(name, search):
            found[need] = f"python3 cannot import {name}"
        elif kind != "python" and shutil.which(need, path=search) is None:
            found[need] = f"{need} is not installed"
    return found


def _importable(module: str, search: str) -> bool:
    python = shutil.which("python3", path=search)
    if python is None:
        return False
    # HOME as in the trials: what lies in the person's own is not there for them.
    asked = [python, "-s", "-c", f"import {module}"]
    env = {"PATH": search, "HOME": os.devnull}
    done = subprocess.run(asked, cwd="/", env=env, capture_output=True, timeout=_IMPORT_SECONDS, check=False)
    return done.returncode == 0
