"""Rules about whole files: suspicious paths, conflict markers and size.

The path rules find added files that shadow other modules or that run by themselves. They examine only names, so files
in any language count, and unreadable ones too.

Conflict markers and oversized files are reported in any language, but only those that the change itself added.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from proofstone.check.rules.scan_rule import ScanHit
from proofstone.common.models import ChangeKind, Diagnostic

_NEW: Final = frozenset({ChangeKind.ADDED})
_TOUCHED: Final = frozenset({ChangeKind.ADDED, ChangeKind.MODIFIED})

_ROOT = r"^(?:(?:.*/)?(?:src|tests?)/)?"
"""Where imports are looked up first: the repository's root, `src`, and the tests folder."""
_MODULE = r"(?:/__init__\.pyw?|\.pyw?|(?:\.[\w-]+)*\.(?:so|pyd))$"
_FRAMEWORKS = r"(?:pytest|_pytest|pluggy|_pluggy|xdist|sitecustomize|usercustomize|proofstone_\w+)"
_COMMON_WORDS = r"(?:unittest|doctest|coverage)"
"""Frameworks whose names projects legitimately give to folders of their tests."""
# `test` is a module of the standard library too, and a common name for test folders.
_NOT_STANDARD = {"test", "unittest", "doctest"}
_STANDARD = "|".join(sorted(re.escape(name) for name in sys.stdlib_module_names - _NOT_STANDARD))
_SAMPLES = r"(?:fixtures?|__fixtures__|testdata|samples?|examples?|__mocks__|mocks?)/"


@dataclass(frozen=True, slots=True)
class _PathRule:
    name: str
    pattern: re.Pattern[str]
    strict: bool
    detail: str
    fix: str
    kinds: frozenset[ChangeKind] = _NEW


_SHADOWS = "is found before the module of the same name: tests would import this file instead"
_RENAME = "give it another name"
_STARTS = "is run or read when a program starts"
_DECLARE = "keep it out of the repository, or declare it as part of the task"
_DEPENDENCY = "is a dependency in the tree, where it can differ from what was published"
_INSTALL = "change the manifest and let the package manager install it"

_RULES: Final = (
    _PathRule("shadowed-module", re.compile(_ROOT + _FRAMEWORKS + _MODULE), True, _SHADOWS, _RENAME),
    _PathRule("shadowed-module", re.compile(r"^(?:(?:.*/)?src/)?" + _COMMON_WORDS + _MODULE), True, _SHADOWS, _RENAME),
    _PathRule("shadowed-module", re.compile(_ROOT + _COMMON_WORDS + r"\.pyw?$"), True, _SHADOWS, _RENAME),
    _PathRule("shadowed-module", re.compile(_ROOT + f"(?:{_STANDARD})" + _MODULE), False, _SHADOWS, _RENAME),
    _PathRule(
        "bytecode",
        re.compile(r"\.py[co]$|(?:^|/)__pycache__/"),
        True,
        "is compiled code, which runs although nobody can see its source",
        "keep it out of the repository",
        _TOUCHED,
    ),
    # Programs that resolve modules have sample packages among their fixtures; nothing is imported from there.
    _PathRule(
        "dependency-in-tree",
        re.compile(rf"^(?!(?:.*/)?{_SAMPLES})(?:.*/)?(?:node_modules|\.venv|venv|site-packages)/"),
        True,
        _DEPENDENCY,
        _INSTALL,
        _TOUCHED,
    ),
    _PathRule(
        "dependency-in-tree",
        re.compile(r"(?:^|/)(?:node_modules|\.venv|venv|site-packages)/"),
        False,
        _DEPENDENCY,
        _INSTALL,
        _TOUCHED,
    ),
    _PathRule(
        "startup-file",
        re.compile(r"(?:^|/)(?:(?:site|user)customize\.pyw?|\.pythonrc(?:\.py)?)$"),
        True,
        _STARTS,
        _DECLARE,
    ),
    # In other folders, `.pth` files often hold the weights of a model.
    _PathRule(
        "startup-file",
        re.compile(r"^(?:src/)?[^/]+\.pth$|(?:^|/)(?:site|dist)-packages/[^/]+\.pth$"),
        True,
        _STARTS,
        _DECLARE,
    ),
    # Most `.npmrc` files set a registry or pin versions. Rules about their content decide.
    _PathRule("startup-file", re.compile(r"\.pth$|(?:^|/)\.npmrc$"), False, _STARTS, _DECLARE),
)


def scan_path(path: str, kind: ChangeKind) -> list[ScanHit]:
    """Return what the path alone shows: the most serious hit of each rule."""
    hits: dict[str, ScanHit] = {}
    for rule in _RULES:
        if kind in rule.kinds and rule.name not in hits and rule.pattern.search(path):
            hits[rule.name] = ScanHit(rule.name, rule.strict, 0, f"{path} {rule.detail}", rule.fix)
    return list(hits.values())


CONFLICT_CODE = "conflict-marker"
SIZE_CODE = "size"

# Git writes exactly seven characters. The middle line of a conflict has no other text; the outer two have a label,
# except that git itself may leave the label out.
_OURS = re.compile(rb"<{7}(?: .*)?")
_MIDDLE = re.compile(rb"={7}")
_THEIRS = re.compile(rb">{7}(?: .*)?")
_PROSE = (".md", ".markdown", ".rst", ".txt", ".adoc")


def find_conflict_markers(path: str, old: bytes | None, new: bytes) -> tuple[Diagnostic, ...]:
    """Return conflicts in `new` that `old` (None for a new file) did not have."""
    if b"\0" in new[:8192]:
        return ()
    before = Counter(body for _, body in _find_conflicts(path, old or b""))
    diagnostics = []
    for line, body in _find_conflicts(path, new):
        if before[body] > 0:
            before[body] -= 1
            continue
        message = "an unresolved merge conflict starts here; keep one side and delete the three markers"
        diagnostics.append(Diagnostic(path=path, line=line, code=CONFLICT_CODE, message=message))
    return tuple(diagnostics)


def _find_conflicts(path: str, content: bytes) -> Iterator[tuple[int, bytes]]:
    """Return line and text of each `<<<<<<<` … `=======` … `>>>>>>>` in that order, at the start of lines."""
    # In prose a row of equal signs underlines a heading, so the outer markers must have their label.
    needs_label = path.lower().endswith(_PROSE)
    start, middle = 0, False
    lines = content.splitlines()
    for number, line in enumerate(lines, 1):
        if _OURS.fullmatch(line) and (not needs_label or len(line) > 8):
            start, middle = number, False
        elif start and _MIDDLE.fullmatch(line):
            middle = True
        elif start and middle and _THEIRS.fullmatch(line) and (not needs_label or len(line) > 8):
            yield start, b"\n".join(lines[start - 1 : number])
            start, middle = 0, False


def check_size(path: str, old_size: int | None, new_size: int, limit: int) -> tuple[Diagnostic, ...]:
    """Return a diagnostic if a file exceeds the limit and is new (`old_size` None) or has grown."""
    if new_size <= limit or (old_size is not None and new_size <= old_size):
        return ()
    change = "is new" if old_size is None else f"grew from {_format_size(old_size)}"
    size, most = _format_size(new_size), _format_size(limit)
    message = f"{size} and {change}; the limit is {most}: keep it out of git or raise the limit"
    return (Diagnostic(path=path, code=SIZE_CODE, message=message),)


def _format_size(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} GiB"
