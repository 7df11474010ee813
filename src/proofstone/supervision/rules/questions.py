"""The questions of level 2, and how their answers are graded.

A question is built from the change itself: the lines of a context update, the declared files and those that really
changed, the interfaces, and the tasks that depend on this one. The cause determines the question, always the same way.

| cause                               | category            | the answer must name                                  |
|-------------------------------------|---------------------|-------------------------------------------------------|
| T3, a dependency file is declared   | DEPENDENCY_RISK     | every changed file, and one of the declared files     |
| T3, something was added             | SCOPE_BOUNDARY      | the same                                              |
| T3, something was changed, replaced | RIPPLE_TRACE        | the same                                              |
| T3, something was removed           | ASSUMPTION_PROBE    | the same                                              |
| T2 stale documents                  | INTERCONNECTION_MAP | every file that changed                               |
| T5 low tool use                     | ASSUMPTION_PROBE    | one of the declared files                             |
| T7 recovery                         | SCOPE_BOUNDARY      | every file that changed                               |
| T1 silence                          | FAILURE_MODE        | every file that changed                               |
| T6 deviation                        | ALTERNATIVE_DEMAND  | every file that changed                               |

Code checks which files the answer names. A judge decides whether the reasons are right; without a judge, the answer is
unverifiable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from proofstone.check.rules.file_requests import grant_files
from proofstone.common.globs import find_undeclared, matches
from proofstone.common.models import Verdict
from proofstone.supervision.models.context import DeltaLine, DeltaOperation
from proofstone.supervision.models.ladder import (
    AnswerGrade,
    Category,
    LaterTask,
    RequiredMentions,
    ReverifyCause,
    ReverifyQuestion,
    ReverifyTrigger,
)
from proofstone.supervision.models.understanding import AnalysisItem, ItemVerdict
from proofstone.supervision.rules.mentions import Mention, find_interface_changes, find_mentioned_files, mentions_symbol

_STRONGEST_FIRST: Final = (
    ReverifyTrigger.SCOPE_CHANGE,
    ReverifyTrigger.DEVIATION,
    ReverifyTrigger.LOW_TOOL_USE,
    ReverifyTrigger.RECOVERY,
    ReverifyTrigger.STALE_DOCS,
    ReverifyTrigger.SILENCE,
)
"""One question covers several causes. The cause that others wait for determines it."""
_MANIFESTS: Final = (
    "package.json", "pyproject.toml", "requirements.txt", "Pipfile", "go.mod", "Cargo.toml", "pom.xml", "build.gradle",
    "build.gradle.kts", "Gemfile", "composer.json",
)  # fmt: skip
_MAX_LISTED: Final = 5


@dataclass(frozen=True)
class QuestionSubject:
    """The work of an agent that questions are built from."""

    task: str
    """The title of its task."""
    declared: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Files that really changed since the agent started."""
    interfaces: tuple[str, ...] = ()
    """Symbols that the agent changes or relies on."""
    delta: tuple[DeltaLine, ...] = ()
    """The changes of the context that concern the agent."""
    affected: tuple[str, ...] = ()
    """The files that these changes concern. Empty if unknown."""
    later: tuple[LaterTask, ...] = ()


def build_question(causes: Sequence[ReverifyCause], about: QuestionSubject) -> ReverifyQuestion:
    trigger = min((cause.trigger for cause in causes), key=_STRONGEST_FIRST.index)
    return _QUESTION_BUILDERS[trigger](about)


def grade_answer(
    question: ReverifyQuestion, answer: str, about: QuestionSubject, judged: Verdict | None = None
) -> AnswerGrade:
    """Grade an answer. `judged` is the judge's verdict; None if there was no judge."""
    named = find_mentioned_files(answer, _collect_known_paths(question, about))
    missing = tuple(dict.fromkeys(_find_missing(question.expected, answer, named)))
    # Who is asked where something is defined names files without wanting to change them.
    intended = named if question.is_about_change else ()
    undeclared_paths = find_undeclared((mention.path for mention in intended), about.declared)
    announced = tuple(path for path in undeclared_paths if path not in grant_files(undeclared_paths, about.declared))
    return AnswerGrade(
        verdict=_decide_verdict(question, answer, missing, judged),
        missing=missing,
        announced=announced,
        changed_approach=bool(announced or find_interface_changes(answer)),
    )


def build_challenge(failed: ItemVerdict, about: QuestionSubject) -> ReverifyQuestion:
    """Return the question about an item of the impact analysis that failed."""
    category, text = _CHALLENGES[failed.item]
    explanation = f" ({failed.detail})" if failed.detail else ""
    expected = None
    if failed.item is AnalysisItem.FILES:
        expected = _expect_files(all_of=tuple(path for path in about.declared if not set("*?") & set(path)))
    elif failed.item is AnalysisItem.DOWNSTREAM and about.later:
        expected = RequiredMentions(what="names", any_of=tuple(task.id for task in about.later))
    return ReverifyQuestion(category=category, text=f"{text}{explanation}", expected=expected)


def _decide_verdict(
    question: ReverifyQuestion, answer: str, missing: tuple[str, ...], judged: Verdict | None
) -> Verdict:
    if missing or not answer.strip():
        return Verdict.FAIL
    if not question.judged:
        return Verdict.PASS
    return judged if judged is not None else Verdict.UNVERIFIABLE


def _collect_known_paths(question: ReverifyQuestion, about: QuestionSubject) -> tuple[str, ...]:
    """Return the paths that an answer may abbreviate."""
    expected = question.expected
    expected_paths = (*expected.all_of, *expected.any_of) if expected and expected.what == "files" else ()
    return (*about.declared, *about.changed, *about.affected, *expected_paths)


def _find_missing(expected: RequiredMentions | None, answer: str, named: Sequence[Mention]) -> Iterator[str]:
    if expected is None:
        return
    paths = [mention.path for mention in named]

    def is_named(name: str) -> bool:
        if expected.what == "names":
            return mentions_symbol(answer, name)
        return any(matches(name, path) for path in paths)

    yield from (name for name in expected.all_of if not is_named(name))
    if expected.any_of and not any(map(is_named, expected.any_of)):
        yield " or ".join(expected.any_of[:_MAX_LISTED])


def _expect_files(all_of: tuple[str, ...] = (), any_of: tuple[str, ...] = ()) -> RequiredMentions | None:
    return RequiredMentions(what="files", all_of=all_of, any_of=any_of) if all_of or any_of else None


# Questions by cause


def _ask_scope_change(about: QuestionSubject) -> ReverifyQuestion:
    operations = {line.operation for line in about.delta}
    concerned = about.affected or about.declared
    if any(path.rpartition("/")[2] in _MANIFESTS for path in concerned):
        category, rest = Category.DEPENDENCY_RISK, "What could a changed dependency break?"
    elif operations & {DeltaOperation.CHANGED, DeltaOperation.REPLACED}:
        category, rest = (
            Category.RIPPLE_TRACE,
            f"What follows from it for {_join_limited(about.interfaces) or 'your callers'}?",
        )
    elif operations == {DeltaOperation.REMOVED}:
        category, rest = Category.ASSUMPTION_PROBE, "Which of your assumptions depended on it?"
    else:
        category, rest = Category.SCOPE_BOUNDARY, "Which part of it belongs to your task, and which does not?"
    text = (
        f"How does {_describe_delta(about.delta)} change your implementation plan for "
        f"{_join_limited(concerned) or about.task}? "
        f"Name every file that you have changed or will change, and say whether an interface changes. {rest}"
    )
    return ReverifyQuestion(category=category, text=text, expected=_expect_files(about.changed, concerned))


def _describe_delta(delta: Sequence[DeltaLine]) -> str:
    lines = [f"“{line.text}” ({line.operation}, {line.section})" for line in delta[:_MAX_LISTED]]
    return " and ".join(lines) or "the changed context"


def _ask_stale_docs(about: QuestionSubject) -> ReverifyQuestion:
    return _ask_about_changed_files(
        about, Category.INTERCONNECTION_MAP, "since your report was last updated, and how are they related?"
    )


def _ask_recovery(about: QuestionSubject) -> ReverifyQuestion:
    return _ask_about_changed_files(
        about, Category.SCOPE_BOUNDARY, "so far, which will you still change, and where does your task end?"
    )


def _ask_silence(about: QuestionSubject) -> ReverifyQuestion:
    return _ask_about_changed_files(
        about, Category.FAILURE_MODE, "so far, what delayed you, and what could fail if you continue like this?"
    )


def _ask_deviation(about: QuestionSubject) -> ReverifyQuestion:
    return _ask_about_changed_files(
        about, Category.ALTERNATIVE_DEMAND, "so far, and which alternative would change only the declared files?"
    )


def _ask_about_changed_files(about: QuestionSubject, category: Category, rest: str) -> ReverifyQuestion:
    text = f"For {about.task}: which files have you changed {rest}"
    return ReverifyQuestion(
        category=category, text=text, expected=_expect_files(about.changed, () if about.changed else about.declared)
    )


def _ask_low_tool_use(about: QuestionSubject) -> ReverifyQuestion:
    subject = _join_limited(about.interfaces) or _join_limited(about.declared) or about.task
    text = (
        f"You have not looked anything up for {about.task}. What do you assume about {subject}, in which file is it "
        "defined, and how do you know?"
    )
    return ReverifyQuestion(
        category=Category.ASSUMPTION_PROBE,
        text=text,
        expected=_expect_files(any_of=about.declared),
        is_about_change=False,
    )


def _join_limited(values: Sequence[str]) -> str:
    remainder = f" and {len(values) - _MAX_LISTED} more" if len(values) > _MAX_LISTED else ""
    return ", ".join(values[:_MAX_LISTED]) + remainder


_QUESTION_BUILDERS: Final[Mapping[ReverifyTrigger, Callable[[QuestionSubject], ReverifyQuestion]]] = MappingProxyType(
    {
        ReverifyTrigger.SILENCE: _ask_silence,
        ReverifyTrigger.STALE_DOCS: _ask_stale_docs,
        ReverifyTrigger.SCOPE_CHANGE: _ask_scope_change,
        ReverifyTrigger.LOW_TOOL_USE: _ask_low_tool_use,
        ReverifyTrigger.DEVIATION: _ask_deviation,
        ReverifyTrigger.RECOVERY: _ask_recovery,
    }
)

# Challenges by item of the impact analysis

_CHALLENGES: Final[Mapping[AnalysisItem, tuple[Category, str]]] = MappingProxyType(
    {
        AnalysisItem.TASK: (Category.SCOPE_BOUNDARY, "What exactly is your task, and what is not part of it?"),
        AnalysisItem.POSITION: (
            Category.INTERCONNECTION_MAP,
            "What is the place of your task in the whole plan, and what came before it?",
        ),
        AnalysisItem.UPSTREAM: (Category.DEPENDENCY_RISK, "What does your work depend on, and where is it written?"),
        AnalysisItem.FILES: (Category.SCOPE_BOUNDARY, "Which files does your task change? Name every one of them."),
        AnalysisItem.INTERFACES: (
            Category.INTERCONNECTION_MAP,
            "What are the exact declarations of the interfaces that you name?",
        ),
        AnalysisItem.OTHER_AGENTS: (
            Category.INTERCONNECTION_MAP,
            "Which other agents are affected by your work, and how?",
        ),
        AnalysisItem.DOWNSTREAM: (
            Category.RIPPLE_TRACE,
            "What follows from your work, step by step, and which task is next?",
        ),
        AnalysisItem.BREAKING: (Category.FAILURE_MODE, "What breaks, and for whom, if you get it wrong?"),
        AnalysisItem.FACTS: (
            Category.ASSUMPTION_PROBE,
            "Something that you said is wrong. What is right, and where did you look?",
        ),
        AnalysisItem.OMISSIONS: (
            Category.ALTERNATIVE_DEMAND,
            "What have you left out, and which alternative would need it?",
        ),
    }
)
