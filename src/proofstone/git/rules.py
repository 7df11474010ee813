"""Ignore and attribute rules of nested files, rewritten as one list at the root.

Git reads `.gitignore` and `.gitattributes` from the work tree, where an executor can edit them. The rules that
count are the baseline's, so the engine hands git one list made from the baseline's files. Within such a list the
last match wins, as a deeper file wins over a shallower one: shallow files come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_SPECIAL = frozenset('\\*?[]!# "')


def _literal(directory: str) -> str:
    """A directory's name as a pattern that means just that name."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in directory)


def _shallow_first(files: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Each rule file as (its directory, its text)."""
    for path in sorted(files, key=lambda path: (path.count("/"), path)):
        yield path.rpartition("/")[0], files[path]


def _rebased(pattern: str, directory: str) -> str:
    """`pattern` of a rule file in `directory`, as seen from the root."""
    if not directory:
        return pattern
    at = f"/{_literal(directory)}"
    anchored = "/" in pattern.rstrip("/")
    return f"{at}/{pattern.lstrip('/')}" if anchored else f"{at}/**/{pattern}"


def root_ignore_rules(files: Mapping[str, str]) -> list[str]:
    """One list of ignore patterns for all `.gitignore` files, given by path."""
    rules: list[str] = []
    for directory, text in _shallow_first(files):
        for line in text.removeprefix("\ufeff").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            negated = line.startswith("!")
            rules.append("!" * negated + _rebased(line[negated:], directory))
    return rules


def root_attribute_rules(files: Mapping[str, str]) -> list[str]:
    """One list of attribute lines for all `.gitattributes` files, given by path."""
    rules: list[str] = []
    for directory, text in _shallow_first(files):
        for line in text.removeprefix("\ufeff").splitlines():
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if not directory or line.startswith("[attr]"):
                rules.append(line)
                continue
            pattern, quoted, rest = _attribute_pattern(line)
            rebased = _rebased(pattern, directory)
            shown = (
                '"' + rebased.replace("\\", "\\\\").replace('"', '\\"') + '"' if quoted or _odd(rebased) else rebased
            )
            rules.append(f"{shown} {rest}")
    return rules


def _odd(pattern: str) -> bool:
    return any(char in pattern for char in ' \t"\\')


def _attribute_pattern(line: str) -> tuple[str, bool, str]:
    """A line of `.gitattributes` as (pattern, whether it was quoted, attributes)."""
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
