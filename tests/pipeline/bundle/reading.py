"""How browsers and readers of Markdown would take a page."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

HOSTILE = (
    "<script>alert(1)</script> </td></table> <img src=x onerror=alert(1)> ]]> &lt; \"' -->\n"
    "# Forged\n---\n===\n- item\n1. one\n> quote\n```\n~~~\n| a | b |\n|---|---|\n"
    "[link](https://evil.example) ![pic](https://evil.example/p.png) [ref]: https://evil.example\n"
    "\x1b[2J\x07\u202e\u2028 key: value\n- {a: 1}\n&anchor *alias !!python/object ``` ```` end"
)
"""Markup, control characters and the beginnings of everything."""


class Html(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.headings: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], "every tag that is opened is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1] in ("h1", "h2", "h3"):
            self.headings[-1] += data


class Markdown:
    """The headings of a page, and whatever in it is more than text."""

    def __init__(self, text: str) -> None:
        tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
        inline = [child for token in tokens for child in token.children or ()]
        self.headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
        self.kinds = {token.type for token in (*tokens, *inline)}
        self.in_quotes = self._quoted(tokens)

    @staticmethod
    def _quoted(tokens: Sequence[Token]) -> set[str]:
        found: set[str] = set()
        depth = 0
        for token in tokens:
            depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
            if depth and token.type != "blockquote_open":
                found.add(token.type)
        return found


MORE_THAN_TEXT = {"html_block", "html_inline", "link_open", "image", "hr"}
