"""Whether a step means to create a file or to change one that is there, by the words before its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from assay.core.plan.tags import Span

_BEFORE = 120
_AFTER = 30
_MOST_MENTIONS = 10
_SENTENCE = re.compile(r"[.!?;]\s|[<>\n]\s*[-*+\d]|[<>]|\n\s*\n")
_CREATE = (
    r"creat(?:e|es|ed|ing)|add(?:s|ed|ing)?|new|neu|writ(?:e|es|ten|ing)|introduc(?:e|es|ed|ing)|generat(?:e|es|ed|ing)"
    r"|scaffold|mak(?:e|es|ing)|implement(?:s|ed|ing)?|build|extract(?:s|ed|ing)?|mov(?:e|es|ed|ing)|renam(?:e|es|ed|ing)"
    r"|copy|split|draft|describe|document"
)
_CHANGE = (
    r"modif(?:y|ies|ied|ying)|edit(?:s|ed|ing)?|fix(?:es|ed|ing)?|updat(?:e|es|ed|ing)|refactor(?:s|ed|ing)?"
    r"|extend(?:s|ed|ing)?|chang(?:e|es|ed|ing)|adapt|adjust|mend|patch|rewrite|delete|remove|replace|correct|rework"
    r"|simplify|existing"
)
_VERB = re.compile(rf"(?<![\w/.-])(?:(?P<create>{_CREATE})|(?P<change>{_CHANGE}))(?![\w/-]|\.\w)", re.IGNORECASE)
"""Not within a path: `new.py` says nothing."""
_PLACE = re.compile(r"\b(?:in|to|into|from|of|at|within)\s+(?:the\s+)?(?:file\s+)?[`*\"']*$", re.IGNORECASE)
_REMARK = re.compile(r"[`*\"']*\s*(?:\(|—|–|-)\s*(?:new|neu|create)", re.IGNORECASE)


class Intent(Enum):
    CREATE = "create"
    CHANGE = "change"
    UNSAID = "unsaid"


def intent(text: str, path: str) -> Intent:
    """What the text means to do with the path; where it speaks of it twice, creating comes first."""
    found = {_at(text, span) for span in _mentions(text, path)}
    return next((one for one in (Intent.CREATE, Intent.CHANGE) if one in found), Intent.UNSAID)


def tone(text: str) -> Intent:
    """What the text as a whole speaks of: anything new at all, or only of changing."""
    kinds = {verb.lastgroup for verb in _VERB.finditer(text)}
    return Intent.CREATE if "create" in kinds else Intent.CHANGE if kinds else Intent.UNSAID


def _mentions(text: str, path: str) -> Iterator[Span]:
    """Where the path stands, or its last part alone; a few places are enough."""
    for name in dict.fromkeys((path, path.rstrip("/").rpartition("/")[2])):
        at = text.find(name) if name else -1
        for _ in range(_MOST_MENTIONS):
            if at < 0:
                break
            if name == path or text[max(at - 1, 0)] != "/":
                yield Span(at, at + len(name))
            at = text.find(name, at + len(name))


def _at(text: str, span: Span) -> Intent:
    if _REMARK.match(text[span.end : span.end + _AFTER]):
        return Intent.CREATE
    before = _SENTENCE.split(text[max(0, span.start - _BEFORE) : span.start])[-1]
    verbs = [*_VERB.finditer(before)]
    if not verbs:
        return Intent.UNSAID
    last = verbs[-1]
    if last["change"]:
        return Intent.CHANGE
    return Intent.UNSAID if _PLACE.search(before) and last[0].lower() != "new" else Intent.CREATE
