"""What is asked at level 2, and what the answer is worth.

A question comes from the change itself: the lines of a context update, the files that were declared and those that
really changed, the interfaces, the tasks that rest on this one. Which one is asked follows from the cause, and is the
same every time.

| cause                               | category            | the answer must name                                  |
|-------------------------------------|---------------------|-------------------------------------------------------|
| T3, a file of dependencies declared | DEPENDENCY_RISK     | what changed already; one of the declared files       |
| T3, something was added             | SCOPE_BOUNDARY      | the same                                              |
| T3, something was changed, replaced | RIPPLE_TRACE        | the same                                              |
| T3, something was removed           | ASSUMPTION_PROBE    | the same                                              |
| T2 stale documents                  | INTERCONNECTION_MAP | every file that changed                               |
| T4 milestone                        | SCOPE_BOUNDARY      | one of the declared files                             |
| T5 low tool use                     | ASSUMPTION_PROBE    | one of the declared files                             |
| T7 recovery                         | SCOPE_BOUNDARY      | every file that changed                               |
| T1 silence                          | FAILURE_MODE        | every file that changed                               |
| T6 deviation                        | ALTERNATIVE_DEMAND  | every file that changed                               |

Which files is checked by code. Why is judged; if nobody can, the answer is unverifiable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from proofstone.check.rules.file_requests import granted
from proofstone.common.globs import matches, undeclared
from proofstone.common.models import Verdict
from proofstone.supervision.models.context import DeltaLine, Operation
from proofstone.supervision.models.ladder import Category, Cause, Expected, Grade, LaterTask, Question, Trigger
from proofstone.supervision.models.understanding import Item, ItemVerdict
from proofstone.supervision.rules.mentions import Mention, files, interface_changes, names

_STRONGEST_FIRST: Final = (
    Trigger.SCOPE_CHANGE,
    Trigger.DEVIATION,
    Trigger.LOW_TOOL_USE,
    Trigger.RECOVERY,
    Trigger.STALE_DOCS,
    Trigger.SILENCE,
    Trigger.MILESTONE,
)
"""One question speaks for several causes: that for which somebody else waits is asked about first."""
_MANIFESTS: Final = (
    "package.json", "pyproject.toml", "requirements.txt", "Pipfile", "go.mod", "Cargo.toml", "pom.xml", "build.gradle",
    "build.gradle.kts", "Gemfile", "composer.json",
)  # fmt: skip
_SHOWN: Final = 5


@dataclass(frozen=True)
class Subject:
    """An agent's work, as far as questions are made from it."""

    task: str
    """Its title."""
    declared: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Files that really changed since it began."""
    interfaces: tuple[str, ...] = ()
    """Symbols that it changes or relies on."""
    delta: tuple[DeltaLine, ...] = ()
    """What of the context changed for it."""
    affected: tuple[str, ...] = ()
    """The files that this is about; none: nobody has said."""
    later: tuple[LaterTask, ...] = ()


def question_for(causes: Sequence[Cause], about: Subject) -> Question:
    trigger = min((cause.trigger for cause in causes), key=_STRONGEST_FIRST.index)
    return _MADE_FROM[trigger](about)


def grade(question: Question, answer: str, about: Subject, judged: Verdict | None = None) -> Grade:
    """`judged`: what somebody says of the rest of the answer; None: nobody could be asked."""
    named = files(answer, _known(question, about))
    missing = tuple(dict.fromkeys(_missing(question.expected, answer, named)))
    beyond = undeclared((item.path for item in named), about.declared)
    announced = tuple(path for path in beyond if path not in granted(beyond, about.declared))
    return Grade(
        verdict=_verdict(question, answer, missing, judged),
        missing=missing,
        announced=announced,
        changed_approach=bool(announced or interface_changes(answer)),
    )


def challenge(failed: ItemVerdict, about: Subject) -> Question:
    """The question about an item of the impact analysis that does not hold."""
    row = _CHALLENGES[failed.item]
    because = f" ({failed.detail})" if failed.detail else ""
    expected = None
    if failed.item is Item.FILES:
        expected = _files(all_of=tuple(path for path in about.declared if not set("*?") & set(path)))
    elif failed.item is Item.DOWNSTREAM and about.later:
        expected = Expected(what="names", any_of=tuple(task.id for task in about.later))
    return Question(category=row[0], text=f"{row[1]}{because}", expected=expected)


def _verdict(question: Question, answer: str, missing: tuple[str, ...], judged: Verdict | None) -> Verdict:
    if missing or not answer.strip():
        return Verdict.FAIL
    if not question.judged:
        return Verdict.PASS
    return judged if judged is not None else Verdict.UNVERIFIABLE


def _known(question: Question, about: Subject) -> tuple[str, ...]:
    """Paths that an answer may shorten."""
    expected = question.expected
    wanted = (*expected.all_of, *expected.any_of) if expected and expected.what == "files" else ()
    return (*about.declared, *about.changed, *about.affected, *wanted)


def _missing(expected: Expected | None, answer: str, named: Sequence[Mention]) -> Iterator[str]:
    if expected is None:
        return
    paths = [item.path for item in named]

    def is_named(one: str) -> bool:
        if expected.what == "names":
            return names(answer, one)
        return any(matches(one, path) for path in paths)

    yield from (item for item in expected.all_of if not is_named(item))
    if expected.any_of and not any(map(is_named, expected.any_of)):
        yield " or ".join(expected.any_of[:_SHOWN])


def _files(all_of: tuple[str, ...] = (), any_of: tuple[str, ...] = ()) -> Expected | None:
    return Expected(what="files", all_of=all_of, any_of=any_of) if all_of or any_of else None


# By cause


def _scope_change(about: Subject) -> Question:
    operations = {line.operation for line in about.delta}
    concerned = about.affected or about.declared
    if any(path.rpartition("/")[2] in _MANIFESTS for path in concerned):
        category, rest = Category.DEPENDENCY_RISK, "What may a dependency of them break?"
    elif operations & {Operation.CHANGED, Operation.REPLACED}:
        category, rest = (
            Category.RIPPLE_TRACE,
            f"What follows from it for {_listed(about.interfaces) or 'your callers'}?",
        )
    elif operations == {Operation.REMOVED}:
        category, rest = Category.ASSUMPTION_PROBE, "Which of your assumptions rested on it?"
    else:
        category, rest = Category.SCOPE_BOUNDARY, "What of it is yours, and what is not?"
    text = (
        f"How does {_told(about.delta)} change your implementation plan for {_listed(concerned) or about.task}? "
        f"Name every file that you have changed or will touch, and say whether an interface changes. {rest}"
    )
    return Question(category=category, text=text, expected=_files(about.changed, concerned))


def _told(delta: Sequence[DeltaLine]) -> str:
    lines = [f"“{line.text}” ({line.operation}, {line.section})" for line in delta[:_SHOWN]]
    return " and ".join(lines) or "the changed context"


def _stale_docs(about: Subject) -> Question:
    return _about_changed(
        about, Category.INTERCONNECTION_MAP, "since your report was last updated, and how do they hang together?"
    )


def _recovery(about: Subject) -> Question:
    return _about_changed(about, Category.SCOPE_BOUNDARY, "so far, which are still to come, and where do you stop?")


def _silence(about: Subject) -> Question:
    return _about_changed(
        about, Category.FAILURE_MODE, "so far, what held you up, and what fails if you go on like this?"
    )


def _deviation(about: Subject) -> Question:
    return _about_changed(
        about, Category.ALTERNATIVE_DEMAND, "so far, and which other way is there that stays with the declared ones?"
    )


def _about_changed(about: Subject, category: Category, rest: str) -> Question:
    text = f"For {about.task}: which files have you changed {rest}"
    return Question(
        category=category, text=text, expected=_files(about.changed, () if about.changed else about.declared)
    )


def _milestone(about: Subject) -> Question:
    text = f"Your task is now {about.task}. Which files will you touch, and what did the task before it leave for you?"
    return Question(category=Category.SCOPE_BOUNDARY, text=text, expected=_files(any_of=about.declared))


def _low_tool_use(about: Subject) -> Question:
    relied = _listed(about.interfaces) or _listed(about.declared) or about.task
    text = (
        f"You have looked nothing up for {about.task}. What of {relied} do you take for granted, in which file does it "
        "stand, and how do you know?"
    )
    return Question(category=Category.ASSUMPTION_PROBE, text=text, expected=_files(any_of=about.declared))


def _listed(some: Sequence[str]) -> str:
    more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
    return ", ".join(some[:_SHOWN]) + more


_MADE_FROM: Final[Mapping[Trigger, Callable[[Subject], Question]]] = MappingProxyType(
    {
        Trigger.SILENCE: _silence,
        Trigger.STALE_DOCS: _stale_docs,
        Trigger.SCOPE_CHANGE: _scope_change,
        Trigger.MILESTONE: _milestone,
        Trigger.LOW_TOOL_USE: _low_tool_use,
        Trigger.DEVIATION: _deviation,
        Trigger.RECOVERY: _recovery,
    }
)

# By item

_CHALLENGES: Final[Mapping[Item, tuple[Category, str]]] = MappingProxyType(
    {
        Item.TASK: (Category.SCOPE_BOUNDARY, "What exactly is your task, and what is not part of it?"),
        Item.POSITION: (Category.INTERCONNECTION_MAP, "Where in the whole does your task stand: what came before?"),
        Item.UPSTREAM: (Category.DEPENDENCY_RISK, "What does your work rest on, and where does that stand?"),
        Item.FILES: (Category.SCOPE_BOUNDARY, "Which files of your task do you change, every one of them?"),
        Item.INTERFACES: (
            Category.INTERCONNECTION_MAP,
            "How are the interfaces that you name declared, word for word?",
        ),
        Item.OTHER_AGENTS: (Category.INTERCONNECTION_MAP, "Which other agents are affected by your work, and how?"),
        Item.DOWNSTREAM: (Category.RIPPLE_TRACE, "What follows from your work, step by step, and which task is next?"),
        Item.BREAKING: (Category.FAILURE_MODE, "What breaks, and for whom, if you get it wrong?"),
        Item.FACTS: (Category.ASSUMPTION_PROBE, "What you say is not so. How is it, and where did you look?"),
        Item.OMISSIONS: (Category.ALTERNATIVE_DEMAND, "What have you left out, and which other way would need it?"),
    }
)
