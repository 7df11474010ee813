"""Writes a script: entries as YAML that people can read and `read_script` reads back to the same entries.

Text over several lines stands as it is, in a block. Where a block could not give it back exactly, it is quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from proofstone.agents.script_file import ONE_REQUEST, Breakdown, Call, Entry, Step
from proofstone.common.models import Usage

_FOR_EVER = 1 << 30
"""Columns: no line is folded."""


def script_text(entries: Iterable[Entry], comment: str = "") -> str:
    """The entries as a script, below the comment."""
    remarks = [f"# {line}".rstrip() + "\n" for line in comment.splitlines() if line.isprintable()]
    items = [*map(_item, entries)] or ["[]\n"]
    return "\n".join((*(["".join(remarks)] if remarks else []), *items))


def _item(entry: Entry) -> str:
    """As an item of the list, with what belongs to it two columns to the right."""
    yaml = YAML(typ="rt", pure=True)
    yaml.width = _FOR_EVER
    yaml.indent(mapping=2, sequence=4, offset=2)
    into = StringIO()
    yaml.dump(_entry(entry), into)
    first, *others = into.getvalue().removesuffix("\n").split("\n")
    return "\n".join((f"- {first}", *(f"  {line}" if line else "" for line in others))) + "\n"


def _entry(entry: Entry) -> CommentedMap:
    written = CommentedMap(role=entry.role)
    if entry.match:
        written["match"] = _on_one_line({word: _matched(values) for word, values in entry.match.items()})
    if entry.usage != ONE_REQUEST:
        written["usage"] = _on_one_line(_usage(entry.usage))
    if entry.steps:
        written["steps"] = [_step(step) for step in entry.steps]
    if entry.output is not None:
        written["output"] = _value(entry.output)
    if entry.raw is not None:
        written["raw"] = _text(entry.raw)
    return written


def _matched(values: Sequence[str]) -> object:
    said = [_number_or_text(value) for value in values]
    return said[0] if len(said) == 1 else CommentedSeq(said)


def _number_or_text(value: str) -> int | str:
    is_number = value.isascii() and value.isdecimal() and (value == "0" or value[0] != "0")
    return int(value) if is_number else _on_a_line(value)


def _usage(usage: Usage) -> dict[str, object]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "usd": usage.usd}


def _step(step: Step) -> dict[str, object]:
    if step.calls:
        calls = [_call(call) for call in step.calls]
        return {"tool": calls[0]} if len(calls) == 1 else {"tools": calls}
    if step.breakdown:
        return {step.name: _breakdown(step.breakdown)}
    match step.name:
        case "sleep":
            return {"sleep": step.seconds}
        case "say" | "fail":
            return {step.name: _text(step.given["text"])}
    return {step.name: {word: _text(value) for word, value in step.given.items()}}


def _call(call: Call) -> dict[str, object]:
    return {_on_a_line(call.name): _value(call.arguments)}


def _breakdown(breakdown: Breakdown) -> CommentedMap:
    times = {} if breakdown.times is None else {"times": breakdown.times}
    return _on_one_line({"kind": breakdown.kind.value, "why": _on_a_line(breakdown.why), **times})


def _on_one_line(values: Mapping[str, object]) -> CommentedMap:
    written = CommentedMap(values)
    written.fa.set_flow_style()
    return written


def _value(value: JsonValue) -> object:
    match value:
        case str():
            return _text(value)
        case list():
            return [_value(item) for item in value]
        case dict():
            return {_on_a_line(key): _value(one) for key, one in value.items()}
    return value


def _text(text: str) -> str:
    if "\n" not in text or not _fits_a_block(text):
        return _on_a_line(text)
    block: str = LiteralScalarString(text)
    return block


def _on_a_line(text: str) -> str:
    quoted: str = DoubleQuotedScalarString(text)
    return text if text.isprintable() else quoted


def _fits_a_block(text: str) -> bool:
    """Its lines are seen as they are, and where it begins and ends too."""
    lines = text.removesuffix("\n").split("\n")
    visible = all(line.replace("\t", "").isprintable() for line in lines)
    return visible and not lines[0][:1].isspace() and all(line.strip() for line in (lines[0], lines[-1]))
