"""The tools that look at the web, through whoever the person has named. What they show is data, and bounded."""

from __future__ import annotations

from typing import Final

from proofstone.adapters.tools.ground import Deadline, Ground
from proofstone.adapters.web.page import Page
from proofstone.contracts.tools import WebFetch, WebSearch

MOST: Final = 20_000
"""Characters of one result."""
_HEAD: Final = 15_000


def search(ground: Ground, wanted: WebSearch, deadline: Deadline) -> str:
    if ground.web is None or ground.web.search is None:
        raise AssertionError("a toolbox offers a search only where somebody searches")
    found = ground.web.search(wanted.query, deadline.left, ground.cancel)
    return _bounded(found) or "It found nothing."


def fetch(ground: Ground, wanted: WebFetch, deadline: Deadline) -> str:
    """Under the page's addresses, which are shown whole: claims about the page are looked up by them."""
    if ground.web is None or ground.web.fetch is None:
        raise AssertionError("a toolbox offers pages only where somebody fetches them")
    page = ground.web.fetch(wanted.url, deadline.left, ground.cancel)
    return Page(page.addresses, _bounded(page.text) or "The page is empty.").shown()


def _bounded(text: str) -> str:
    """Without its middle, if it is long."""
    text = text.encode("utf-8", "replace").decode().strip()  # JSON can spell half a character
    left = len(text) - MOST
    if left <= 0:
        return text
    return f"{text[:_HEAD]}\n[{left:,} characters left out here]\n{text[_HEAD - MOST :]}"
