"""A HOME of a program's own: a folder that is none of the person's, with those of the person's in it that it shares.

What is shared is the very thing, never a copy. What of it decides the next start is read-only where mounts can be had,
and watched by `startup.py`. Toolchains stay where the person has them: their variables name the real HOME.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from proofstone.adapters.sandbox.covers import covers
from proofstone.adapters.sandbox.job import OwnHome
from proofstone.adapters.sandbox.sockets import open_sockets
from proofstone.adapters.sandbox.startup import ways_to_kept
from proofstone.adapters.scratch import remove

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
