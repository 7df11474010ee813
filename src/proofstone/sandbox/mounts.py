"""What a sandboxed program sees of the file system: sockets, its HOME, and temporary entries in its work tree.

*Sockets.* A network namespace does not keep a check from sockets that it can reach by path, so they are found here and
hidden.

*HOME.* A program can have a private HOME, in which some of the user's files are shared. They are shared directly, never
as copies. Those that decide the program's next start are read-only where mounts are available, and `login_guard.py`
watches them. Toolchains stay where the user has them: variables point to the real HOME.

*Temporary entries* exist in a work tree only while something runs there: mount points, links to dependencies, included
files. A check's checkout is discarded with them. An executor's work tree is kept and frozen afterwards, and must then
contain nothing that the engine put there. The executor may have replaced any folder by a link, so nothing is ever
created or removed through a link.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import PrivateHome, SandboxView
from proofstone.sandbox.login_copies import create_covers
from proofstone.sandbox.login_guard import find_protected_paths

_SOCKET_TABLE = Path("/proc/net/unix")


def find_open_sockets(root: Path, hidden: Sequence[Path], declared: Sequence[Path]) -> list[Path]:
    """Return the sockets that a check of the repository at `root` could reach by path.

    `hidden` are folders that the check does not see; `declared` are sockets, or folders of sockets, that it may use.
    """
    try:
        lines = os.fsdecode(_SOCKET_TABLE.read_bytes()).splitlines()[1:]
    except OSError:
        return []  # there is no such table, so nothing is known; `proofstone prove` tries it
    entries = {(cells[6], cells[7]) for line in lines if len(cells := line.split(maxsplit=7)) == 8}
    paths = {
        path for inode, name in entries if not name.startswith("@") for path in _candidate_paths(name, inode, root)
    }
    return sorted(path for path in paths if _is_socket(path) and not _is_below(path, (*hidden, *declared)))


def _candidate_paths(name: str, inode: str, root: Path) -> list[Path]:
    """Return the paths where a socket of that name may be.

    The kernel stores a name as it was given. A relative name is searched for in the working directories of the socket's
    owners, and around the repository.
    """
    if name.startswith("/"):
        return [Path(name)]
    return [folder / name for folder in (*_find_owners_folders(inode), root, *root.parents)]


def _find_owners_folders(inode: str) -> list[Path]:
    """Return the working directories of the processes that hold the socket."""
    folders = []
    for process in Path("/proc").iterdir():
        try:
            is_owner = process.name.isdigit() and any(
                fd.readlink().name == f"socket:[{inode}]" for fd in (process / "fd").iterdir()
            )
            folders += [(process / "cwd").readlink()] if is_owner else []
        except OSError:
            continue  # the process has ended, or belongs to another user
    return folders


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False  # the socket is gone, or not visible here


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(folder.resolve()) for folder in folders)


PRIVATE_HOME = Path("/run/proofstone/home")
"""The path of the private HOME, for a program in a mount namespace."""

# Variable → the folder below HOME that it stands for when it is not set. GOMODCACHE follows GOPATH.
_TOOLCHAINS: Mapping[str, str] = {
    "ASDF_DATA_DIR": ".asdf",
    "BUN_INSTALL": ".bun",
    "CARGO_HOME": ".cargo",
    "FNM_DIR": ".local/share/fnm",
    "GOPATH": "go",
    "GRADLE_USER_HOME": ".gradle",
    "MISE_DATA_DIR": ".local/share/mise",
    "NVM_DIR": ".nvm",
    "PLAYWRIGHT_BROWSERS_PATH": ".cache/ms-playwright",
    "PYENV_ROOT": ".pyenv",
    "PYTHONUSERBASE": ".local",
    "RBENV_ROOT": ".rbenv",
    "RUSTUP_HOME": ".rustup",
    "SDKMAN_DIR": ".sdkman",
    "STACK_ROOT": ".stack",
    "UV_CACHE_DIR": ".cache/uv",
    "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python",
    "VOLTA_HOME": ".volta",
}
_TOOL_FOLDERS = (
    ".cabal", ".deno", ".dotnet", ".gem", ".bundle", ".ghcup", ".ivy2", ".julia", ".m2", ".npm", ".nuget", ".opam",
    ".pnpm-store", ".pub-cache", ".sbt", ".yarn", ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx",
    ".local/share/pnpm", ".local/share/uv", ".local/share/virtualenvs", ".cache/bazel", ".cache/coursier",
    ".cache/go-build", ".cache/node", ".cache/pip", ".cache/pnpm", ".cache/pre-commit", ".cache/yarn",
)  # fmt: skip
"""Folders below HOME, in addition to toolchains, that projects are built with."""
_XDG_VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Variables that would lead a program past its HOME."""


def build_home_variables(variables: Mapping[str, str], home: Path, user_home: Path | None) -> dict[str, str]:
    """Return the variables of a program whose HOME is `home`, with the toolchains of the user's own HOME."""
    toolchains = {name: user_home / folder for name, folder in _TOOLCHAINS.items()} if user_home else {}
    toolchain_variables = {name: str(folder) for name, folder in toolchains.items() if folder.is_dir()}
    return (
        toolchain_variables
        | {name: value for name, value in variables.items() if name not in _XDG_VARIABLES}
        | {"HOME": str(home)}
    )


def find_tool_folders(home: Path, needed: Iterable[Path]) -> list[Path]:
    """Return the folders of the user's HOME that a program sees: toolchains, package caches, and what it is known to
    need.

    Mail, histories and other programs' settings are not among them, because this program has network access.
    """
    known = [home / name for name in (*_TOOLCHAINS.values(), *_TOOL_FOLDERS) if name != _TOOLCHAINS["PYTHONUSERBASE"]]
    inside = [path for path in needed if path.is_relative_to(home) and path != home]
    return sorted({path for path in (*known, *inside) if path.is_dir()}, key=lambda path: len(path.parts))


def list_shared(own: PrivateHome) -> list[tuple[Path, str]]:
    """Return the shared files that exist, the outermost first. What the user does not have is not created."""
    return sorted((pair for pair in own.shared if pair[0].exists()), key=lambda pair: len(Path(pair[1]).parts))


def build_home_mounts(own: PrivateHome, root: Path, nothing: Path) -> list[str]:
    """Return the bubblewrap options for a private HOME.

    A folder on the path to a protected file is mounted on itself: nobody can move a mount point away and put another
    folder in its place.
    """
    command = ["--bind", str(own.folder), str(PRIVATE_HOME)]
    for source, path in list_shared(own):
        command += ["--bind", str(source), str(PRIVATE_HOME / path)]
    for cover, at in create_covers(own, own.folder.with_name(f"{own.folder.name}.covers")):
        command += ["--bind", str(cover), str(PRIVATE_HOME / at)]
    protected_paths = [protected for protected in find_protected_paths(own) if protected.top.exists()]
    for folder, at in sorted(
        {(folder, protected.path_in_home(folder)) for protected in protected_paths for folder in protected.folders}
    ):
        command += ["--bind", str(folder), str(PRIVATE_HOME / at)]
    for protected in protected_paths:
        if protected.is_mountable:
            command += ["--ro-bind", str(protected.path), str(PRIVATE_HOME / protected.path_in_home(protected.path))]
    for at in _find_shared_sockets(own, root):
        command += ["--ro-bind", str(nothing), str(PRIVATE_HOME / at)]
    return command


def _find_shared_sockets(private_home: PrivateHome, root: Path) -> list[Path]:
    """Return the paths, in the private HOME, of shared sockets on which programs of the machine listen: they are
    hidden.
    """
    sockets = [path.resolve() for path in find_open_sockets(root, (), ())]
    shared_folders = [(source.resolve(), path) for source, path in list_shared(private_home)]
    return [
        Path(at) / path.relative_to(top) for path in sockets for top, at in shared_folders if path.is_relative_to(top)
    ]


@contextmanager
def link_home(own: PrivateHome) -> Iterator[None]:
    """Provide the shared files as links while the block runs, where mounts are not available."""
    nested = {
        path for _, path in list_shared(own) for _, other in list_shared(own) if Path(other) in Path(path).parents
    }
    links = [(source.absolute(), own.folder / path) for source, path in list_shared(own) if path not in nested]
    for source, at in links:
        _clear_path(own.folder, at)
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(source)
    try:
        yield
    finally:
        for _, at in links:
            _clear_path(own.folder, at)


def _clear_path(folder: Path, at: Path) -> None:
    """Remove what is at the path. A link on the way is removed itself: nothing is removed through it."""
    current = folder
    for part in at.relative_to(folder).parts:
        current /= part
        if current.is_symlink() or current.is_file():
            current.unlink()
    if at.is_dir():
        remove_folder(at)


@contextmanager
def remove_mount_points(view: SandboxView) -> Iterator[None]:
    """Remove the mount points afterwards: the sandbox creates a file or folder wherever it mounts something."""
    targets = (*view.dependencies, *(bind.at for bind in view.includes), *view.sockets)
    with _temporary_entries(view, [*targets, *(path.resolve() for path in view.masked)]):
        yield


@contextmanager
def link_dependencies(view: SandboxView) -> Iterator[None]:
    """Provide dependencies as links and included files as copies, where the work tree has nothing of that name."""
    with _temporary_entries(view, [*view.dependencies, *(bind.at for bind in view.includes)]) as absent:
        for folder in view.dependencies:
            if at := _make_room(view, folder, absent):
                at.symlink_to(folder)
        for bind in view.includes:
            if at := _make_room(view, bind.at, absent):
                shutil.copyfile(bind.source, at)
        yield


@contextmanager
def _temporary_entries(view: SandboxView, paths: list[Path]) -> Iterator[frozenset[Path]]:
    """Yield those of `paths` that the work tree does not have, and remove them afterwards."""
    inside = [path for path in paths if path.is_relative_to(view.root) and path != view.root]
    for path in inside:
        _remove_stale_link(view, path)
    missing = frozenset(path for path in inside if not os.path.lexists(_path_in_work_tree(view, path)))
    folders = {folder for path in missing for folder in _find_missing_parents(view, path)}
    try:
        yield missing
    finally:
        for path in missing:
            _clear_entry(view, _path_in_work_tree(view, path))
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            if _is_own(view, folder) and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _work_tree(view: SandboxView) -> Path:
    if view.work_tree is None:
        raise AssertionError("only a work tree has temporary entries")
    return view.work_tree


def _path_in_work_tree(view: SandboxView, path: Path) -> Path:
    """Return where a path of the repository is in the work tree."""
    return _work_tree(view) / path.relative_to(view.root)


def _remove_stale_link(view: SandboxView, path: Path) -> None:
    """Remove a link that an interrupted run left behind."""
    at = _path_in_work_tree(view, path)
    if _is_own(view, at) and at.is_symlink() and at.readlink() == path:
        at.unlink()


def _find_missing_parents(view: SandboxView, path: Path) -> Iterator[Path]:
    at = _path_in_work_tree(view, path).parent
    while at != _work_tree(view) and not os.path.lexists(at):
        yield at
        at = at.parent


def _make_room(view: SandboxView, path: Path, absent: frozenset[Path]) -> Path | None:
    """Return the path for a temporary entry, after creating the folders above it; None if there is no room for one."""
    at = _path_in_work_tree(view, path) if path in absent else None
    if at is None or not _is_own(view, at) or any(above.is_file() for above in at.parents):
        return None
    at.parent.mkdir(parents=True, exist_ok=True)
    return at


def _is_own(view: SandboxView, path: Path) -> bool:
    """Return whether the path is in the work tree without a link on the way."""
    top = _work_tree(view)
    return Path(os.path.realpath(path.parent)) == Path(os.path.realpath(top)) / path.parent.relative_to(top)


def _clear_entry(view: SandboxView, path: Path) -> None:
    if not os.path.lexists(path) or not _is_own(view, path):
        return
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink()


_MOUNT_TABLE: Final = Path("/proc/self/mountinfo")
_ESCAPES: Final = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def read_mount_table() -> str | None:
    """Return the kernel's mount table, or None if there is none."""
    return _MOUNT_TABLE.read_text(encoding="utf-8", errors="surrogateescape") if _MOUNT_TABLE.exists() else None


def parse_mounts(mountinfo: str) -> list[tuple[Path, str]]:
    """Return each mount point and its type, in the order of mounting: a later mount covers an earlier one at the same
    point.
    """
    result = []
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if separator and len(fields) >= 5:
            result.append((Path(_unescape(fields[4])), right.split(" ")[0]))
    return result


def _unescape(text: str) -> str:
    for code, character in _ESCAPES:
        text = text.replace(code, character)
    return text
