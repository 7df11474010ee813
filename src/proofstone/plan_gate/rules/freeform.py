"""The steps of a text that is no PLAN.md: a design, an issue, notes.

| it reads | it is |
|---|---|
| a heading `Step 2`, `Phase 1: …`, or any heading below `Tasks`, `Implementation plan`, … | a step, up to the next
heading of its level |
| where there is no such heading: a numbered or ticked item of a list, or a bullet below `Steps`, `Tasks`, … | a step,
with what is indented below it |
| what stands below `Acceptance criteria`, `Done when`, … | done criteria |
| what stands below `Verification`, `Test plan`, … or after `Verify:`, also at the end of an item | commands, by the
rules of `<verify>` |
| where none of these is found: a numbered heading, a paragraph `**Step 1** - …`, a row of a table of tasks | a step |
| what stands below `Open questions`, `Unknowns` | markers, one an item |
| a list below `Goals`, `Background`, `Risks`, … | nothing of the kind |

Criteria and commands that belong to no step belong to the whole; so do those on a line of their own right after a list,
and the tests that its last item runs. Each line is looked at once. Of one step no more is
taken than somebody could carry out, so that nobody has to look through a long text for each of very many things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from proofstone.plan_gate.rules.document import Document, Kind, Line, Marker, Step
from proofstone.plans.fields import criteria, is_none, paths, shortened
from proofstone.plans.mentions import in_code, in_words, is_check
from proofstone.plans.reading import MOST_FILES
from proofstone.plans.verify import Verify


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
        r"|(?:it )?must show|fertig(?: wenn)?",
    ),
    (
        Topic.VERIFY,
        r"verify|verification|validation|test(?:ing)? (?:plan|strategy)|testing|tests?|how to (?:test|verify)|checks?"
        r"|prüfen|prüfung",
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
        r"|environment|notes|appendix|terminology|definitions|abstract|conclusion",
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
    r"[ \t]*(?:[-*+•][ \t]+)?[*_]{0,3}(?P<label>[A-Za-z][A-Za-zäöü -]{2,30}?)[*_]{0,3}:[*_]{0,3}(?P<rest>.*)"
)
_INLINE = re.compile(
    r"(?<=[.;!?)`])[ \t]{1,3}[*_]{0,3}(?P<label>[Vv]erify|[Vv]erification|[Cc]heck|Prüfen|Prüfung|[Dd]one(?: when)?"
    r"|[Aa]cceptance(?: criteria)?|Fertig(?: wenn)?)[*_]{0,3}:[*_]{0,3}(?=\s)"
)
"""A label after the end of a sentence."""
_PARAGRAPH = re.compile(
    r"[*_]{0,3}(?:step|task|phase|stage|part)\s{0,3}#?\d{1,3}[*_]{0,3}\s{0,3}[-–—:.)][*_]{0,3}\s", re.IGNORECASE
)
_SELDOM = re.compile(
    r"^[ \t]{0,3}(?:\||\#{2,6}[ \t]{1,9}\d|[*_]{0,3}(?:step|task|phase|stage|part)\s{0,3}\#?\d)",
    re.IGNORECASE | re.MULTILINE,
)
_RULE = re.compile(r"[\s|:-]+")
_WHAT = re.compile(r"tasks?|steps?|what|todo|action", re.IGNORECASE)
_RUNS = re.compile(
    r"(?:finally,? )?(?:re-?)?(?:run|execute|verify|check|test|make sure|ensure|confirm)\b|`", re.IGNORECASE
)
_GOES_BY = re.compile(r"[#\s*_]*(?:[a-z]{4,12}\s{0,3}#?)?(\d{1,4})\b", re.IGNORECASE)
_COMES_AFTER = re.compile(
    r"\b(?:depends? on|blocked by|after|once|requires)\s{1,3}"
    r"((?:steps?|tasks?|phases?)\s{0,3}#?\d{1,4}(?:\s{0,3}(?:,|and|&)\s{0,3}(?:(?:step|task|phase)\s)?#?\d{1,4}){0,9})",
    re.IGNORECASE,
)
_CODE = re.compile(r"`([^`]+)`")
_DIGITS = re.compile(r"\d+")
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
    trailing: list[tuple[Topic, str]] = field(default_factory=list)
    """Labelled lines below an item that are not indented: its own, or those of the whole list."""
    waits_for: set[int] = field(default_factory=set)
    number: int = 0

    def take(self, topic: Topic, said: str) -> None:
        """What a label announces, and what it says."""
        if topic is Topic.VERIFY:
            self.verify.append(said)
        else:
            self.finish_with(said)
            self.look_at(_CODE.findall(said))

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
            waits_for=tuple(sorted(self.waits_for)),
            number=self.number,
            end=self.end,
            text=document.between(self.line, self.end),
        )


@dataclass
class Freeform:
    """One pass over a document."""

    document: Document
    questions: list[Marker] = field(default_factory=list)
    loosely: bool = False
    """Whether to look for steps also where they are seldom written."""
    _columns: tuple[str, ...] = ()
    """Of the table of tasks that is being read."""
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
        self._share(whole)
        return tuple(draft.step(self.document) for draft in self._steps), whole.step(self.document)

    def _share(self, whole: _Draft) -> None:
        """Gives the whole what stands at the end of a list for all of it."""
        trailing = [draft for draft in self._steps if draft.trailing]
        of_all = len(self._steps) > 1 and trailing == self._steps[-1:]
        for draft in trailing:
            for topic, said in draft.trailing:
                (whole if of_all else draft).take(topic, said)
        last = self._steps[-1] if len(self._steps) > 1 else None
        if last and not last.level and _RUNS.match(last.name):
            whole.look_at(last.commands)

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
        return _numbered(found) if self.loosely else found

    def _heading(self, line: Line, level: int, said: str, is_step: bool, whole: _Draft) -> None:
        inside = self._step is not None and 0 < self._step.level < level
        self._topic, self._topic_level, self._topic_indent = topic_of(said), level, 0
        if is_step:
            if inside:
                self._dissolve(whole)
            number = int(goes_by[1]) if (goes_by := _GOES_BY.match(said)) else 0
            self._begin(_Draft(_name(said), line.number, level, ordered=bool(_IN_ORDER.match(said)), number=number))
            self._topic = Topic.NONE
        elif not inside:
            self._step = None

    def _prose(self, line: Line) -> None:
        """What the line opens or closes."""
        item = _ITEM.match(line.text[:_SO_LONG])
        if item is None:
            if self.loosely and self._topic in self._openers and _PARAGRAPH.match(line.text):
                self._begin(_Draft(_name(line.text[:_SO_LONG]), line.number, 7, ordered=True))
                return
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
        nested = self._step is not None and bool(self._step.level or indent > self._step.indent + 1)
        listed = bool(item["number"] or item["box"]) or self._topic is Topic.STEPS
        if listed and not nested and _label(item["said"])[0] is Topic.NONE:
            ordered = bool(item["number"]) or bool(_WAITS.search(item["said"]))
            number = int(item["number"][:-1]) if item["number"] else 0
            self._begin(_Draft(_name(item["said"]), line.number, indent=indent, ordered=ordered, number=number))

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
            if not (self.loosely and self._row(line)):
                self._sentences(line, into)

    def _row(self, line: Line) -> bool:
        """Reads a row of a table of tasks, and says whether it was one."""
        row = line.text[:_SO_LONG].strip()
        if self._blank or row[:1] != "|":
            self._columns = ()
        if row[:1] != "|":
            return False
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not self._columns:
            self._columns = tuple(cell.strip("*_ ").lower() for cell in cells)
            return False
        if not _is_of_tasks(self._columns) or self._topic not in self._openers:
            return False
        if not _RULE.fullmatch(row):
            self._begin_row(line, dict(zip(self._columns, cells, strict=False)))
        return True

    def _begin_row(self, line: Line, cells: dict[str, str]) -> None:
        name = next(said for column, said in cells.items() if _WHAT.fullmatch(column))
        number = next((int(said) for said in cells.values() if said.isdecimal() and len(said) < 5), 0)
        draft = _Draft(_name(name) or _name(line.text), line.number, ordered=bool(number), number=number)
        for column, said in cells.items():
            if _FILES.fullmatch(column):
                _add(draft.files, paths(said))
            elif (topic := topic_of(column)) in (Topic.VERIFY, Topic.DONE) and said:
                draft.take(topic, said)
        self._begin(draft)

    def _sentences(self, line: Line, into: _Draft) -> None:
        """A line, and what is labelled after its first sentence."""
        labels = [*_INLINE.finditer(line.plain[:_SO_LONG])]
        if not labels:
            self._sentence(line, into)
            return
        self._sentence(_up_to(line, labels[0].start()), into)
        for label, following in zip(labels, [*labels[1:], None], strict=True):
            said = line.text[label.end() : following.start() if following else None].strip()
            into.take(topic_of(label["label"]), said[:_SO_LONG])

    def _sentence(self, line: Line, into: _Draft) -> None:
        topic, said = _label(line.text[:_SO_LONG])
        if topic in (Topic.VERIFY, Topic.DONE):
            if into is self._step and not into.level and line.text[:1].isalpha():
                into.trailing.append((topic, said))
            else:
                into.take(topic, said)
        elif (named := _LABEL.match(line.text[:_SO_LONG])) and _FILES.fullmatch(named["label"].strip()):
            _add(into.files, paths(named["rest"]))
        else:
            into.ordered = into.ordered or bool(_WAITS.search(line.plain[:_SO_LONG]))
            for waits in _COMES_AFTER.finditer(line.plain[:_SO_LONG]):
                into.waits_for.update(map(int, _DIGITS.findall(waits[1])))
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


def may_be_read_loosely(text: str) -> bool:
    """Whether anything in it looks like one of the forms in which steps are seldom written."""
    return bool(_SELDOM.search(text))


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


def _numbered(headings: dict[int, tuple[int, str, bool]]) -> dict[int, tuple[int, str, bool]]:
    """`## 1. Extract it` begins a step, unless the sections of the text are numbered as such."""
    numbered = [line for line, (level, said, _) in headings.items() if level > 1 and _NUMBER.match(said)]
    topics = {topic_of(headings[line][1]) for line in numbered}
    if len(numbered) < 2 or topics & {Topic.ASIDE, Topic.STEPS}:
        return headings
    steps = {line for line in numbered if topic_of(headings[line][1]) is Topic.NONE}
    return {line: (level, said, line in steps) for line, (level, said, _) in headings.items()}


def _is_of_tasks(columns: tuple[str, ...]) -> bool:
    """A column says what to do, and another one how far it goes."""
    further = any(
        _FILES.fullmatch(column) or column in ("#", "no", "nr") or topic_of(column).value for column in columns
    )
    return further and any(map(_WHAT.fullmatch, columns))


def _up_to(line: Line, end: int) -> Line:
    """The beginning of a line, with the code in it."""
    codes, at = [], 0
    for code in line.codes:
        at = line.text.find(code, at, end)
        if at < 0:
            break
        codes.append(code)
        at += len(code)
    return line._replace(text=line.text[:end], plain=line.plain[:end], codes=tuple(codes))


def _name(said: str) -> str:
    return shortened(said.replace("**", "").strip("*_# "), 120)


def _add(files: dict[str, None], found: Iterable[str]) -> None:
    for path in found:
        if len(files) < MOST_FILES:
            files[path] = None
