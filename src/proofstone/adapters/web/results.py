"""What a search found, in lines. Services agree on little but that each result has an address and some words.

A result is a block that ends with a blank line: its address, its title, an excerpt, each in one line. What a page says
of itself cannot begin a block, so that it speaks for its own address and for no other. What a service answers in any
other form is shown as it is, under a line that says so: nobody can tell there whose words are whose.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from pydantic import JsonValue

from proofstone.adapters.web.page import Page
from proofstone.core.agent.tool_rules import shortened

_MOST: Final = 20
_LONGEST: Final = 18_000
"""Characters of all results: what is cut afterwards would be cut without regard to where one ends."""
_ADDRESS: Final = 2000
_TITLE: Final = 300
_EXCERPT: Final = 1000
_DEEPEST: Final = 8
_ADDRESSES: Final = ("url", "link", "href")
_TITLES: Final = ("title", "name")
_EXCERPTS: Final = ("description", "snippet", "content", "text", "body", "summary", "excerpt")
_AS_IT_IS: Final = "[as the service put it: which words are those of which page cannot be told]"


def results_in(text: str) -> str:
    """The results of an answer in JSON, one after another; any other answer as it is."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return _as_it_is(text)
    found = map(_block, islice(_results(answer, 0), _MOST))
    return "\n\n".join(_fitting(found)) or _as_it_is(text)


def excerpts_in(shown: str) -> Iterator[Page]:
    """What is shown of which page; nothing where that cannot be told."""
    if shown.startswith(_AS_IT_IS):
        return
    for block in shown.split("\n\n"):
        address, _, words = block.partition("\n")
        yield Page((address,), words)


def _as_it_is(text: str) -> str:
    return f"{_AS_IT_IS}\n\n{text}" if text.strip() else ""


def _results(value: JsonValue, depth: int) -> Iterator[Mapping[str, JsonValue]]:
    """Every object with an address and a title, or some words about it; the outermost."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        if _first(value, _ADDRESSES) and _first(value, (*_TITLES, *_EXCERPTS)):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _results(one, depth + 1)


def _fitting(blocks: Iterable[str]) -> Iterator[str]:
    """As many whole ones as there is room for."""
    room = _LONGEST
    for block in blocks:
        room -= len(block) + 2
        if room < 0:
            return
        yield block


def _block(result: Mapping[str, JsonValue]) -> str:
    kinds = ((_ADDRESSES, _ADDRESS), (_TITLES, _TITLE), (_EXCERPTS, _EXCERPT))
    lines = (shortened(_first(result, names), longest) for names, longest in kinds)
    return "\n".join(filter(None, lines))


def _first(result: Mapping[str, JsonValue], names: tuple[str, ...]) -> str:
    """In one line."""
    texts = (result.get(name) for name in names)
    return next((" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip()), "")
