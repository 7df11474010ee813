"""The outline of a plan in any form: its steps, files, commands, and open points.

The text of a PLAN.md is parsed by its own parser and follows its own rules; any other text is searched for the parts of
a plan. Code, quotations and comments leave nothing open: a TODO in an example is not an open point of the plan.

The module also tells from the words around a path whether a step creates the file or changes an existing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from proofstone.plan_gate.rules.document import LineKind, MarkdownDocument, OpenPoint, PlanStep, blank_spans
from proofstone.plan_gate.rules.freeform import FreeformParser, has_rare_forms
from proofstone.plan_gate.rules.objections import (
    COMPLIANCE,
    DOMAINS,
    INTEGRATIONS,
    find_named_subjects,
    find_open_point,
)
from proofstone.plans.fields import shorten_text
from proofstone.plans.lint import find_lint_problems
from proofstone.plans.models import Plan, PlanProblem
from proofstone.plans.parser import read_plan
from proofstone.plans.tags import TextSpan, has_too_many_tags

__all__ = ["OpenPoint", "PlanOutline", "PlanStep", "outline_plan"]


_UNRELATED_TO_TASKS = frozenset(("no-task", "frontmatter", "key-link"))
_OUT_OF_ORDER = frozenset(("cycle", "unknown-dependency", "self-dependency"))
_COMMAND_PARTS = frozenset(("verify", "verification", "heldout", "files", "must-pass"))


@dataclass(frozen=True)
class PlanOutline:
    """The parts of a plan."""

    title: str
    text: str
    r"""With line ends `\n`."""
    plan: Plan | None
    problems: tuple[PlanProblem, ...]
    """For a PLAN.md: the problems that its parser and its linter report."""
    steps: tuple[PlanStep, ...]
    whole: PlanStep
    """The text outside of all steps, which applies to each of them."""
    markers: tuple[OpenPoint, ...]
    """At most one per line."""
    domains: tuple[str, ...]
    integrations: tuple[str, ...]
    compliance: tuple[str, ...]

    @property
    def is_plan(self) -> bool:
        """Whether the text has the form of a PLAN.md, valid or not."""
        return self.plan is not None or bool(self.problems)

    @property
    def files(self) -> tuple[str, ...]:
        """All files of the plan, each once."""
        return tuple(dict.fromkeys(path for step in (*self.steps, self.whole) for path in step.files))


def outline_plan(text: str, path: str, root: str | None = None) -> PlanOutline:
    """Build the outline of a plan. `root` is the path of its repository, if known."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    plan, problems = read_plan(text, path)
    document = MarkdownDocument.parse("" if has_too_many_tags(text) else text)
    if plan is None and all(problem.rule in _UNRELATED_TO_TASKS for problem in problems):
        problems = ()
    if plan is not None:
        problems += find_lint_problems(plan, text, root)
    title = plan.title if plan else _find_title(document, path)
    empty_step = PlanStep(title, 1, (), (), (), is_ordered=True, end=len(document.lines))
    questions: list[OpenPoint] = []
    steps, whole = (tuple(_list_task_steps(plan, problems, document)) if plan else ()), empty_step
    if plan is None and not problems:
        steps, whole = FreeformParser(document, questions).read(title)
        if not steps and has_rare_forms(text):
            questions.clear()
            steps, whole = FreeformParser(document, questions, accepts_rare_forms=True).read(title)
    return PlanOutline(
        title=title,
        text=text,
        plan=plan,
        problems=problems,
        steps=steps,
        whole=whole,
        markers=_find_markers(document, questions),
        domains=find_named_subjects(DOMAINS, text),
        integrations=find_named_subjects(INTEGRATIONS, text),
        compliance=find_named_subjects(COMPLIANCE, text),
    )


def _find_title(document: MarkdownDocument, path: str) -> str:
    headings = (text for _, _, text in document.tags.find_headings())
    title = next(headings, "") or next((line.text for line in document.lines if line.text.strip(" -")), "")
    return shorten_text(title[:1000].strip("#* "), 120) or PurePosixPath(path).name


def _list_task_steps(plan: Plan, problems: tuple[PlanProblem, ...], document: MarkdownDocument) -> Iterator[PlanStep]:
    unordered_tasks = {problem.task for problem in problems if problem.rule in _OUT_OF_ORDER}
    for task, element in zip(plan.tasks, document.tags.tasks, strict=True):
        end = document.tags.line_number(max(element.span.end - 1, element.span.start))
        yield PlanStep(
            name=task.name,
            line=task.line,
            files=task.files,
            verify=task.verify,
            done=task.done,
            is_ordered=task.id not in unordered_tasks,
            is_checkpoint=task.type.is_checkpoint,
            end=end,
            text=document.text_between(task.line, end),
            action=task.action,
            wave=task.wave,
        )


def _find_markers(document: MarkdownDocument, questions: list[OpenPoint]) -> tuple[OpenPoint, ...]:
    command_spans = _find_command_spans(document)
    by_line = {question.line: question for question in questions}
    for line in document.lines:
        spans = command_spans.get(line.number)
        visible_line = line._replace(prose=blank_spans(line.prose, spans)) if spans else line
        if line.kind is LineKind.PROSE and line.prose and (words := find_open_point(visible_line.unquoted)):
            by_line[line.number] = OpenPoint(line.number, words)
    return tuple(by_line[number] for number in sorted(by_line))


def _find_command_spans(document: MarkdownDocument) -> dict[int, list[TextSpan]]:
    """Return the spans of a PLAN.md that contain commands, by line. `! grep -r TODO src` searches for markers and is
    none.
    """
    spans_by_line: dict[int, list[TextSpan]] = {}
    for element in document.tags.tasks:
        for part in element.parts:
            if part.name in _COMMAND_PARTS:
                for number, span in document.split_by_line(TextSpan(part.start, part.start + len(part.content))):
                    spans_by_line.setdefault(number, []).append(span)
    return spans_by_line


_LENGTH_BEFORE = 120
_LENGTH_AFTER = 80
_MAX_MENTIONS = 10
_SENTENCE = re.compile(r"[.!?;]\s|[<>\n]\s*[-*+\d]|[<>]|\n\s*\n")
_NEW = r"new|neu(?:e[mnrs]?)?"
_CREATE = (
    r"creat(?:e|es|ed|ing)|add(?:s|ed|ing)?|writ(?:e|es|ten|ing)|introduc(?:e|es|ed|ing)|generat(?:e|es|ed|ing)"
    r"|scaffold|mak(?:e|es|ing)|implement(?:s|ed|ing)?|build|extract(?:s|ed|ing)?|mov(?:e|es|ed|ing)|renam(?:e|es|ed|ing)"
    r"|copy|split|draft|describe|document|set(?:s|ting)? up|initiali[sz](?:e|es|ed|ing)|bootstrap(?:s|ped|ping)?"
    r"|defin(?:e|es|ed|ing)|provid(?:e|es|ed|ing)|port(?:s|ed|ing)?|install(?:s|ed|ing)?|configur(?:e|es|ed|ing)"
    r"|start(?:s|ed|ing)?|put(?:s|ting)?|pull(?:s|ed|ing)?(?=(?:\s+\S{1,40}){0,5}\s+out\b)"
    r"|anlegen|angelegt|erstell(?:en|t)|schreib(?:en|t)|hinzufügen|hinzugefügt"
)
_CHANGE = (
    r"modif(?:y|ies|ied|ying)|edit(?:s|ed|ing)?|fix(?:es|ed|ing)?|updat(?:e|es|ed|ing)|refactor(?:s|ed|ing)?"
    r"|extend(?:s|ed|ing)?|chang(?:e|es|ed|ing)|adapt|adjust|mend|patch|rewrite|delete|remove|replace|correct|rework"
    r"|simplify|existing|ändern|geändert|anpassen|erweitern|korrigieren"
)
_VERB = re.compile(
    rf"(?<![\w/.-])(?:(?P<create>{_NEW}|(?<!\bthe )(?<!\ba )(?:{_CREATE}))|(?P<change>{_CHANGE}))(?![\w/-]|\.\w)",
    re.IGNORECASE,
)
"""Not within a path: `new.py` says nothing. Not a noun either: `the port`."""
_VERB_AFTER = re.compile(
    r"[`*\"']*\s+(?:[^\W\d]{1,20}\s+){0,3}"
    r"(?:(?P<create>anlegen|erstellen|schreiben|hinzufügen)|(?P<change>ändern|anpassen|erweitern|korrigieren))\b",
    re.IGNORECASE,
)
"""In German the verb may come last: `src/a.py` ändern."""
_PLACE = re.compile(r"\b(?:in|to|into|from|of|at|within)\s+(?:the\s+)?(?:file\s+)?[`*\"']*$", re.IGNORECASE)
_REMARK = re.compile(r"[`*\"']*\s*(?:\(|—|–|-)\s*(?:new|neu|create)", re.IGNORECASE)


_IS_NEW = re.compile(_NEW, re.IGNORECASE)
_SIDE_REMARK = re.compile(
    r"\b(?:see|as|like|per|read|follow(?:s|ing)?|according|us(?:e|es|ing)|via|with|by|than|not|never|without|don't"
    r"|imports?|described|because|so that|which|while|when|if|before|after|run|match(?:es|ing)?)\b",
    re.IGNORECASE,
)
"""Words after which a file is mentioned rather than worked on."""
_CONDITION = re.compile(r"[`*\"']*,?\s+(?:if|where|when|should|unless)\b", re.IGNORECASE)


class FileIntent(Enum):
    """What a text says to do with a file."""

    CREATE = "create"
    CHANGE = "change"
    UNSAID = "unsaid"


def find_intent(text: str, path: str) -> FileIntent:
    """Return what the text says to do with the path. If it mentions the path twice, creating takes precedence."""
    intents = {_find_intent(text, span) for span in _find_mentions(text, path)}
    return next(
        (candidate for candidate in (FileIntent.CREATE, FileIntent.CHANGE) if candidate in intents), FileIntent.UNSAID
    )


def says_to_change(text: str, path: str) -> bool:
    """Whether the text plainly says to change the file, and nowhere to create it."""
    return find_intent(text, path) is FileIntent.CHANGE and any(
        _find_intent(text, span) is FileIntent.CHANGE
        and not _SIDE_REMARK.search(_sentence_before(text, span))
        and not _CONDITION.match(text[span.end : span.end + _LENGTH_AFTER])
        for span in _find_mentions(text, path)
    )


def find_tone(text: str) -> FileIntent:
    """Return what the text as a whole is about: anything new at all, or only changes."""
    kinds = {verb.lastgroup for verb in _VERB.finditer(text)}
    return FileIntent.CREATE if "create" in kinds else FileIntent.CHANGE if kinds else FileIntent.UNSAID


def _find_mentions(text: str, path: str) -> Iterator[TextSpan]:
    """Yield where the path, or its last part alone, occurs. A few occurrences are enough."""
    for name in dict.fromkeys((path, path.rstrip("/").rpartition("/")[2])):
        at = text.find(name) if name else -1
        for _ in range(_MAX_MENTIONS):
            if at < 0:
                break
            if name == path or text[max(at - 1, 0)] != "/":
                yield TextSpan(at, at + len(name))
            at = text.find(name, at + len(name))


def _find_intent(text: str, span: TextSpan) -> FileIntent:
    after = text[span.end : span.end + _LENGTH_AFTER]
    if _REMARK.match(after):
        return FileIntent.CREATE
    if match := _VERB_AFTER.match(after):
        return FileIntent.CREATE if match["create"] else FileIntent.CHANGE
    before = _sentence_before(text, span)
    verbs = [*_VERB.finditer(before)]
    if not verbs:
        return FileIntent.UNSAID
    last = verbs[-1]
    if last["change"]:
        return FileIntent.CHANGE
    return FileIntent.UNSAID if _PLACE.search(before) and not _IS_NEW.fullmatch(last[0]) else FileIntent.CREATE


def _sentence_before(text: str, span: TextSpan) -> str:
    return _SENTENCE.split(text[max(0, span.start - _LENGTH_BEFORE) : span.start])[-1]
