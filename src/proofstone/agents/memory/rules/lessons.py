"""Sort the lessons that the knowledge role hands over at the end of a run. Pure; the engine gives ids and times.

| lesson                                   | consequence                                            |
|------------------------------------------|--------------------------------------------------------|
| it weakens a check (WEAKENING)           | it is refused and reported with the reason             |
| for the memory                           | an entry, which is shown to planners of similar tasks  |
| for a file that instructs agents         | a proposal: a person decides whether to add it         |

A lesson is only a statement of an agent. It blocks nothing: tags that would block something are removed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from proofstone.agents.memory.models import CLASS_TAG, PROGRAM_TAG, TARGET_TAG, TOOL_TAG, MemoryEntry, MemoryType
from proofstone.agents.roles.models.pipeline import KnowledgeOutput, Lesson

KNOWLEDGE_ROLE: Final = "knowledge"
_BINDING: Final = (TOOL_TAG, TARGET_TAG, PROGRAM_TAG, CLASS_TAG)

_LET_GO: Final = (
    r"(?:skip\w*|disabl\w+|bypass\w*|ignor\w+|silenc\w+|suppress\w*|remov\w+|delet\w+|turn(?:ing)? off|omit\w*|"
    r"weaken\w*|loosen\w*|relax\w*)"
)
_GUARD: Final = (
    r"(?:tests?|checks?|assertions?|verification|validation|reviews?|reviewers?|linters?|lint|hooks?|sandbox\w*|gates?|"
    r"permissions?|authenti\w+|authori\w+|signatures?|scans?|warnings?)"
)
_FORBIDDEN: Final = r"(?<!never )(?<!not )(?<!n't )(?<!avoid )"
"""A lesson may name what it forbids."""
WEAKENING_PATTERNS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE))
    for reason, pattern in (
        ("it drops or weakens a check", rf"{_FORBIDDEN}\b{_LET_GO}\s+(?:[\w'-]+\s+){{0,3}}{_GUARD}\b"),
        ("it bypasses git's hooks", r"--no-(?:verify|gpg-sign)\b"),
        (
            "it turns off a verification",
            r"\bverify\s*=\s*false\b|--insecure\b|\bTLS_REJECT_UNAUTHORIZED|\bchmod\s+777\b",
        ),
        (
            "it asks for trust instead of verification",
            r"\b(?:always|blindly|simply|just)\s+(?:trust|approve|accept|merge)\b",
        ),
        ("it tells agents to ignore their rules", r"\bignore\s+(?:all\s+|any\s+)?(?:previous|prior|earlier)\s+\w+"),
    )
)
"""The filter errs on the safe side: what it refuses is reported, and a person can still add it."""


@dataclass(frozen=True)
class RefusedLesson:
    lesson: Lesson
    why: str


@dataclass(frozen=True)
class SortedLessons:
    entries: tuple[MemoryEntry, ...] = ()
    proposals: tuple[Lesson, ...] = ()
    refused: tuple[RefusedLesson, ...] = ()


def sort_lessons(output: KnowledgeOutput, run_id: str, at: str, request: str = "") -> SortedLessons:
    refused = tuple(
        RefusedLesson(update, why) for update in output.updates if (why := explain_lesson_weakening(update))
    )
    accepted = [update for update in output.updates if not any(update is other.lesson for other in refused)]
    memories = [lesson for lesson in accepted if lesson.kind == "memory"]
    entries = tuple(
        _build_entry(lesson, f"{run_id}-k{number:02}", run_id, request, at)
        for number, lesson in enumerate(memories, start=1)
    )
    return SortedLessons(entries, select_proposals(output), refused)


def select_proposals(output: KnowledgeOutput) -> tuple[Lesson, ...]:
    """Return the lessons for files that instruct agents, without those that weaken a check."""
    return tuple(
        update for update in output.updates if update.kind == "instructions" and not explain_lesson_weakening(update)
    )


def explain_lesson_weakening(lesson: Lesson) -> str:
    return explain_weakening(f"{lesson.content}\n{lesson.reason}")


def explain_weakening(text: str) -> str:
    """Return why a text weakens a check; empty if it weakens none that the filter knows."""
    flat = " ".join(text.split())
    return next((reason for reason, pattern in WEAKENING_PATTERNS if pattern.search(flat)), "")


def _build_entry(lesson: Lesson, id: str, run_id: str, request: str, at: str) -> MemoryEntry:
    return MemoryEntry(
        entry_id=id,
        task_id=run_id,
        type=MemoryType.SEMANTIC,
        content=" ".join(lesson.content.split()),
        criteria_met=True,  # a preference, which forbids nothing
        timestamp=at,
        tags=tuple(tag for tag in lesson.tags if not tag.startswith(_BINDING)),
        run_id=run_id,
        request=request,
        role=KNOWLEDGE_ROLE,
    )
