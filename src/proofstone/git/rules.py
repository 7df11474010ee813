"""Merge the ignore and attribute rules of nested files into one list at the root, and recognise files that running a
project leaves behind.

Git reads `.gitignore` and `.gitattributes` from the work tree, where an executor can edit them. The rules of the
baseline must apply, so git gets one list that is built from the baseline's files. In such a list the last match wins,
as a deeper file wins over a shallower one: shallow files come first.

A project without a `.gitignore` has untracked files after its tests were run: bytecode, caches of tools, installed
dependencies. They can be made again from what is tracked, so they are no part of the change. Bytecode counts as such
only in `__pycache__` and beside its source. Elsewhere, or without a source, Python would run it as a module of its own.
A folder in which git tracks a file is part of the project, whatever its name.

Quote settings for a configuration file of git.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

_SPECIAL = frozenset('\\*?[]!# "')


def _escape(directory: str) -> str:
    """Escape a directory's name so that the pattern matches only that name."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in directory)


def _shallow_first(files: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield each rule file as (its directory, its text), shallow files first."""
    for path in sorted(files, key=lambda path: (path.count("/"), path)):
        yield path.rpartition("/")[0], files[path]


def _rebase(pattern: str, directory: str) -> str:
    """Rewrite a pattern of a rule file in `directory` for use at the root."""
    if not directory:
        return pattern
    prefix = f"/{_escape(directory)}"
    is_anchored = "/" in pattern.rstrip("/")
    return f"{prefix}/{pattern.lstrip('/')}" if is_anchored else f"{prefix}/**/{pattern}"


def merge_ignore_rules(files: Mapping[str, str]) -> list[str]:
    """Return one list of ignore patterns for all `.gitignore` files, given by path."""
    rules: list[str] = []
    for directory, text in _shallow_first(files):
        for line in text.removeprefix("\ufeff").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            is_negated = line.startswith("!")
            rules.append("!" * is_negated + _rebase(line[is_negated:], directory))
    return rules


def merge_attribute_rules(files: Mapping[str, str]) -> list[str]:
    """Return one list of attribute lines for all `.gitattributes` files, given by path."""
    rules: list[str] = []
    for directory, text in _shallow_first(files):
        for line in text.removeprefix("\ufeff").splitlines():
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if not directory or line.startswith("[attr]"):
                rules.append(line)
                continue
            pattern, is_quoted, rest = _parse_attribute_line(line)
            rebased = _rebase(pattern, directory)
            written = (
                '"' + rebased.replace("\\", "\\\\").replace('"', '\\"') + '"'
                if is_quoted or _needs_quotes(rebased)
                else rebased
            )
            rules.append(f"{written} {rest}")
    return rules


def _needs_quotes(pattern: str) -> bool:
    return any(char in pattern for char in ' \t"\\')


def _parse_attribute_line(line: str) -> tuple[str, bool, str]:
    """Parse a line of `.gitattributes` into (pattern, whether it was quoted, attributes)."""
    if not line.startswith('"'):
        pattern, *rest = line.split(None, 1)
        return pattern, False, "".join(rest)
    chars: list[str] = []
    at = 1
    while at < len(line) and line[at] != '"':
        at += line[at] == "\\"
        chars.append(line[at : at + 1])
        at += 1
    return "".join(chars), True, line[at + 1 :].strip()


_BYTECODE = re.compile(rb"(?P<folder>(?:.*/)?)__pycache__/(?P<module>[^/.]+)\.[^/]+\.pyc(?:\.\d+)?", re.DOTALL)
LEFTOVER_FOLDERS = frozenset(
    (
        *(b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis", b".tox", b".nox"),
        *(b"node_modules", b".nyc_output"),
    )
)
"""Folders that runners and package managers write, and can write again."""
_ENVIRONMENT = b"pyvenv.cfg"
"""Python writes this file into every virtual environment."""
_LEFTOVER_FILES = re.compile(rb"(?:.*/)?(?:\.coverage(?:\.[\w.-]+\.\d+\.\w+)?|\.DS_Store)", re.DOTALL)


def find_leftovers(untracked: Iterable[bytes], tracked: Collection[bytes]) -> dict[bytes, bytes]:
    """Return the untracked paths that running the project left behind, each with the folder or file to name.

    `tracked` are the paths that the base or the user's index holds. The source of bytecode may be untracked too.
    """
    paths = list(untracked)
    sources = {path for path in (*paths, *tracked) if path.endswith(b".py")}
    tracked_folders = {folder for path in tracked for folder in _list_folders(path)}
    environments = {path.rpartition(b"/")[0] for path in paths if path.endswith(b"/" + _ENVIRONMENT)}
    leftovers: dict[bytes, bytes] = {}
    for path in paths:
        bytecode = _BYTECODE.fullmatch(path)
        folders = [
            name
            for name in _list_folders(path)
            if (name in environments or name.rpartition(b"/")[2] in LEFTOVER_FOLDERS) and name not in tracked_folders
        ]
        if folders:
            leftovers[path] = folders[0]
        elif bytecode and bytecode["folder"] + bytecode["module"] + b".py" in sources:
            leftovers[path] = bytecode["folder"] + b"__pycache__"
        elif _LEFTOVER_FILES.fullmatch(path):
            leftovers[path] = path
    return leftovers


def _list_folders(path: bytes) -> list[bytes]:
    """Return the folders above a path, the outermost first. A path that ends in a slash is a folder itself."""
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def quote_setting(name: str, value: str) -> str:
    """Return the lines of a configuration file that give the setting this value. `name` is as `git config --list` has
    it: only the part between the first and the last point may contain points and other special characters.
    """
    section, _, rest = name.partition(".")
    subsection, _, key = rest.rpartition(".")
    escaped = subsection.replace("\\", "\\\\").replace('"', '\\"')
    head = f'[{section} "{escaped}"]' if subsection else f"[{section}]"
    return f'{head}\n\t{key} = "{value.translate(_ESCAPES)}"\n'


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})
