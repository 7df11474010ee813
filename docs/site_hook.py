"""What `mkdocs` does to a page: links that lead out of the manual become the path of the file.

The site has no copy of the source, so such a link would lead nowhere.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:  # noqa: ANN401  mkdocs has no types for it
    """Return the page without links that lead out of the manual; `mkdocs` calls this."""
    return write_outside_links(markdown, page.file.src_uri)


def write_outside_links(markdown: str, path: str) -> str:
    """Replace each link that leads out of the folder of the manual by its text and the path of the file."""

    def replace(match: re.Match[str]) -> str:
        target = match["target"]
        if "://" in target or not target.startswith("../"):
            return match[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if not place.startswith("../"):
            return match[0]
        file = place.removeprefix("../")
        text = match["text"]
        return text if file in text else f"{text} (`{file}`)"

    return _LINK.sub(replace, markdown)
