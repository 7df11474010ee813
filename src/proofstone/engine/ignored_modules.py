"""A module that the tests miss and the work tree has, but ignores: generated files such as `_version.py`.

They are outside the tree, so no check sees them, and the person must say that they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_MISSING = re.compile(r"(?:No module named|cannot import name '\w+' from) '([\w.]+)'")


def ignored_modules(outputs: Iterable[str], root: Path, tracked: frozenset[str]) -> list[str]:
    """Files of the work tree, outside the tree, that would be the modules which `outputs` say are missing."""
    found: list[str] = []
    for name in dict.fromkeys(name for output in outputs for name in _MISSING.findall(output)):
        path = name.replace(".", "/")
        for candidate in (f"{path}.py", f"src/{path}.py", f"{path}/__init__.py", f"src/{path}/__init__.py"):
            if candidate not in tracked and (root / candidate).is_file():
                found.append(candidate)
    return found


def include_note(files: list[str]) -> str:
    listed = ", ".join(f'"{file}"' for file in files)
    return f"checks miss what the work tree has but ignores; if they need it: [environment] include = [{listed}]"
