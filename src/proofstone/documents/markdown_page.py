"""Write a document as Markdown. Pure. Pictures are left out; remarks follow the part of the diff they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from proofstone.common.text import fence_text
from proofstone.documents.diff import DiffHunk, DiffLine, DiffLineKind, FileDiff
from proofstone.documents.markdown import (
    block_quote,
    code_span,
    escape_line_start,
    escape_markdown,
    show_line,
    table_lines,
)
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


def write_markdown(document: Document) -> str:
    """Return the whole page."""
    parts = [f"# {escape_markdown(document.title)}", *filter(None, map(_write_block, document.summary))]
    for section in document.sections:
        if body := "\n\n".join(filter(None, map(_write_block, section.blocks))):
            parts += [f"## {escape_markdown(section.title)}", body]
    return "\n\n".join(parts) + "\n"


def _write_block(block: Block) -> str:
    match block:
        case Paragraph(text=text):
            return escape_line_start(_write_inline(text))
        case Bullets(items=items):
            return "\n".join(f"- {escape_line_start(_write_inline(item))}" for item in items)
        case Quote(text=text):
            return block_quote(text)
        case CodeBlock(text=text, language=language):
            return fence_text("\n".join(map(show_line, text.splitlines())), language)
        case Heading(text=text):
            return f"### {escape_markdown(text)}"
        case Table(head=head, rows=rows):
            return "\n".join(table_lines(head, (tuple(map(_write_cell, row)) for row in rows)))
        case Picture():
            return ""
        case DiffBlock():
            return "\n\n".join(_write_diff(block))


def _write_inline(text: Inline) -> str:
    return "".join(map(_write_span, text))


def _write_cell(cell: Inline) -> str:
    """Return the text of a cell. A bar inside a code span would end the cell."""
    return "".join(
        _write_span(span).replace("|", "\\|") if span.style is SpanStyle.CODE else _write_span(span) for span in cell
    )


def _write_span(span: StyledText) -> str:
    start, end = (" " if span.text[:1] == " " else ""), (" " if len(span.text) > 1 and span.text[-1:] == " " else "")
    match span.style:
        case SpanStyle.CODE:
            return code_span(span.text)
        case SpanStyle.STRONG:
            return f"**{escape_markdown(span.text)}**"
    return f"{start}{escape_markdown(span.text)}{end}"


def _write_diff(block: DiffBlock) -> Iterator[str]:
    shown = {file.path for file in block.files}
    for file in block.files:
        yield from _write_file(file, [remark for remark in block.remarks if remark.path == file.path])
    others = [remark for remark in block.remarks if remark.path not in shown]
    if others:
        yield _write_remarks(others)
    if block.left_out:
        yield f"{escape_markdown(block.left_out)}."


def _write_file(file: FileDiff, remarks: Sequence[Remark]) -> Iterator[str]:
    yield f"### {code_span(file.path)} ({escape_markdown(file.change)}, +{file.added} −{file.removed})"
    new_lines = {line.new for hunk in file.hunks for line in hunk.lines if line.new is not None}
    if general := [remark for remark in remarks if remark.line not in new_lines]:
        yield _write_remarks(general)
    for hunk in file.hunks:
        yield fence_text("\n".join((_describe_hunk(hunk), *map(_write_line, hunk.lines))), "diff")
        numbers = {line.new for line in hunk.lines if line.new is not None}
        if here := [remark for remark in remarks if remark.line in numbers]:
            yield _write_remarks(here)
    if file.hidden:
        yield f"{file.hidden:,} more lines of this file are left out."


def _describe_hunk(hunk: DiffHunk) -> str:
    first = next((line for line in hunk.lines if line.new is not None or line.old is not None), None)
    return f"@@ line {(first.new or first.old) if first else 0} @@"


_SIGNS: Final = {
    DiffLineKind.ADDED: "+",
    DiffLineKind.REMOVED: "-",
    DiffLineKind.CONTEXT: " ",
    DiffLineKind.NOTE: "\\ ",
}


def _write_line(line: DiffLine) -> str:
    return f"{_SIGNS[line.kind]}{show_line(line.text)}"


def _write_remarks(remarks: Sequence[Remark]) -> str:
    lines: list[str] = []
    for remark in remarks:
        where = f"line {remark.line}: " if remark.line is not None else ""
        lines.append(f"- {where}{escape_line_start(_write_inline(remark.text))}")
        lines += [f"  - {escape_line_start(_write_inline(line))}" for line in remark.more]
    return "\n".join(lines)
