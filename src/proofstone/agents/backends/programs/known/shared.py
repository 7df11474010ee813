"""What several presets share: the files of `scope_hook`, LiteLLM's error messages, and bounded buffers.

Programs that are built on LiteLLM end with one of its error messages, if with any. The buffers drop the oldest entries
first: a program that prints without end never takes up memory without end.
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

from proofstone.agents.backends.programs.lines import shorten
from proofstone.agents.backends.programs.preset import LaunchRequest
from proofstone.agents.models import Fault, FaultKind


def build_hook_command() -> str:
    """Return the command line of the hook, for the program's shell inside the sandbox.

    The shell finds the files by the variables that name them. The interpreter is the real one, because a link in a
    virtual environment may not exist there. A hook that fails must deny: exit code 2 with a reason says so to the
    programs.
    """
    python = shlex.quote(str(Path(sys.executable).resolve()))
    run = f'{python} -I -S -B "$PROOFSTONE_HOOK" "$PROOFSTONE_GLOBS" "$PROOFSTONE_SCOPE"'
    return f"{run} || {{ echo 'Could not check whether you may change this file.' >&2; exit 2; }}"


def build_hook_files(errand: LaunchRequest) -> dict[str, str]:
    """Return the files of the hook. It gets the source of `proofstone.common.globs`, so that there is only one rule."""
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


def parse_litellm_fault(text: str) -> Fault | None:
    """Return the fault that the text begins with, or None."""
    match = _ERROR.match(text.strip())
    if match is None:
        return None
    return Fault(kind=_KINDS.get(match[1], FaultKind.FAILED), why=" ".join(match[0].split())[:1000])


_MAX_CALLS: Final = 1000
_MAX_PATHS: Final = 20
_MAX_NAME_CHARS: Final = 200
"""Characters in the name of a tool, a call or a model."""
_MAX_TEXT_CHARS: Final = 4 << 20
"""Characters of a text that is not complete yet."""
_OVERHEAD: Final = 64
"""Memory of a piece in addition to its characters."""


def shorten_name(text: str) -> str:
    """Shorten a name to the longest that is kept."""
    return text[:_MAX_NAME_CHARS]


def shorten_paths(*paths: str) -> tuple[str, ...]:
    """Return the paths that are not empty, each as long as an activity shows."""
    return tuple(shorten(path) for path in paths if path)[:_MAX_PATHS]


@dataclass(frozen=True)
class RecordedCall:
    """What is remembered of a tool call, because its result does not repeat it."""

    tool: str = ""
    paths: tuple[str, ...] = ()


class RecordedCalls:
    """The last tool calls, by the ids that the program gives them."""

    def __init__(self) -> None:
        self._calls: dict[str, RecordedCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, id: str, tool: str, paths: tuple[str, ...]) -> None:
        self._calls.pop(shorten_name(id), None)
        self._calls[shorten_name(id)] = RecordedCall(shorten_name(tool), paths)
        if len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]

    def get(self, id: str) -> RecordedCall:
        """Return the call, or an empty one if the id is unknown."""
        return self._calls.get(shorten_name(id), RecordedCall())


class TextBuffer:
    """Pieces or lines of a text that is not complete yet."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._size = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def add(self, piece: str) -> None:
        piece = piece[-_MAX_TEXT_CHARS:]
        self._pieces.append(piece)
        self._size += len(piece) + _OVERHEAD
        while self._size > _MAX_TEXT_CHARS + _OVERHEAD:
            self._size -= len(self._pieces.popleft()) + _OVERHEAD

    def take_all(self) -> Iterable[str]:
        """Return all pieces, and start anew."""
        pieces, self._pieces, self._size = self._pieces, deque(), 0
        return pieces
