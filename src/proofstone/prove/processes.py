"""Run the programs of a trial in an environment of their own, and leave nothing behind.

This is not a sandbox: the supervisor that runs checks at the weakest level adopts every orphan and ends with this
process. The programs see the machine's programs, and a HOME and a state of their own. A trick must not reach the user's
HOME, and the user's git configuration must not influence a trial.
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

from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import JobLimits, SandboxJob, SandboxPaths, SandboxResult, SandboxView
from proofstone.sandbox.limits import create_control_group
from proofstone.sandbox.process import run_launcher

_SHELL: Final = ("/bin/sh", "-euc")
_MAX_OUTPUT_BYTES: Final = 1 << 20
_MEMORY_MB, _PROCESSES = 4096, 1024


@dataclass(frozen=True)
class ProcessResult:
    code: int | None
    """None if the program was stopped: at its deadline, at a limit, or by an interrupt."""
    output: str

    @property
    def last_line(self) -> str:
        return self.output.strip().rpartition("\n")[2][:300]


@dataclass
class _OutputHead:
    """The start of the output. The rest is dropped, so that a flood costs nothing."""

    data: bytearray = field(default_factory=bytearray)

    def write(self, data: bytes, /) -> None:
        self.data += data[: _MAX_OUTPUT_BYTES - len(self.data)]


@dataclass(frozen=True)
class ProcessRunner:
    """Runs programs in the folder of one worker until `stop` is set."""

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
    ) -> ProcessResult:
        """Run a program to its end or its deadline. `limited` bounds memory and processes, where control groups are
        available.
        """
        folder = self.folder / f"errand-{secrets.token_hex(4)}"
        folder.mkdir(parents=True)
        group = create_control_group(_MEMORY_MB, _PROCESSES) if limited else None
        request = {
            "groups": group.procs_files if group else (),
            "confine": False,
            "layers": [],
            "argv": list(argv),
            "cwd": str(cwd),
            "env": dict(env),
        }
        job = SandboxJob(
            argv=tuple(argv),
            cwd=cwd,
            env=env,
            view=SandboxView(root=cwd, files=cwd),
            paths=SandboxPaths(root=cwd, report=folder, probes=folder, temporary=folder),
            scratch=folder,
            limits=JobLimits(seconds, _MEMORY_MB, _PROCESSES),
            cancel=stop or self.stop,
        )
        head = _OutputHead()
        execution = run_launcher(job, request, group, head)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        return ProcessResult(execution.exit_code, _describe_output(execution, head))

    def shell(self, lines: str, cwd: Path, env: Mapping[str, str], *, seconds: float) -> ProcessResult:
        return self.run([*_SHELL, lines], cwd, env, seconds=seconds)

    @contextmanager
    def run_in_background(self, lines: str, cwd: Path, env: Mapping[str, str], *, seconds: float) -> Iterator[None]:
        """Run shell lines until the block ends."""
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


def _describe_output(execution: SandboxResult, head: _OutputHead) -> str:
    """Return the output, and what stopped the program if it did not end by itself."""
    output = head.data.decode("utf-8", "replace")
    if execution.setup_error:
        return f"{output}\n{execution.setup_error}"
    if execution.timed_out:
        return f"{output}\nnot finished after {execution.duration_ms / 1000:.0f} s"
    return f"{output}\nended at {execution.limit}" if execution.limit else output


_INHERITED_VARIABLES: Final = ("LANG", "LC_ALL", "TZ", "TMPDIR", "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY")
# Version managers look below HOME for their programs, so they are given the user's real HOME.
_HOME_FOLDERS: Final[Mapping[str, str]] = {
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


def build_environment(search: str, home: Path, state: Path) -> dict[str, str]:
    """Return the environment of a trial's programs."""
    real_home = Path(os.environ.get("HOME") or "/")
    version_managers = {
        name: str(real_home / folder) for name, folder in _HOME_FOLDERS.items() if (real_home / folder).is_dir()
    }
    inherited = {name: os.environ[name] for name in (*_INHERITED_VARIABLES, *_HOME_FOLDERS) if name in os.environ}
    own = {
        "PATH": search,
        "HOME": str(home),
        "PROOFSTONE_HOME": str(state),
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return version_managers | inherited | own


def create_home(home: Path) -> None:
    """Create the HOME of a new author, with only a git configuration."""
    if home.exists():
        remove_folder(home)
    home.mkdir(mode=0o700, parents=True)
    (home / ".gitconfig").write_text(_GITCONFIG, "utf-8")


def find_search_path(needs: Iterable[str]) -> str:
    """Return the user's PATH. If it lacks something that is next to Proofstone's own interpreter, prepend that
    folder: `proofstone prove` also works from an environment that is not activated.
    """
    user_path = os.environ.get("PATH", os.defpath)
    extended_path = os.pathsep.join((str(Path(sys.executable).parent), user_path))
    required = sorted(set(needs))
    if not find_missing(required, user_path) or len(find_missing(required, extended_path)) >= len(
        find_missing(required, user_path)
    ):
        return user_path
    return extended_path


def find_missing(needs: Sequence[str], search: str) -> dict[str, str]:
    """Return what is not available, each with a message."""
    problems = {}
    for need in needs:
        kind, _, name = need.rpartition(":")
        if kind == "python" and not _can_import(name, search):
            problems[need] = f"python3 cannot import {name}"
        elif kind != "python" and shutil.which(need, path=search) is None:
            problems[need] = f"{need} is not installed"
    return problems


def _can_import(module: str, search: str) -> bool:
    python = shutil.which("python3", path=search)
    if python is None:
        return False
    # As in the trials, packages in the user's HOME are not available.
    argv = [python, "-s", "-c", f"import {module}"]
    env = {"PATH": search, "HOME": os.devnull}
    done = subprocess.run(argv, cwd="/", env=env, capture_output=True, timeout=_IMPORT_SECONDS, check=False)
    return done.returncode == 0
