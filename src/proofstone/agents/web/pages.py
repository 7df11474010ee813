"""A page, as it was fetched and as it is shown: its addresses, a line each, then a blank line, then what it says.

Written and read back here: whoever looks up what a page says must not take the page's words for an address.

From what a server sent to text. Nothing that can be sent raises here, and nothing takes longer than it may.

`html.parser` reads what is unfinished from its beginning with every piece that comes, and is slow at what is no HTML; a
page made for it could keep it busy for hours. So a page is given up where one piece of it (a script, a comment) does
not end within `_UNFINISHED`, and when the time is over.

What a search found, in lines. Services agree on little but that each result has an address and some words.

A result is a block that ends with a blank line: its address, its title, an excerpt, each in one line. What a page says
of itself cannot begin a block, so that it speaks for its own address and for no other. What a service answers in any
other form is shown as it is, under a line that says so: nobody can tell there whose words are whose.
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

from proofstone.agents.rules.tool_rules import shortened


@dataclass(frozen=True)
class Page:
    addresses: tuple[str, ...]
    """Where it was asked for and, if that leads elsewhere, where it was in the end. Without fragments."""
    text: str

    def shown(self) -> str:
        return "\n".join((*self.addresses, "", self.text))


def page_in(shown: str) -> Page:
    head, _, text = shown.partition("\n\n")
    return Page(tuple(head.split("\n")), text)


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
"""How the names of those begin that spell texts. Python knows others, which would take hours or do something else."""
_LOOKED_AT: Final = 2048


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def is_text(header: str, body: bytes) -> bool:
    """By what the server says it is; where it says nothing, by what it sent."""
    return _TEXTS.fullmatch(media_type(header)) is not None and ("utf-16" in header.lower() or b"\0" not in body)


def text_of(header: str, body: bytes, over: Callable[[], bool] = lambda: False) -> str:
    """The text of a body whose content type is `header`; of HTML what a reader would see. `over`: the time is."""
    text = _decoded(header, body)
    return _seen(text, over) if media_type(header) in _HTML else text


def _decoded(header: str, body: bytes) -> str:
    said = _CHARSET.search(header) or _CHARSET.search(body[:_LOOKED_AT].decode("ascii", "replace"))
    return body.decode(_codec(said[1]) if said else "utf-8", "replace").removeprefix("\ufeff")


def _codec(name: str) -> str:
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        return "utf-8"
    return known if known.startswith(_CODECS) else "utf-8"


def _seen(html: str, over: Callable[[], bool]) -> str:
    page = _Page()
    for start in range(0, len(html), _PIECE):
        if over():
            return f"{page.text()}\n[the rest of the page takes too long to read]"
        page.feed(html[start : start + _PIECE])
        if len(page.rawdata) > _UNFINISHED:
            return f"{page.text()}\n[the rest of the page is not valid HTML]"
    return page.text()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._hidden = ""
        """The outermost tag that nobody sees into, while it is open."""
        self._depth = 0
        self._preformatted = 0

    def text(self) -> str:
        lines = ("".join(self._parts) + self._rest()).split("\n")
        kept = [line.rstrip() for line in lines]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")

    def _rest(self) -> str:
        """What the parser still holds back because a character reference could follow."""
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
        words = re.sub(r"\s+", " ", data)
        at_start = not self._parts or self._parts[-1].endswith(("\n", " "))
        self._parts.append(words.lstrip(" ") if at_start else words)

    def _break(self) -> None:
        if self._parts:
            self._parts.append("\n")


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
        for item in value:
            yield from _results(item, depth + 1)


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
