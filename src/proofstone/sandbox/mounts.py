"""Sockets that programs of this machine listen on, by path: a network namespace of its own does not keep a check from
them.

A HOME of a program's own: a folder that is none of the person's, with those of the person's in it that it shares.

What is shared is the very thing, never a copy. What of it decides the next start is read-only where mounts can be had,
and watched by `startup.py`. Toolchains stay where the person has them: their variables name the real HOME.

What stands in a work tree only while something runs there: mount points, links to dependencies, included files.

A check's checkout is thrown away with all of them; an executor's work tree is kept and frozen afterwards, and must
then hold nothing that the engine put there. Whoever works there may have turned any folder into a link, so nothing
is ever made or removed through one.

What is mounted where, as the kernel tells it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from proofstone.machine.files import remove
from proofstone.sandbox.job import OwnHome, View
from proofstone.sandbox.login_copies import covers
from proofstone.sandbox.login_guard import ways_to_kept

_TABLE = Path("/proc/net/unix")


def open_sockets(root: Path, hidden: Sequence[Path], declared: Sequence[Path]) -> list[Path]:
    """The sockets that a check of the repository at `root` could reach by path. `hidden` are folders that it does not
    see; `declared` are the sockets, or folders of them, that it may use."""
    try:
        lines = os.fsdecode(_TABLE.read_bytes()).splitlines()[1:]
    except OSError:
        return []  # no such table: nothing can be known, and `proofstone prove` tries it
    named = {(cells[6], cells[7]) for line in lines if len(cells := line.split(maxsplit=7)) == 8}
    paths = {path for inode, name in named if not name.startswith("@") for path in _places(name, inode, root)}
    return sorted(path for path in paths if _is_socket(path) and not _below(path, (*hidden, *declared)))


def _places(name: str, inode: str, root: Path) -> list[Path]:
    """Where a socket of that name may lie. The kernel keeps a name as it was given: one that is relative is looked for
    where its owners stand, and around the repository."""
    if name.startswith("/"):
        return [Path(name)]
    return [folder / name for folder in (*_owners_folders(inode), root, *root.parents)]


def _owners_folders(inode: str) -> list[Path]:
    """The working directories of the processes that hold the socket."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            held = process.name.isdigit() and any(
                fd.readlink().name == f"socket:[{inode}]" for fd in (process / "fd").iterdir()
            )
            found += [(process / "cwd").readlink()] if held else []
        except OSError:
            continue  # it has ended, or is another user's
    return found


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False  # gone, or in a place that nobody here sees


def _below(path: Path, folders: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(folder.resolve()) for folder in folders)


HOME_INSIDE = Path("/run/proofstone/home")
"""Where it is, for a program in a mount namespace."""

# Variable → folder below HOME that it stands for when it is not set. GOMODCACHE follows GOPATH.
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
_TOOLS = (
    ".cabal", ".deno", ".dotnet", ".gem", ".bundle", ".ghcup", ".ivy2", ".julia", ".m2", ".npm", ".nuget", ".opam",
    ".pnpm-store", ".pub-cache", ".sbt", ".yarn", ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx",
    ".local/share/pnpm", ".local/share/uv", ".local/share/virtualenvs", ".cache/bazel", ".cache/coursier",
    ".cache/go-build", ".cache/node", ".cache/pip", ".cache/pnpm", ".cache/pre-commit", ".cache/yarn",
)  # fmt: skip
"""Below HOME, beside the toolchains: what projects are built with."""
_ELSEWHERE = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""They would lead a program past its HOME."""


def at_home(variables: Mapping[str, str], home: Path, persons: Path | None) -> dict[str, str]:
    """The variables of a program whose HOME is `home`, while the person's stays where it is."""
    toolchains = {name: persons / folder for name, folder in _TOOLCHAINS.items()} if persons else {}
    found = {name: str(folder) for name, folder in toolchains.items() if folder.is_dir()}
    return found | {name: value for name, value in variables.items() if name not in _ELSEWHERE} | {"HOME": str(home)}


def tools_in(home: Path, needed: Iterable[Path]) -> list[Path]:
    """What a program sees of the person's HOME: toolchains, caches of packages, and what it is known to need. Letters,
    histories, other programs' settings are none of that, and this one has a way out."""
    named = [home / name for name in (*_TOOLCHAINS.values(), *_TOOLS) if name != _TOOLCHAINS["PYTHONUSERBASE"]]
    inside = [path for path in needed if path.is_relative_to(home) and path != home]
    return sorted({path for path in (*named, *inside) if path.is_dir()}, key=lambda path: len(path.parts))


def shared(own: OwnHome) -> list[tuple[Path, str]]:
    """What is there to be shared, the outermost first. What the person does not have is not made for them."""
    return sorted((pair for pair in own.shared if pair[0].exists()), key=lambda pair: len(Path(pair[1]).parts))


def home_mounts(own: OwnHome, root: Path, nothing: Path) -> list[str]:
    """The words for bubblewrap. A folder on the way to something that is kept is mounted on itself: nobody can move a
    mount point away to put another folder in its place."""
    command = ["--bind", str(own.folder), str(HOME_INSIDE)]
    for source, path in shared(own):
        command += ["--bind", str(source), str(HOME_INSIDE / path)]
    for cover, at in covers(own, own.folder.with_name(f"{own.folder.name}.covers")):
        command += ["--bind", str(cover), str(HOME_INSIDE / at)]
    ways = [way for way in ways_to_kept(own) if way.top.exists()]
    for folder, at in sorted({(folder, way.inside(folder)) for way in ways for folder in way.folders}):
        command += ["--bind", str(folder), str(HOME_INSIDE / at)]
    for way in ways:
        if way.is_mountable:
            command += ["--ro-bind", str(way.path), str(HOME_INSIDE / way.inside(way.path))]
    for at in _sockets(own, root):
        command += ["--ro-bind", str(nothing), str(HOME_INSIDE / at)]
    return command


def _sockets(own: OwnHome, root: Path) -> list[Path]:
    """Where programs of the machine listen inside what is shared: none of that is for whoever runs here."""
    listening = [path.resolve() for path in open_sockets(root, (), ())]
    places = [(source.resolve(), path) for source, path in shared(own)]
    return [Path(at) / path.relative_to(top) for path in listening for top, at in places if path.is_relative_to(top)]


@contextmanager
def linked_home(own: OwnHome) -> Iterator[None]:
    """Where there are no mounts: what is shared stands there as links, for as long as the block lasts."""
    inner = {path for _, path in shared(own) for _, other in shared(own) if Path(other) in Path(path).parents}
    places = [(source.absolute(), own.folder / path) for source, path in shared(own) if path not in inner]
    for source, at in places:
        _clear(own.folder, at)
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(source)
    try:
        yield
    finally:
        for _, at in places:
            _clear(own.folder, at)


def _clear(folder: Path, at: Path) -> None:
    """Nothing is made or removed through a link that a program has put on the way: the link itself goes."""
    place = folder
    for part in at.relative_to(folder).parts:
        place /= part
        if place.is_symlink() or place.is_file():
            place.unlink()
    if at.is_dir():
        remove(at)


@contextmanager
def mount_points(view: View) -> Iterator[None]:
    """The sandbox makes a file or folder wherever it mounts something: those are removed again."""
    seen_at = (*view.dependencies, *(bind.at for bind in view.includes), *view.sockets)
    with _guests(view, [*seen_at, *(path.resolve() for path in view.masked)]):
        yield


@contextmanager
def linked(view: View) -> Iterator[None]:
    """Dependencies as links and included files as copies, where the work tree has nothing of that name."""
    with _guests(view, [*view.dependencies, *(bind.at for bind in view.includes)]) as absent:
        for folder in view.dependencies:
            if at := _made_room(view, folder, absent):
                at.symlink_to(folder)
        for bind in view.includes:
            if at := _made_room(view, bind.at, absent):
                shutil.copyfile(bind.source, at)
        yield


@contextmanager
def _guests(view: View, paths: list[Path]) -> Iterator[frozenset[Path]]:
    """Yields those of `paths` that the work tree does not have, and sees to it that it does not have them later."""
    inside = [path for path in paths if path.is_relative_to(view.root) and path != view.root]
    for path in inside:
        _forget_link(view, path)
    absent = frozenset(path for path in inside if not os.path.lexists(_there(view, path)))
    folders = {folder for path in absent for folder in _missing_parents(view, path)}
    try:
        yield absent
    finally:
        for path in absent:
            _guests_clear(view, _there(view, path))
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            if _is_own(view, folder) and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _work_tree(view: View) -> Path:
    if view.work_tree is None:
        raise AssertionError("only a work tree has guests")
    return view.work_tree


def _there(view: View, path: Path) -> Path:
    """Where a path of the repository is in the work tree."""
    return _work_tree(view) / path.relative_to(view.root)


def _forget_link(view: View, path: Path) -> None:
    """A link that an interrupted run left behind."""
    at = _there(view, path)
    if _is_own(view, at) and at.is_symlink() and at.readlink() == path:
        at.unlink()


def _missing_parents(view: View, path: Path) -> Iterator[Path]:
    at = _there(view, path).parent
    while at != _work_tree(view) and not os.path.lexists(at):
        yield at
        at = at.parent


def _made_room(view: View, path: Path, absent: frozenset[Path]) -> Path | None:
    """Where a guest goes, with the folders above it; None where there is no room for one."""
    at = _there(view, path) if path in absent else None
    if at is None or not _is_own(view, at) or any(above.is_file() for above in at.parents):
        return None
    at.parent.mkdir(parents=True, exist_ok=True)
    return at


def _is_own(view: View, path: Path) -> bool:
    """Whether the path is in the work tree without a link on the way."""
    top = _work_tree(view)
    return Path(os.path.realpath(path.parent)) == Path(os.path.realpath(top)) / path.parent.relative_to(top)


def _guests_clear(view: View, path: Path) -> None:
    if not os.path.lexists(path) or not _is_own(view, path):
        return
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink()


_MOUNTS_TABLE: Final = Path("/proc/self/mountinfo")
_ESCAPES: Final = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def mount_table() -> str | None:
    """The kernel's own table; None where there is no such thing."""
    return _MOUNTS_TABLE.read_text(encoding="utf-8", errors="surrogateescape") if _MOUNTS_TABLE.exists() else None


def mounts(mountinfo: str) -> list[tuple[Path, str]]:
    """Each mount point and its type, in the order of mounting: a later one covers an earlier one on the same point."""
    found = []
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if separator and len(fields) >= 5:
            found.append((Path(_unescaped(fields[4])), right.split(" ")[0]))
    return found


def _unescaped(text: str) -> str:
    for code, character in _ESCAPES:
        text = text.replace(code, character)
    return text
