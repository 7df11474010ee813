"""What a search found, in lines. Services agree on little but that each result has an address and some words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from pydantic import JsonValue

from assay.core.agent.tool_rules import shortened

_MOST: Final = 20
_EXCERPT: Final = 1000
_DEEPEST: Final = 8
_ADDRESSES: Final = ("url", "link", "href")
_TITLES: Final = ("title", "name")
_EXCERPTS: Final = ("description", "snippet", "content", "text", "body", "summary", "excerpt")


def results_in(text: str) -> str:
    """The results of an answer in JSON, one after another; any other answer as it is."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return text
    found = [_lines(one) for one in islice(_results(answer, 0), _MOST)]
    return "\n\n".join(found) if found else text


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


def _lines(result: Mapping[str, JsonValue]) -> str:
    parts = (_first(result, _TITLES), _first(result, _ADDRESSES), shortened(_first(result, _EXCERPTS), _EXCERPT))
    return "\n".join(filter(None, parts))


def _first(result: Mapping[str, JsonValue], names: tuple[str, ...]) -> str:
    texts = (result.get(name) for name in names)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
