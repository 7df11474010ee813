"""Whether a step means to create a file or to change one that is there, by the words before its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from proofstone.core.plan.tags import Span

_BEFORE = 120
_AFTER = 80
_MOST_MENTIONS = 10
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
"""Not within a path: `new.py` says nothing. Nor a noun: `the port`."""
_VERB_AFTER = re.compile(
    r"[`*\"']*\s+(?:[^\W\d]{1,20}\s+){0,3}"
    r"(?:(?P<create>anlegen|erstellen|schreiben|hinzufügen)|(?P<change>ändern|anpassen|erweitern|korrigieren))\b",
    re.IGNORECASE,
)
"""German says it last: `src/a.py` ändern."""
_PLACE = re.compile(r"\b(?:in|to|into|from|of|at|within)\s+(?:the\s+)?(?:file\s+)?[`*\"']*$", re.IGNORECASE)
_REMARK = re.compile(r"[`*\"']*\s*(?:\(|—|–|-)\s*(?:new|neu|create)", re.IGNORECASE)


_IS_NEW = re.compile(_NEW, re.IGNORECASE)
_ASIDE = re.compile(
    r"\b(?:see|as|like|per|read|follow(?:s|ing)?|according|us(?:e|es|ing)|via|with|by|than|not|never|without|don't"
    r"|imports?|described|because|so that|which|while|when|if|before|after|run|match(?:es|ing)?)\b",
    re.IGNORECASE,
)
"""Words after which a file is spoken of rather than worked on."""
_PERHAPS = re.compile(r"[`*\"']*,?\s+(?:if|where|when|should|unless)\b", re.IGNORECASE)


class Intent(Enum):
    CREATE = "create"
    CHANGE = "change"
    UNSAID = "unsaid"


def intent(text: str, path: str) -> Intent:
    """What the text means to do with the path; where it speaks of it twice, creating comes first."""
    found = {_at(text, span) for span in _mentions(text, path)}
    return next((one for one in (Intent.CREATE, Intent.CHANGE) if one in found), Intent.UNSAID)


def is_to_change(text: str, path: str) -> bool:
    """Whether the text plainly says to change the file, and nowhere to create it."""
    return intent(text, path) is Intent.CHANGE and any(
        _at(text, span) is Intent.CHANGE
        and not _ASIDE.search(_sentence_before(text, span))
        and not _PERHAPS.match(text[span.end : span.end + _AFTER])
        for span in _mentions(text, path)
    )


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
    after = text[span.end : span.end + _AFTER]
    if _REMARK.match(after):
        return Intent.CREATE
    if said := _VERB_AFTER.match(after):
        return Intent.CREATE if said["create"] else Intent.CHANGE
    before = _sentence_before(text, span)
    verbs = [*_VERB.finditer(before)]
    if not verbs:
        return Intent.UNSAID
    last = verbs[-1]
    if last["change"]:
        return Intent.CHANGE
    return Intent.UNSAID if _PLACE.search(before) and not _IS_NEW.fullmatch(last[0]) else Intent.CREATE


def _sentence_before(text: str, span: Span) -> str:
    return _SENTENCE.split(text[max(0, span.start - _BEFORE) : span.start])[-1]
