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

from proofstone.plan_gate.rules.document import Document, Kind, Marker, Step, blanked
from proofstone.plan_gate.rules.freeform import Freeform, may_be_read_loosely
from proofstone.plan_gate.rules.objections import COMPLIANCE, DOMAINS, INTEGRATIONS, found, marker
from proofstone.plans.fields import shortened
from proofstone.plans.lint import lint
from proofstone.plans.models import Plan, PlanProblem
from proofstone.plans.reading import read_plan
from proofstone.plans.tags import Span, has_too_many_tags

__all__ = ["Marker", "Outline", "Step", "outline"]


_UNRELATED_TO_TASKS = frozenset(("no-task", "frontmatter", "key-link"))
_OUT_OF_ORDER = frozenset(("cycle", "unknown-dependency", "self-dependency"))
_COMMAND_PARTS = frozenset(("verify", "verification", "heldout", "files", "must-pass"))


@dataclass(frozen=True)
class Outline:
    """The parts of a plan."""

    title: str
    text: str
    r"""With line ends `\n`."""
    plan: Plan | None
    problems: tuple[PlanProblem, ...]
    """For a PLAN.md: the problems that its parser and its linter report."""
    steps: tuple[Step, ...]
    whole: Step
    """The text outside of all steps, which applies to each of them."""
    markers: tuple[Marker, ...]
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


def outline(text: str, path: str, root: str | None = None) -> Outline:
    """Build the outline of a plan. `root` is the path of its repository, if known."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    plan, problems = read_plan(text, path)
    document = Document.of("" if has_too_many_tags(text) else text)
    if plan is None and all(problem.rule in _UNRELATED_TO_TASKS for problem in problems):
        problems = ()
    if plan is not None:
        problems += lint(plan, text, root)
    title = plan.title if plan else _find_title(document, path)
    empty_step = Step(title, 1, (), (), (), ordered=True, end=len(document.lines))
    questions: list[Marker] = []
    steps, whole = (tuple(_list_task_steps(plan, problems, document)) if plan else ()), empty_step
    if plan is None and not problems:
        steps, whole = Freeform(document, questions).read(title)
        if not steps and may_be_read_loosely(text):
            questions.clear()
            steps, whole = Freeform(document, questions, loosely=True).read(title)
    return Outline(
        title=title,
        text=text,
        plan=plan,
        problems=problems,
        steps=steps,
        whole=whole,
        markers=_find_markers(document, questions),
        domains=found(DOMAINS, text),
        integrations=found(INTEGRATIONS, text),
        compliance=found(COMPLIANCE, text),
    )


def _find_title(document: Document, path: str) -> str:
    headings = (text for _, _, text in document.tags.headings())
    title = next(headings, "") or next((line.text for line in document.lines if line.text.strip(" -")), "")
    return shortened(title[:1000].strip("#* "), 120) or PurePosixPath(path).name


def _list_task_steps(plan: Plan, problems: tuple[PlanProblem, ...], document: Document) -> Iterator[Step]:
    unordered_tasks = {problem.task for problem in problems if problem.rule in _OUT_OF_ORDER}
    for task, element in zip(plan.tasks, document.tags.tasks, strict=True):
        end = document.tags.line(max(element.span.end - 1, element.span.start))
        yield Step(
            name=task.name,
            line=task.line,
            files=task.files,
            verify=task.verify,
            done=task.done,
            ordered=task.id not in unordered_tasks,
            checkpoint=task.type.is_checkpoint,
            end=end,
            text=document.between(task.line, end),
            action=task.action,
            wave=task.wave,
        )


def _find_markers(document: Document, questions: list[Marker]) -> tuple[Marker, ...]:
    command_spans = _find_command_spans(document)
    by_line = {question.line: question for question in questions}
    for line in document.lines:
        spans = command_spans.get(line.number)
        visible_line = line._replace(plain=blanked(line.plain, spans)) if spans else line
        if line.kind is Kind.PROSE and line.plain and (words := marker(visible_line.unquoted)):
            by_line[line.number] = Marker(line.number, words)
    return tuple(by_line[number] for number in sorted(by_line))


def _find_command_spans(document: Document) -> dict[int, list[Span]]:
    """Return the spans of a PLAN.md that contain commands, by line. `! grep -r TODO src` searches for markers and is
    none.
    """
    spans_by_line: dict[int, list[Span]] = {}
    for element in document.tags.tasks:
        for part in element.parts:
            if part.name in _COMMAND_PARTS:
                for number, span in document.on_lines(Span(part.start, part.start + len(part.content))):
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


class Intent(Enum):
    """What a text says to do with a file."""

    CREATE = "create"
    CHANGE = "change"
    UNSAID = "unsaid"


def intent(text: str, path: str) -> Intent:
    """Return what the text says to do with the path. If it mentions the path twice, creating takes precedence."""
    intents = {_find_intent(text, span) for span in _find_mentions(text, path)}
    return next((candidate for candidate in (Intent.CREATE, Intent.CHANGE) if candidate in intents), Intent.UNSAID)


def is_to_change(text: str, path: str) -> bool:
    """Whether the text plainly says to change the file, and nowhere to create it."""
    return intent(text, path) is Intent.CHANGE and any(
        _find_intent(text, span) is Intent.CHANGE
        and not _SIDE_REMARK.search(_sentence_before(text, span))
        and not _CONDITION.match(text[span.end : span.end + _LENGTH_AFTER])
        for span in _find_mentions(text, path)
    )


def tone(text: str) -> Intent:
    """Return what the text as a whole is about: anything new at all, or only changes."""
    kinds = {verb.lastgroup for verb in _VERB.finditer(text)}
    return Intent.CREATE if "create" in kinds else Intent.CHANGE if kinds else Intent.UNSAID


def _find_mentions(text: str, path: str) -> Iterator[Span]:
    """Yield where the path, or its last part alone, occurs. A few occurrences are enough."""
    for name in dict.fromkeys((path, path.rstrip("/").rpartition("/")[2])):
        at = text.find(name) if name else -1
        for _ in range(_MAX_MENTIONS):
            if at < 0:
                break
            if name == path or text[max(at - 1, 0)] != "/":
                yield Span(at, at + len(name))
            at = text.find(name, at + len(name))


def _find_intent(text: str, span: Span) -> Intent:
    after = text[span.end : span.end + _LENGTH_AFTER]
    if _REMARK.match(after):
        return Intent.CREATE
    if match := _VERB_AFTER.match(after):
        return Intent.CREATE if match["create"] else Intent.CHANGE
    before = _sentence_before(text, span)
    verbs = [*_VERB.finditer(before)]
    if not verbs:
        return Intent.UNSAID
    last = verbs[-1]
    if last["change"]:
        return Intent.CHANGE
    return Intent.UNSAID if _PLACE.search(before) and not _IS_NEW.fullmatch(last[0]) else Intent.CREATE


def _sentence_before(text: str, span: Span) -> str:
    return _SENTENCE.split(text[max(0, span.start - _LENGTH_BEFORE) : span.start])[-1]
