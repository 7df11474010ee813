"""Merge the ignore and attribute rules of nested files into one list at the root.

Git reads `.gitignore` and `.gitattributes` from the work tree, where an executor can edit them. The rules of the
baseline must apply, so git gets one list that is built from the baseline's files. In such a list the last match wins,
as a deeper file wins over a shallower one: shallow files come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
