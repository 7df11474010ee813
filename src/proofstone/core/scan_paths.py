"""What the name of an added file says: files that stand in the way of others, or run by themselves.

Only names are looked at, so that a file in any language counts, and one that cannot be read too.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Final

from proofstone.contracts.change import ChangeKind
from proofstone.core.scan_lines import Hit

_NEW: Final = frozenset({ChangeKind.ADDED})
_TOUCHED: Final = frozenset({ChangeKind.ADDED, ChangeKind.MODIFIED})

_ROOT = r"^(?:(?:.*/)?(?:src|tests?)/)?"
"""Where imports are looked up first: the repository's root, `src`, and the folder of the tests."""
_MODULE = r"(?:/__init__\.pyw?|\.pyw?|(?:\.[\w-]+)*\.(?:so|pyd))$"
_FRAMEWORKS = r"(?:pytest|_pytest|pluggy|_pluggy|xdist|sitecustomize|usercustomize|proofstone_\w+)"
_COMMON_WORDS = r"(?:unittest|doctest|coverage)"
"""Frameworks whose names honest projects give to folders of their tests."""
# `test` is a module of the standard library too, and the name of every second folder of tests.
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


_SHADOWS = "is found before the module of the same name: tests would import this instead"
_RENAME = "give it another name"
_STARTS = "a file that is run or obeyed when a program starts"
_DECLARE = "keep it out of the repository, or have it declared as part of the task"
_DEPENDENCY = "a dependency in the tree, where it can differ from what was published"
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
        "compiled code, which runs instead of a source that nobody sees",
        "keep it out of the repository",
        _TOUCHED,
    ),
    # Programs that resolve modules keep sample packages among their fixtures; nothing is imported from there.
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
    # Elsewhere a `.pth` is as often the weights of a model.
    _PathRule(
        "startup-file",
        re.compile(r"^(?:src/)?[^/]+\.pth$|(?:^|/)(?:site|dist)-packages/[^/]+\.pth$"),
        True,
        _STARTS,
        _DECLARE,
    ),
    # Most `.npmrc` files set a registry or pin versions. What they say decides, and that is read with their content.
    _PathRule("startup-file", re.compile(r"\.pth$|(?:^|/)\.npmrc$"), False, _STARTS, _DECLARE),
)


def path_hits(path: str, kind: ChangeKind) -> list[Hit]:
    """What a changed path says by itself: for each rule its gravest row."""
    found: dict[str, Hit] = {}
    for rule in _RULES:
        if kind in rule.kinds and rule.name not in found and rule.pattern.search(path):
            found[rule.name] = Hit(rule.name, rule.strict, 0, f"{path} {rule.detail}", rule.fix)
    return list(found.values())
