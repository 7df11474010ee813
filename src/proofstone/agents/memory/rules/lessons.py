"""What the keeper of knowledge hands over at the end of a run, sorted. Pure; ids and times are the engine's.

| lesson                                   | what becomes of it                                    |
|------------------------------------------|-------------------------------------------------------|
| it weakens a check (WEAKENING)           | nothing: it is named, with the reason                 |
| for the memory                           | an entry, told to planners of something like it       |
| for a file that agents are told by       | a proposal: a person puts it into the file, or leaves |

A lesson is an agent's word. It blocks nothing: tags that would are taken off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from proofstone.agents.memory.models import CLASS, TARGET, TOOL, MemoryEntry, MemoryType
from proofstone.agents.roles.models.pipeline import KnowledgeOutput, Lesson

ROLE: Final = "knowledge"
_BINDING: Final = (TOOL, TARGET, CLASS)

_LET_GO: Final = (
    r"(?:skip\w*|disabl\w+|bypass\w*|ignor\w+|silenc\w+|suppress\w*|remov\w+|delet\w+|turn(?:ing)? off|omit\w*|"
    r"weaken\w*|loosen\w*|relax\w*)"
)
_GUARD: Final = (
    r"(?:tests?|checks?|assertions?|verification|validation|reviews?|reviewers?|linters?|lint|hooks?|sandbox\w*|gates?|"
    r"permissions?|authenti\w+|authori\w+|signatures?|scans?|warnings?)"
)
_FORBIDDEN: Final = r"(?<!never )(?<!not )(?<!n't )(?<!avoid )"
"""What a lesson tells not to do, it may name."""
WEAKENING: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE))
    for reason, pattern in (
        ("it lets go of a check", rf"{_FORBIDDEN}\b{_LET_GO}\s+(?:[\w'-]+\s+){{0,3}}{_GUARD}\b"),
        ("it goes around git's hooks", r"--no-(?:verify|gpg-sign)\b"),
        (
            "it turns a verification off",
            r"\bverify\s*=\s*false\b|--insecure\b|\bTLS_REJECT_UNAUTHORIZED|\bchmod\s+777\b",
        ),
        ("it asks for trust instead of a look", r"\b(?:always|blindly|simply|just)\s+(?:trust|approve|accept|merge)\b"),
        ("it tells agents to pass over their rules", r"\bignore\s+(?:all\s+|any\s+)?(?:previous|prior|earlier)\s+\w+"),
    )
)
"""Words that a filter knows. It errs on the safe side: what it refuses is named, and a person can still write it."""


@dataclass(frozen=True)
class Refused:
    lesson: Lesson
    why: str


@dataclass(frozen=True)
class Learnt:
    entries: tuple[MemoryEntry, ...] = ()
    proposals: tuple[Lesson, ...] = ()
    refused: tuple[Refused, ...] = ()


def learnt(output: KnowledgeOutput, run_id: str, at: str) -> Learnt:
    refused = tuple(Refused(update, why) for update in output.updates if (why := weakens_lesson(update)))
    kept = [update for update in output.updates if not any(update is other.lesson for other in refused)]
    remembered = [item for item in kept if item.kind == "memory"]
    entries = tuple(_entry(one, f"{run_id}-k{number:02}", run_id, at) for number, one in enumerate(remembered, start=1))
    return Learnt(entries, tuple(item for item in kept if item.kind == "instructions"), refused)


def weakens_lesson(lesson: Lesson) -> str:
    return weakens(f"{lesson.content}\n{lesson.reason}")


def weakens(text: str) -> str:
    """Why a lesson is not taken over; empty: it weakens nothing that we know of."""
    flat = " ".join(text.split())
    return next((reason for reason, pattern in WEAKENING if pattern.search(flat)), "")


def _entry(lesson: Lesson, id: str, run_id: str, at: str) -> MemoryEntry:
    return MemoryEntry(
        entry_id=id,
        task_id=run_id,
        type=MemoryType.SEMANTIC,
        content=" ".join(lesson.content.split()),
        criteria_met=True,  # advice: it forbids nothing
        timestamp=at,
        tags=tuple(tag for tag in lesson.tags if not tag.startswith(_BINDING)),
        run_id=run_id,
        role=ROLE,
    )
