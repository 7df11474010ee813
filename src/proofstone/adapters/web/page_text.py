"""From what a server sent to text. Nothing that can be sent raises here, and nothing takes longer than it may.

`html.parser` reads what is unfinished from its beginning with every piece that comes, and is slow at what is no HTML; a
page made for it could keep it busy for hours. So a page is given up where one piece of it (a script, a comment) does
not end within `_UNFINISHED`, and when the time is over.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Final

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
