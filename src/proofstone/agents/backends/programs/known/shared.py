"""What a program is handed so that it asks `scope_hook` before it changes a file.

What LiteLLM says of a provider that failed. The programs that are built on it end with such a line, if with any.

What a stream keeps of what it has read: bounded, however much the program prints.

Rule: the oldest goes first. Of a program that prints without end the beginning is forgotten; it never takes up memory
without end.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from proofstone.agents.backends.programs.lines import shown
from proofstone.agents.backends.programs.preset import Errand
from proofstone.agents.models import Fault, FaultKind


def hook_command() -> str:
    """For the program's shell, inside the sandbox: it knows the files by the variables that name them. The interpreter
    is the real one, not a link in an environment, which need not be there. A hook that breaks down denies: exit code 2,
    with a reason, is how the programs are told so."""
    python = shlex.quote(str(Path(sys.executable).resolve()))
    run = f'{python} -I -S -B "$PROOFSTONE_HOOK" "$PROOFSTONE_GLOBS" "$PROOFSTONE_SCOPE"'
    return f"{run} || {{ echo 'It cannot be told whether this is yours to change.' >&2; exit 2; }}"


def hook_files(errand: Errand) -> dict[str, str]:
    """The rule for patterns goes along as it stands in `proofstone.common.globs`, so that there is no second one."""
    return {
        "PROOFSTONE_HOOK": files("proofstone.agents.backends.programs.known")
        .joinpath("scope_hook.py")
        .read_text("utf-8"),
        "PROOFSTONE_GLOBS": files("proofstone.common").joinpath("globs.py").read_text("utf-8"),
        "PROOFSTONE_SCOPE": json.dumps({"root": str(errand.root), "scope": errand.scope}),
    }


_ERROR = re.compile(r"^litellm\.(?:exceptions\.)?(\w+?)(?:Error)?: (.*)", re.DOTALL)

_KINDS = {
    "Authentication": FaultKind.DENIED,
    "PermissionDenied": FaultKind.DENIED,
    "NotFound": FaultKind.DENIED,
    "BudgetExceeded": FaultKind.DENIED,
    "RateLimit": FaultKind.UNAVAILABLE,
    "InternalServer": FaultKind.UNAVAILABLE,
    "ServiceUnavailable": FaultKind.UNAVAILABLE,
    "BadGateway": FaultKind.UNAVAILABLE,
    "APIConnection": FaultKind.UNAVAILABLE,
    "Timeout": FaultKind.UNAVAILABLE,
    "ContextWindowExceeded": FaultKind.REJECTED,
    "BadRequest": FaultKind.REJECTED,
    "UnprocessableEntity": FaultKind.REJECTED,
    "ContentPolicyViolation": FaultKind.FILTERED,
}


def fault_in(text: str) -> Fault | None:
    """The fault that the text begins with; None: it is no such text."""
    found = _ERROR.match(text.strip())
    if found is None:
        return None
    return Fault(kind=_KINDS.get(found[1], FaultKind.FAILED), why=" ".join(found[0].split())[:1000])


_MOST_CALLS: Final = 1000
_MOST_PATHS: Final = 20
_LONGEST_NAME: Final = 200
"""Characters of the name of a tool, a call, a model."""
_MOST_WORDS: Final = 4 << 20
"""Characters of a text that is not whole yet."""
_EACH: Final = 64
"""What a piece takes up beside its characters."""


def named(text: str) -> str:
    """A name, as long as names are."""
    return text[:_LONGEST_NAME]


def paths_of(*paths: str) -> tuple[str, ...]:
    """Those that are there, none longer than an activity shows."""
    return tuple(shown(path) for path in paths if path)[:_MOST_PATHS]


@dataclass(frozen=True)
class Call:
    """Of a tool: what its result does not tell again."""

    tool: str = ""
    paths: tuple[str, ...] = ()


class Calls:
    """By the ids that the program gives them."""

    def __init__(self) -> None:
        self._kept: dict[str, Call] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, id: str, tool: str, paths: tuple[str, ...]) -> None:
        self._kept.pop(named(id), None)
        self._kept[named(id)] = Call(named(tool), paths)
        if len(self._kept) > _MOST_CALLS:
            del self._kept[next(iter(self._kept))]

    def of(self, id: str) -> Call:
        """An empty one, where it is not known."""
        return self._kept.get(named(id), Call())


class Pieces:
    """What comes in pieces, or lines, until it is whole."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque()
        self._size = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def add(self, piece: str) -> None:
        kept = piece[-_MOST_WORDS:]
        self._kept.append(kept)
        self._size += len(kept) + _EACH
        while self._size > _MOST_WORDS + _EACH:
            self._size -= len(self._kept.popleft()) + _EACH

    def taken(self) -> Iterable[str]:
        """All of them; from here on it is something new."""
        taken, self._kept, self._size = self._kept, deque(), 0
        return taken
