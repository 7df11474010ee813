"""Fetched pages and search results as text.

A page is shown as its addresses, one per line, a blank line, and its text. It is written and parsed here, so that text
of a page is never taken for its address.

No response raises an error here or takes longer than allowed. `html.parser` rereads unfinished markup with every piece
and is slow for text that is not HTML; a hostile page could keep it busy for hours. So parsing stops when one part (a
script, a comment) does not end within `_UNFINISHED`, and when the time is over.

A search result is a block that ends with a blank line: its address, its title and an excerpt, one line each. The text
of a page cannot begin a block, so it cannot pose as another address. Answers of services in any other form are shown
unchanged, below a line that says so, because the text cannot be attributed to pages.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import islice
from typing import Final

from pydantic import JsonValue

from proofstone.agents.rules.tool_rules import shorten_text


@dataclass(frozen=True)
class WebPage:
    addresses: tuple[str, ...]
    """The requested address and, after redirects, the final one. Without fragments."""
    text: str

    def format_text(self) -> str:
        return "\n".join((*self.addresses, "", self.text))


def parse_page(shown: str) -> WebPage:
    head, _, text = shown.partition("\n\n")
    return WebPage(tuple(head.split("\n")), text)


_PIECE: Final = 16 << 10
_UNFINISHED: Final = 1 << 20
_HIDDEN: Final = frozenset({"script", "style", "template", "svg", "math", "iframe", "object", "noscript"})
_BLOCKS: Final = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "figure", "footer",
        "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section",
        "table", "title", "tr", "ul",
    }
)  # fmt: skip
_TEXTS: Final = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|toml|javascript|x-yaml|x-ndjson|rtf)|")
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_CODECS: Final = ("iso8859", "cp", "koi8", "euc", "gb", "big5", "shift_jis", "utf-16", "mac", "ascii", "hz")
"""Prefixes of the names of text codecs. Python's other codecs may take hours or do something else."""
_CHARSET_SEARCH_BYTES: Final = 2048


def parse_media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def is_text(header: str, body: bytes) -> bool:
    """Return whether a body is text, by its content type, and by its bytes if there is none."""
    return _TEXTS.fullmatch(parse_media_type(header)) is not None and ("utf-16" in header.lower() or b"\0" not in body)


def extract_page_text(header: str, body: bytes, over: Callable[[], bool] = lambda: False) -> str:
    """Return the text of a body with this content type; for HTML, the visible text. `over` says if time is up."""
    text = _decode(header, body)
    return _extract_visible(text, over) if parse_media_type(header) in _HTML else text


def _decode(header: str, body: bytes) -> str:
    charset = _CHARSET.search(header) or _CHARSET.search(body[:_CHARSET_SEARCH_BYTES].decode("ascii", "replace"))
    return body.decode(_find_codec(charset[1]) if charset else "utf-8", "replace").removeprefix("\ufeff")


def _find_codec(name: str) -> str:
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return "utf-8"
    return codec if codec.startswith(_CODECS) else "utf-8"


def _extract_visible(html: str, over: Callable[[], bool]) -> str:
    extractor = _TextExtractor()
    for start in range(0, len(html), _PIECE):
        if over():
            return f"{extractor.text()}\n[the rest of the page takes too long to read]"
        extractor.feed(html[start : start + _PIECE])
        if len(extractor.rawdata) > _UNFINISHED:
            return f"{extractor.text()}\n[the rest of the page is not valid HTML]"
    return extractor.text()


class _TextExtractor(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._hidden = ""
        """The outermost open tag whose content is invisible."""
        self._depth = 0
        self._preformatted = 0

    def text(self) -> str:
        lines = ("".join(self._parts) + self._rest()).split("\n")
        stripped = [line.rstrip() for line in lines]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(stripped)).strip("\n")

    def _rest(self) -> str:
        """Return the text that the parser holds back because a character reference could follow."""
        return "" if self._hidden or "<" in self.rawdata else self.rawdata

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden or tag in _HIDDEN:
            self._hidden = self._hidden or tag
            self._depth += tag == self._hidden
            return
        if tag in _BLOCKS:
            self._break()
        elif tag in ("td", "th"):
            self._parts.append(" ")
        self._preformatted += tag == "pre"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS and not self._hidden:
            self._break()

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._depth -= tag == self._hidden
            self._hidden = self._hidden if self._depth else ""
            return
        if tag in _BLOCKS:
            self._break()
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._preformatted:
            self._parts.append(data)
            return
        excerpt = re.sub(r"\s+", " ", data)
        at_start = not self._parts or self._parts[-1].endswith(("\n", " "))
        self._parts.append(excerpt.lstrip(" ") if at_start else excerpt)

    def _break(self) -> None:
        if self._parts:
            self._parts.append("\n")


_MOST: Final = 20
_LONGEST: Final = 18_000
"""The length of all results together. Longer text would be cut later, in the middle of a result."""
_ADDRESS: Final = 2000
_TITLE: Final = 300
_EXCERPT: Final = 1000
_DEEPEST: Final = 8
_ADDRESSES: Final = ("url", "link", "href")
_TITLES: Final = ("title", "name")
_EXCERPTS: Final = ("description", "snippet", "content", "text", "body", "summary", "excerpt")
_UNCHANGED: Final = "[as the service put it: which words are those of which page cannot be told]"
"""Recorded results are read back by this line, so its text is a format and must not change."""


def format_results(text: str) -> str:
    """Return the results of a JSON answer as blocks; return any other answer unchanged."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return _mark_unchanged(text)
    blocks = map(_format_result, islice(_find_results(answer, 0), _MOST))
    return "\n\n".join(_limit_length(blocks)) or _mark_unchanged(text)


def parse_results(shown: str) -> Iterator[WebPage]:
    """Yield the page of each result; nothing if the text cannot be attributed to pages."""
    if shown.startswith(_UNCHANGED):
        return
    for block in shown.split("\n\n"):
        address, _, excerpt = block.partition("\n")
        yield WebPage((address,), excerpt)


def _mark_unchanged(text: str) -> str:
    return f"{_UNCHANGED}\n\n{text}" if text.strip() else ""


def _find_results(value: JsonValue, depth: int) -> Iterator[Mapping[str, JsonValue]]:
    """Yield the outermost objects that have an address and a title or an excerpt."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        if _first(value, _ADDRESSES) and _first(value, (*_TITLES, *_EXCERPTS)):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list):
        for element in value:
            yield from _find_results(element, depth + 1)


def _limit_length(blocks: Iterable[str]) -> Iterator[str]:
    """Yield as many whole blocks as fit."""
    room = _LONGEST
    for block in blocks:
        room -= len(block) + 2
        if room < 0:
            return
        yield block


def _format_result(result: Mapping[str, JsonValue]) -> str:
    kinds = ((_ADDRESSES, _ADDRESS), (_TITLES, _TITLE), (_EXCERPTS, _EXCERPT))
    lines = (shorten_text(_first(result, names), longest) for names, longest in kinds)
    return "\n".join(filter(None, lines))


def _first(result: Mapping[str, JsonValue], names: tuple[str, ...]) -> str:
    """Return the first of the fields that has text, in one line."""
    texts = (result.get(name) for name in names)
    return next((" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip()), "")
