"""The tools that look at the web, through whoever the person has named. What they show is data, and bounded."""

from __future__ import annotations

from typing import Final

from assay.adapters.tools.ground import Deadline, Ground
from assay.adapters.web import Looking
from assay.contracts.tools import WebFetch, WebSearch

MOST: Final = 20_000
"""Characters of one result."""
_HEAD: Final = 15_000


def search(ground: Ground, wanted: WebSearch, deadline: Deadline) -> str:
    if ground.web is None or ground.web.search is None:
        raise AssertionError("a toolbox offers a search only where somebody searches")
    return _looked(ground.web.search, wanted.query, ground, deadline) or "It found nothing."


def fetch(ground: Ground, wanted: WebFetch, deadline: Deadline) -> str:
    if ground.web is None or ground.web.fetch is None:
        raise AssertionError("a toolbox offers pages only where somebody fetches them")
    page = _looked(ground.web.fetch, wanted.url, ground, deadline) or "The page is empty."
    # Before the first blank line stands the address, whoever fetched it: claims about the page are looked up by it.
    return page if page.startswith(wanted.url) else f"{wanted.url}\n\n{page}"


def _looked(look: Looking, wanted: str, ground: Ground, deadline: Deadline) -> str:
    text = look(wanted, deadline.left, ground.cancel)
    return _both_ends(text.encode("utf-8", "replace").decode().strip())  # JSON can spell half a character


def _both_ends(text: str) -> str:
    left = len(text) - MOST
    if left <= 0:
        return text
    return f"{text[:_HEAD]}\n[{left:,} characters left out here]\n{text[_HEAD - MOST :]}"
