"""The steps of a text that is no PLAN.md: a design, an issue, notes.

| it reads | it is |
|---|---|
| a heading `Step 2`, `Phase 1: …`, or any heading below `Tasks`, `Implementation plan`, … | a step, up to the next heading of its level |
| where there is no such heading: a numbered or ticked item of a list, or a bullet below `Steps`, `Tasks`, … | a step, with what is indented below it |
| what stands below `Acceptance criteria`, `Done when`, … | done criteria |
| what stands below `Verification`, `Test plan`, … or after `Verify:` | commands, by the rules of `<verify>` |
| what stands below `Open questions`, `Unknowns` | markers, one an item |
| a list below `Goals`, `Background`, `Risks`, … | nothing of the kind |

Criteria and commands that belong to no step belong to the whole. Each line is looked at once. Of one step no more is
taken than somebody could carry out, so that nobody has to look through a long text for each of very many things.
"""  # noqa: E501 (the rows of a table)

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from assay.core.plan.fields import criteria, is_none, paths
from assay.core.plan.problems import shortened
from assay.core.plan.reading import MOST_FILES
from assay.core.plan.verify import Verify
from assay.core.plan_gate.document import Document, Kind, Line
from assay.core.plan_gate.mentions import in_code, in_words, is_check
from assay.core.plan_gate.step import Marker, Step


class Topic(Enum):
    """What a stretch of text is about."""

    NONE = ""
    STEPS = "steps"
    DONE = "done"
    VERIFY = "verify"
    QUESTIONS = "questions"
    ASIDE = "aside"


_TOPICS = (
    (
        Topic.DONE,
        r"acceptance(?: criteria)?|definition of done|done(?: when| criteria)?|(?:success|exit) criteria"
        r"|(?:it )?must show",
    ),
    (
        Topic.VERIFY,
        r"verify|verification|validation|test(?:ing)? (?:plan|strategy)|testing|tests?|how to (?:test|verify)|checks?",
    ),
    (Topic.QUESTIONS, r"open (?:questions?|points|issues)|unknowns|questions|unresolved(?: questions)?"),
    (
        Topic.STEPS,
        r"(?:the )?(?:implementation |work |action )?(?:steps|tasks|plan|phases|milestones|todos?|to[- ]dos?)"
        r"|implementation|what to do|to build|(?:proposed )?changes",
    ),
    (
        Topic.ASIDE,
        r"(?:non-?)?goals?|background|context|motivation|introduction|overview|summary|risks?|alternatives.{0,40}|scope"
        r"|out of scope|references|links|requirements|constraints|assumptions|glossary|steps to reproduce|reproduction"
        r"|environment|notes|appendix",
    ),
)
_TOPIC = re.compile("|".join(f"(?P<{topic.name}>{words})" for topic, words in _TOPICS), re.IGNORECASE)
_NUMBER = re.compile(r"(?:\d{1,3}\.)*\d{1,3}[.):]?\s+")
_STEP_HEADING = re.compile(
    r"(?:step|task|phase|milestone|stage|work ?package|iteration|part)\s{0,3}#?\d", re.IGNORECASE
)
_IN_ORDER = re.compile(f"{_STEP_HEADING.pattern}|{_NUMBER.pattern}", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:(?P<number>\d{1,4}[.)])|[-*+•])[ \t]+(?P<box>\[[ xX]\][ \t]+)?(?P<said>\S.*)")
_LABEL = re.compile(
    r"[ \t]*(?:[-*+•][ \t]+)?[*_]{0,3}(?P<label>[A-Za-z][A-Za-z -]{2,30}?)[*_]{0,3}:[*_]{0,3}(?P<rest>.*)"
)
_FILES = re.compile(r"files?(?: changed| modified| touched)?", re.IGNORECASE)
_WAITS = re.compile(
    r"\b(?:depends? on|dependenc(?:y|ies)|blocked by|(?:after|once|requires) (?:step|task|phase))\b",
    re.IGNORECASE,
)
_SO_LONG = 2000
"""Characters of a line within which its form is looked for."""
MOST_COMMANDS = 100
MOST_CRITERIA = 200
_MOST_DONE_LINES = 500


@dataclass
class _Draft:
    """A step on its way."""

    name: str
    line: int
    level: int = 0
    """Of the heading that it began with; 0: an item of a list."""
    indent: int = 0
    ordered: bool = False
    end: int = 0
    files: dict[str, None] = field(default_factory=dict)
    commands: dict[str, None] = field(default_factory=dict)
    verify: list[str] = field(default_factory=list)
    """Lines for the reader of `<verify>`."""
    done: list[str] = field(default_factory=list)

    def look_at(self, codes: Iterable[str]) -> None:
        """Takes what of some code is a check."""
        for code in codes:
            if len(self.commands) < MOST_COMMANDS and is_check(code):
                self.commands[code] = None

    def finish_with(self, said: str) -> None:
        """Takes a line of done criteria."""
        if len(self.done) < _MOST_DONE_LINES:
            self.done.append(said[:_SO_LONG])

    def step(self, document: Document) -> Step:
        verify = Verify("")
        if self.verify:
            verify.read("\n".join(self.verify), self.line)
        return Step(
            name=self.name,
            line=self.line,
            files=tuple(self.files),
            verify=tuple(dict.fromkeys((*verify.commands, *self.commands))),
            done=criteria("\n".join(self.done))[:MOST_CRITERIA],
            ordered=self.ordered,
            end=self.end,
            text=document.between(self.line, self.end),
        )


@dataclass
class Freeform:
    """One pass over a document."""

    document: Document
    questions: list[Marker] = field(default_factory=list)
    _steps: list[_Draft] = field(default_factory=list)
    _step: _Draft | None = None
    _topic: Topic = Topic.NONE
    _topic_level: int = 0
    """Of the heading that set it; 7: a line such as `Acceptance criteria:`."""
    _topic_indent: int = 0
    _openers: tuple[Topic, ...] = (Topic.NONE, Topic.STEPS)
    """Where an item of a list begins a step; nowhere if headings do."""
    _blank: bool = True

    def read(self, title: str) -> tuple[tuple[Step, ...], Step]:
        """The steps, and what is said outside of them."""
        lines = self.document.lines
        whole = _Draft(title, 1, end=len(lines), ordered=True)
        headings = self._headings()
        if any(is_step for _, _, is_step in headings.values()):
            self._openers = ()
        elif any(level > 1 and topic_of(said) is Topic.STEPS for level, said, _ in headings.values()):
            self._openers = (Topic.STEPS,)
        for line in lines:
            if line.number in headings:
                self._heading(line, *headings[line.number], whole)
            elif line.kind in (Kind.PROSE, Kind.MARK):
                self._prose(line)
            into = self._step or whole
            if line.number not in headings:
                self._content(line, into)
            if self._step is not None and line.text.strip():
                self._step.end = line.number
            self._blank = not line.text.strip()
        return tuple(draft.step(self.document) for draft in self._steps), whole.step(self.document)

    def _headings(self) -> dict[int, tuple[int, str, bool]]:
        """By line: level, text, and whether it begins a step."""
        found: dict[int, tuple[int, str, bool]] = {}
        steps_level = 0
        for position, level, text in self.document.tags.headings():
            said = text[:_SO_LONG].strip("*_ ")
            topic = topic_of(said)
            if steps_level and level <= steps_level:
                steps_level = 0
            below = 0 < steps_level < level
            is_step = bool(_STEP_HEADING.match(said)) or (below and topic in (Topic.NONE, Topic.STEPS))
            if topic is Topic.STEPS and not is_step and level > 1:
                steps_level = level
            found[self.document.tags.line(position)] = (level, said, is_step and level > 1)
        return found

    def _heading(self, line: Line, level: int, said: str, is_step: bool, whole: _Draft) -> None:
        inside = self._step is not None and 0 < self._step.level < level
        self._topic, self._topic_level, self._topic_indent = topic_of(said), level, 0
        if is_step:
            if inside:
                self._dissolve(whole)
            self._begin(_Draft(_name(said), line.number, level, ordered=bool(_IN_ORDER.match(said))))
            self._topic = Topic.NONE
        elif not inside:
            self._step = None

    def _prose(self, line: Line) -> None:
        """What the line opens or closes."""
        item = _ITEM.match(line.text[:_SO_LONG])
        if item is None:
            indented = line.text[:1] in (" ", "\t")
            if self._step and not self._step.level and self._blank and line.text.strip() and not indented:
                self._step = None
            self._label_line(line)
            return
        indent = len(item["indent"].expandtabs(4))
        if self._topic_level == 7 and indent < self._topic_indent:
            self._topic = Topic.NONE
        if self._topic not in self._openers:
            return
        nested = self._step is not None and indent > self._step.indent + 1
        listed = bool(item["number"] or item["box"]) or self._topic is Topic.STEPS
        if listed and not nested and _label(item["said"])[0] is Topic.NONE:
            ordered = bool(item["number"]) or bool(_WAITS.search(item["said"]))
            self._begin(_Draft(_name(item["said"]), line.number, indent=indent, ordered=ordered))

    def _label_line(self, line: Line) -> None:
        """`Acceptance criteria:` alone on its line, also in bold."""
        said = line.text[:_SO_LONG].strip()
        bare = said.strip("*_").rstrip(":").strip("*_")
        if not (said.endswith((":", ":**", ":*")) or (said.startswith("**") and said.endswith("**"))):
            return
        topic = topic_of(bare)
        if topic is not Topic.NONE:
            self._topic, self._topic_level = topic, 7
            self._topic_indent = len(line.text) - len(line.text.lstrip())

    def _content(self, line: Line, into: _Draft) -> None:
        """What the line says, for whom it says it."""
        if self._topic is not Topic.NONE and topic_of(line.text.strip()) is self._topic:
            return  # the label itself
        if self._topic is Topic.VERIFY:
            into.verify.append(line.text)
        elif line.kind is Kind.FENCE:
            into.look_at([line.text.strip().removeprefix("$ ")])
        elif line.kind is Kind.PROSE and self._topic is Topic.DONE:
            into.finish_with(line.text)
            into.look_at(line.codes)
        elif line.kind is Kind.PROSE and line.text.strip():
            item = _ITEM.match(line.text[:_SO_LONG]) if self._topic is Topic.QUESTIONS else None
            if item and not is_none(item["said"]):
                self.questions.append(Marker(line.number, shortened(item["said"])))
            self._sentence(line, into)

    def _sentence(self, line: Line, into: _Draft) -> None:
        topic, said = _label(line.text[:_SO_LONG])
        if topic is Topic.VERIFY:
            into.verify.append(said)
        elif topic is Topic.DONE:
            into.finish_with(said)
            into.look_at(line.codes)
        elif (named := _LABEL.match(line.text[:_SO_LONG])) and _FILES.fullmatch(named["label"].strip()):
            _add(into.files, paths(named["rest"]))
        else:
            into.ordered = into.ordered or bool(_WAITS.search(line.plain[:_SO_LONG]))
            into.look_at(line.codes)
            for code in line.codes:
                _add(into.files, in_code(code))
            _add(into.files, in_words(line.plain))

    def _begin(self, draft: _Draft) -> None:
        draft.end = draft.line
        self._step = draft
        self._steps.append(draft)

    def _dissolve(self, whole: _Draft) -> None:
        """A phase that is itself divided into steps is none; what it said holds for the whole."""
        outer = self._steps.pop()
        whole.verify += outer.verify
        for said in outer.done:
            whole.finish_with(said)
        whole.look_at(outer.commands)
        _add(whole.files, outer.files)


def topic_of(said: str) -> Topic:
    """What a heading or a label announces."""
    bare = _NUMBER.sub("", said[:200].strip("*_: "), count=1).strip("*_: ")
    found = _TOPIC.fullmatch(bare)
    return Topic[found.lastgroup] if found and found.lastgroup else Topic.NONE


def _label(said: str) -> tuple[Topic, str]:
    """`Verify: pytest -q` as what it announces and what it says."""
    found = _LABEL.match(said)
    if found is None or not found["rest"].strip():
        return Topic.NONE, said
    return topic_of(found["label"]), found["rest"].strip()


def _name(said: str) -> str:
    return shortened(said.replace("**", "").strip("*_# "), 120)


def _add(files: dict[str, None], found: Iterable[str]) -> None:
    for path in found:
        if len(files) < MOST_FILES:
            files[path] = None
