"""Write pictures as SVG: one file without scripts and without references to other files."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from proofstone.documents.markdown import make_visible


def svg_picture(width: float, height: float, parts: Iterable[str], *, title: str = "", told: str = "") -> str:
    """Return an SVG file. `title` and `told` describe the picture for people who cannot see it."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    accessibility = ' role="img" aria-labelledby="title told"' if title else ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}{accessibility} font-family="sans-serif" font-size="11">'
    description = (
        [f'<title id="title">{escape_xml(title)}</title>', f'<desc id="told">{escape_xml(told)}</desc>']
        if title
        else []
    )
    return "\n".join([head, *description, '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>", ""])


def svg_line(x1: float, y1: float, x2: float, y2: float, colour: str, wide: float = 1, *, dashes: str = "") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line {ends} stroke="{colour}" stroke-width="{wide}"{dashed}/>'


def svg_text(x: float, y: float, content: str, *, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape_xml(content)}</text>'


def escape_xml(content: str) -> str:
    """Return the text escaped for XML, without control characters, which XML forbids."""
    return escape(make_visible(content))
