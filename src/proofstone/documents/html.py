"""Write a document as one HTML page. Pure.

The page loads nothing, runs nothing and escapes everything. Its content security policy forbids scripts and external
resources, in case text ever slipped through. It can be read in light and dark mode, on a wide and on a narrow screen,
and on paper. On a narrow screen each row of a table becomes a block, with the column's title before each value. Words
are never broken: long paths may wrap after their separators, and what is still too wide scrolls in its own box.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from proofstone.documents.diff import DiffLine, DiffLineKind, FileDiff
from proofstone.documents.markdown import make_visible, show_line
from proofstone.documents.model import (
    Block,
    Bullets,
    CodeBlock,
    DiffBlock,
    Document,
    Heading,
    Inline,
    Paragraph,
    Picture,
    Quote,
    Remark,
    SpanStyle,
    StyledText,
    Table,
)

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fff; --line: #d8dee4; --soft: #59636e; --shade: #f6f8fa;
  --good: #17692b; --bad: #b3261e; --unsure: #8a5a00; --added: #e6f6ea; --removed: #fdecea; --note: #fff8e5 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0f1318; --line: #30363d; --soft: #9aa4af;
  --shade: #171c23; --good: #6fd08c; --bad: #ff8a80; --unsure: #f0c060; --added: #12301c; --removed: #3a1a1a;
  --note: #2b2413 } }
* { box-sizing: border-box }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 72rem;
  margin: 2rem auto; padding: 0 1.25rem; overflow-wrap: break-word }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem }
h2 { font-size: 1.15rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; margin: 2.25rem 0 .75rem }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem } p { margin: .5rem 0 } ul { margin: .5rem 0; padding-left: 1.25rem }
li { margin: .2rem 0 }
header { border: 1px solid var(--line); border-left: .4rem solid var(--soft); border-radius: .4rem;
  background: var(--shade); padding: 1rem 1.25rem }
header.good { border-left-color: var(--good) } header.bad { border-left-color: var(--bad) }
header.unsure { border-left-color: var(--unsure) }
code, pre, .diff { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .87em }
pre { background: var(--shade); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .9rem;
  overflow-x: auto }
blockquote { margin: .5rem 0; padding: .1rem 1rem; border-left: .25rem solid var(--line); white-space: pre-line }
.wide { overflow-x: auto } svg { max-width: 100%; height: auto; border-radius: .4rem }
table { border-collapse: collapse; width: 100%; font-size: .93em }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line) }
.rows td:first-child { white-space: nowrap }
th { color: var(--soft); font-weight: 600; white-space: nowrap }
.faint { color: var(--soft); font-size: .87em } .good { color: var(--good) } .bad { color: var(--bad) }
.unsure { color: var(--unsure) } header.good, header.bad, header.unsure { color: inherit }
.file { border: 1px solid var(--line); border-radius: .4rem; margin: .75rem 0; overflow: hidden }
.file > h3 { margin: 0; padding: .45rem .75rem; background: var(--shade); font-size: .93rem; font-weight: 600 }
.file > p { margin: 0; padding: .35rem .75rem; border-top: 1px solid var(--line) }
.lines { overflow-x: auto; border-top: 1px solid var(--line) }
.diff { border: 0; width: 100%; min-width: max-content; line-height: 1.45 }
.diff td { border: 0; padding: 0 .75rem 0 0; white-space: pre; tab-size: 4 }
.diff td.note { padding: 0 }
.diff .n { width: 1%; min-width: 3em; padding: 0 .5rem; text-align: right; color: var(--soft); user-select: none }
.diff .added td { background: var(--added) } .diff .removed td { background: var(--removed) }
.diff .gap td { border-top: 1px dashed var(--line) }
.remark { border-left: .25rem solid var(--soft); background: var(--note); padding: .45rem .75rem; margin: 0;
  font: 14px/1.5 system-ui, sans-serif; white-space: normal; overflow-wrap: break-word }
.diff .remark { position: sticky; left: 0; width: calc(min(69.5rem, 100vw - 2.5rem) - 2px) }
.remark.bad { border-left-color: var(--bad); color: inherit }
.remark.unsure { border-left-color: var(--unsure); color: inherit }
.remark p { margin: .15rem 0 }
@media (max-width: 44rem) {
  body { margin: 1rem auto; padding: 0 .9rem } h1 { font-size: 1.25rem } .diff .old { display: none }
  .diff .remark { width: calc(100vw - 1.8rem - 2px) }
  table.rows, .rows tbody, .rows tr, .rows td { display: block } .rows thead { display: none }
  .rows tr { border: 1px solid var(--line); border-radius: .4rem; padding: .4rem .75rem; margin: .5rem 0 }
  .rows td, .rows td:first-child { border: 0; padding: .1rem 0; white-space: normal } .rows td.empty { display: none }
  .rows td::before { content: attr(data-title) " "; color: var(--soft); font-size: .87em } }
@media print { body { max-width: none; margin: 0 } h2, h3 { break-after: avoid } tr, .remark { break-inside: avoid }
  .diff td { white-space: pre-wrap } }
"""
_BREAKABLE: Final = re.compile(r"(?<=[/:._=,@])(?=\w)|(?<=\w)(?=-{1,2}\w)")


def write_html(document: Document, tone: str = "") -> str:
    """Return the whole page. `tone` colours the summary: `good`, `bad` or `unsure`."""
    title = escape_html(document.title)
    parts = [
        f'<header class="{tone or "plain"}">',
        f"<h1>{title}</h1>",
        *map(_write_block, document.summary),
        "</header>",
    ]
    for section in document.sections:
        if section.blocks:
            body = "\n".join(map(_write_block, section.blocks))
            parts.append(f"<section>\n<h2>{escape_html(section.title)}</h2>\n{body}\n</section>")
    head = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body>\n</html>\n"


def escape_html(text: str) -> str:
    """Return the text on one line, with invisible characters written as escapes."""
    return escape(make_visible(text))


def _write_block(block: Block) -> str:
    match block:
        case Paragraph(text=text):
            return f"<p>{_write_inline(text)}</p>"
        case Bullets(items=items):
            lines = "\n".join(f"<li>{_write_inline(item)}</li>" for item in items)
            return f"<ul>\n{lines}\n</ul>"
        case Quote(text=text):
            return f"<blockquote>{_write_lines(text.strip().splitlines())}</blockquote>"
        case CodeBlock(text=text):
            return f"<pre>{_write_lines(text.splitlines())}</pre>"
        case Heading(text=text):
            return f"<h3>{escape_html(text)}</h3>"
        case Table():
            return "\n".join(_write_table(block))
        case Picture(svg=svg):
            return f'<div class="wide">{svg}</div>'
        case DiffBlock():
            return "\n".join(_write_diff(block))


def _write_lines(lines: Iterable[str]) -> str:
    return "\n".join(escape(show_line(line)) for line in lines)


def _write_inline(text: Inline) -> str:
    return "".join(map(_write_span, text))


def _write_span(span: StyledText) -> str:
    # Spaces at the ends are kept: they separate a span from the next one.
    shown = escape_html(span.text)
    start, end = (" " if span.text[:1] == " " else ""), (" " if len(span.text) > 1 and span.text[-1:] == " " else "")
    content = f"{start}{_allow_breaks(shown) if span.style is SpanStyle.CODE else shown}{end}"
    tone = f' class="{span.tone}"' if span.tone else ""
    match span.style:
        case SpanStyle.CODE:
            return f"<code>{content}</code>"
        case SpanStyle.STRONG:
            return f"<strong{tone}>{content}</strong>"
        case SpanStyle.FAINT:
            return f'<span class="faint">{content}</span>'
    return content


def _allow_breaks(escaped: str) -> str:
    """Allow a long path, option or id to wrap after its separators. Entities are left whole."""
    pieces = re.split(r"(&\w+;|&#\w+;)", escaped)
    return "".join(piece if piece.startswith("&") else _BREAKABLE.sub("<wbr/>", piece) for piece in pieces)


def _write_table(table: Table) -> Iterator[str]:
    titles = "".join(f"<th>{escape_html(title)}</th>" for title in table.head)
    yield f'<div class="wide"><table class="rows">\n<thead><tr>{titles}</tr></thead>\n<tbody>'
    for row in table.rows:
        yield f"<tr>{''.join(_write_cell(*pair) for pair in zip(table.head, row, strict=True))}</tr>"
    yield "</tbody></table></div>"


def _write_cell(title: str, cell: Inline) -> str:
    content = _write_inline(cell)
    empty = "" if content else ' class="empty"'
    return f'<td{empty} data-title="{escape_html(title)}">{content or "–"}</td>'


def _write_diff(block: DiffBlock) -> Iterator[str]:
    shown = {file.path for file in block.files}
    for file in block.files:
        yield from _write_file(file, [remark for remark in block.remarks if remark.path == file.path])
    yield from (_write_remark(remark) for remark in block.remarks if remark.path not in shown)
    if block.left_out:
        yield f"<p>{escape_html(block.left_out)}.</p>"


def _write_file(file: FileDiff, remarks: Sequence[Remark]) -> Iterator[str]:
    counts = f"{file.change}, +{file.added} −{file.removed}"
    yield '<div class="file">'
    name = _allow_breaks(escape_html(file.path))
    yield f'<h3><code>{name}</code> <span class="faint">{escape_html(counts)}</span></h3>'
    new_lines = {line.new for hunk in file.hunks for line in hunk.lines if line.new is not None}
    yield from (_write_remark(remark) for remark in remarks if remark.line not in new_lines)
    if file.hunks:
        yield '<div class="lines"><table class="diff"><tbody>'
        for number, hunk in enumerate(file.hunks):
            for position, line in enumerate(hunk.lines):
                yield _write_diff_line(line, is_after_gap=number > 0 and position == 0)
                for remark in remarks:
                    if line.new is not None and remark.line == line.new:
                        yield f'<tr><td class="note" colspan="3">{_write_remark(remark)}</td></tr>'
        yield "</tbody></table></div>"
    if file.hidden:
        yield f'<p class="faint">{file.hidden:,} more lines of this file are left out</p>'
    yield "</div>"


_SIGNS: Final = {DiffLineKind.ADDED: "+", DiffLineKind.REMOVED: "-", DiffLineKind.CONTEXT: " ", DiffLineKind.NOTE: " "}


def _write_diff_line(line: DiffLine, *, is_after_gap: bool) -> str:
    kinds = f"{line.kind} gap" if is_after_gap else str(line.kind)
    old, new = ("" if number is None else str(number) for number in (line.old, line.new))
    text = escape(f"{_SIGNS[line.kind]}{show_line(line.text)}")
    return f'<tr class="{kinds}"><td class="n old">{old}</td><td class="n">{new}</td><td>{text}</td></tr>'


def _write_remark(remark: Remark) -> str:
    lines = "".join(f"<p>{_write_inline(line)}</p>" for line in (remark.text, *remark.more))
    return f'<div class="remark {remark.tone or "plain"}">{lines}</div>'
