"""Held-out checks (L9): commands, and files for them, that the author of a change is never shown.

What they consist of exists in the sandbox of the held-out check alone. Their folder is laid over the tree there; the
folder itself, scripts that the commands name, and a plan in which they stand are masked in every other sandbox, where
the code under test could read them. Bubblewrap masks; the weaker levels cannot.

What they print is for a person: reports, rows of the ledger and the feedback to an agent say pass or fail. The output
is kept as an artifact.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from proofstone.check.models import CheckKind, CheckResult, CheckSpec
from proofstone.errors import InputError
from proofstone.git.repository import Repository
from proofstone.git.user_hooks import is_ignored

HELD_OUT_COMMAND: Final = "(held out)"
_MAX_BYTES: Final = 64 << 20
_MACHINE_FOLDERS: Final = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/dev", "/proc")))


def build_held_out_specs(commands: Sequence[str]) -> tuple[CheckSpec, ...]:
    """Return one check for each held-out command."""
    return tuple(
        CheckSpec(
            name="held-out" if len(commands) == 1 else f"held-out-{number}",
            kind=CheckKind.HELD_OUT,
            tier=2,
            tool="sh",
            shell=command,
        )
        for number, command in enumerate(commands, start=1)
    )


def hide_held_out_output(result: CheckResult) -> CheckResult:
    """Return the result without what a reader of the ledger could learn from it about a held-out check: its command,
    its output and its exit code. Other results are returned as they are."""
    if result.kind is not CheckKind.HELD_OUT:
        return result
    hidden = {"command": HELD_OUT_COMMAND, "output": "", "exit_code": None}
    return result.model_copy(update={**hidden, "reason": "" if result.reason == "" else "see its artifact"})


def find_held_out_paths(
    repository: Repository, commands: Iterable[str], files: Path | None, variables: Mapping[str, str]
) -> tuple[Path, ...]:
    """Return the folder of held-out files, and the files and folders that the commands name. Programs and what belongs
    to the machine are none: other checks need them. Raise an InputError if the folder is part of the tree to check,
    which every check sees."""
    if files is not None:
        _refuse_shown(repository, files.resolve())
    named = (path for command in commands for path in _list_named(command, repository.root, variables))
    return tuple(dict.fromkeys((*((files.resolve(),) if files else ()), *named)))


def _refuse_shown(repository: Repository, folder: Path) -> None:
    root = repository.root
    if root == folder or root.is_relative_to(folder):
        raise InputError(
            f"--heldout-files {folder}: the repository lies in it",
            hint="name a folder outside of the repository with nothing but the held-out files",
        )
    if folder.is_relative_to(root) and not is_ignored(repository, folder):
        raise InputError(
            f"--heldout-files {folder}: it is part of the tree to check, so its author and every check can read it",
            hint="keep held-out files outside of the repository",
        )


def _list_named(command: str, root: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the paths outside of the repository that the words of a command name."""
    try:
        words = shlex.split(command, comments=False)
    except ValueError:  # an open quotation mark, which the shell will refuse too
        words = command.split()
    home = variables.get("HOME", "")
    programs = {Path(folder).resolve() for folder in variables.get("PATH", "").split(os.pathsep) if folder}
    for word in (part for argument in words for part in argument.split("=")):
        expanded = word.replace("${HOME}", home).replace("$HOME", home)
        expanded = home + expanded[1:] if expanded == "~" or expanded.startswith("~/") else expanded
        if "/" not in expanded or "\0" in expanded:
            continue
        path = (root / expanded).resolve()
        if path.exists() and not _is_needed(path, root, programs, home):
            yield path


def _is_needed(path: Path, root: Path, programs: set[Path], home: str) -> bool:
    """Return whether other checks need the path: the tree, programs, an environment, and whatever contains them."""
    needed = (root, *programs, *((Path(home).resolve(),) if home else ()))
    return (
        path.is_relative_to(root)
        or any(other.is_relative_to(path) for other in needed)
        or any(path.is_relative_to(folder) for folder in (*_MACHINE_FOLDERS, *programs))
        or any((folder / "pyvenv.cfg").is_file() for folder in (path, *path.parents))
    )


def read_held_out_files(folder: Path | None) -> dict[str, bytes]:
    """Read the files of the folder; the keys are their paths in the tree."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise InputError(f"--heldout-files {folder}: not a directory", hint="name a folder with the files they need")
    files: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        size += len(content)
        if size > _MAX_BYTES:
            raise InputError(f"--heldout-files {folder}: more than {_MAX_BYTES >> 20} MiB")
        files[os.fspath(path.relative_to(folder))] = content
    return files


def write_layer(files: Mapping[str, bytes], folder: Path) -> Path:
    """Write the files into a folder and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
