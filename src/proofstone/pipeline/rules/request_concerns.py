"""What the engine has to say about a request before any agent works on it, in every lane. Pure: no model is asked.

| what is seen                                                                         | severity |
|--------------------------------------------------------------------------------------|----------|
| the request has fewer than MIN_WORDS words                                           | major    |
| it asks to drop or weaken a check                                                    | major    |
| the lane is for documentation, and a file that it names is none                      | major    |
| it names a file that the repository does not have, and does not say that it is new   | minor    |
| it lists more than MAX_ITEMS things                                                  | minor    |

A person at work decides about them; a run on its own records them and goes on. None of them is a blocker, because each
may be meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from proofstone.agents.memory.rules.lessons import explain_weakening
from proofstone.agents.roles.models.pipeline import Concern
from proofstone.common.models import Lane, Severity
from proofstone.common.risk import is_docs_only

MIN_WORDS: Final = 3
MAX_ITEMS: Final = 12
_PATH: Final = re.compile(r"(?<![\w/.:@-])(?:[\w.-]+/)+[\w-]+\.\w{1,8}\b(?!/)")
_NEW: Final = re.compile(r"\b(?:new|add|adds|create|creates|introduce|write|generate|rename|move)\b", re.IGNORECASE)
_ITEM: Final = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+\S", re.MULTILINE)


def find_request_concerns(
    request: str, files: Sequence[str], lane: Lane, exists: Callable[[str], bool]
) -> tuple[Concern, ...]:
    """Return the concerns about a request. `exists` tells whether the base has a path."""
    return tuple(_concerns(request, files, lane, exists))


def _concerns(request: str, files: Sequence[str], lane: Lane, exists: Callable[[str], bool]) -> Iterator[Concern]:
    if len(request.split()) < MIN_WORDS:
        yield Concern(
            severity=Severity.MAJOR,
            concern=f"the request says only {' '.join(request.split())!r}, so the agents must guess what is wanted",
            suggestion="say what should be different afterwards, and how it can be seen",
        )
    if reason := explain_weakening(request):
        yield Concern(
            severity=Severity.MAJOR,
            concern=f"the request seems to ask for a weaker check: {reason}",
            suggestion="say which check is wrong and why: Proofstone keeps the tests and settings of the base",
        )
    if lane is Lane.DOCS and files and not is_docs_only(tuple(files)):
        yield Concern(
            severity=Severity.MAJOR,
            concern=f"the lane is for documentation, and {', '.join(files)} is not only documentation",
            suggestion="leave --lane out: the files decide",
        )
    missing = [path for path in dict.fromkeys((*files, *_PATH.findall(request))) if not exists(path)]
    if missing and not _NEW.search(request):
        yield Concern(
            severity=Severity.MINOR,
            concern=f"the repository does not have {', '.join(missing[:5])}",
            suggestion="correct the path, or say that the file is new",
        )
    if (items := len(_ITEM.findall(request))) > MAX_ITEMS:
        yield Concern(
            severity=Severity.MINOR,
            concern=f"the request lists {items} things, and they become one commit or none",
            suggestion="split it into several runs",
        )
