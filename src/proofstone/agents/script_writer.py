"""Write a script: entries as readable YAML that `read_script` reads back unchanged.

Text of several lines is written as a block, or quoted if a block would not preserve it exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from proofstone.agents.script_file import ONE_REQUEST, ScriptCall, ScriptEntry, ScriptFault, ScriptStep
from proofstone.common.models import Usage

_UNLIMITED_WIDTH = 1 << 30
"""The width of lines, so large that no line is folded."""


def format_script(entries: Iterable[ScriptEntry], comment: str = "") -> str:
    """Return the entries as the text of a script, below the comment."""
    remarks = [f"# {line}".rstrip() + "\n" for line in comment.splitlines() if line.isprintable()]
    items = [*map(_dump_entry, entries)] or ["[]\n"]
    return "\n".join((*(["".join(remarks)] if remarks else []), *items))


def _dump_entry(entry: ScriptEntry) -> str:
    """Return an entry as an item of a YAML list, with its lines indented by two columns."""
    yaml = YAML(typ="rt", pure=True)
    yaml.width = _UNLIMITED_WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    output = StringIO()
    yaml.dump(_build_entry(entry), output)
    first, *others = output.getvalue().removesuffix("\n").split("\n")
    return "\n".join((f"- {first}", *(f"  {line}" if line else "" for line in others))) + "\n"


def _build_entry(entry: ScriptEntry) -> CommentedMap:
    mapping = CommentedMap(role=entry.role)
    if entry.match:
        mapping["match"] = _flow_mapping({word: _build_match(values) for word, values in entry.match.items()})
    if entry.usage != ONE_REQUEST:
        mapping["usage"] = _flow_mapping(_build_usage(entry.usage))
    if entry.steps:
        mapping["steps"] = [_build_step(step) for step in entry.steps]
    if entry.output is not None:
        mapping["output"] = _build_value(entry.output)
    if entry.raw is not None:
        mapping["raw"] = _build_text(entry.raw)
    return mapping


def _build_match(values: Sequence[str]) -> object:
    patterns = [_number_or_text(value) for value in values]
    return patterns[0] if len(patterns) == 1 else CommentedSeq(patterns)


def _number_or_text(value: str) -> int | str:
    is_number = value.isascii() and value.isdecimal() and (value == "0" or value[0] != "0")
    return int(value) if is_number else _quote_if_needed(value)


def _build_usage(usage: Usage) -> dict[str, object]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "usd": usage.usd}


def _build_step(step: ScriptStep) -> dict[str, object]:
    if step.calls:
        calls = [_build_call(call) for call in step.calls]
        return {"tool": calls[0]} if len(calls) == 1 else {"tools": calls}
    if step.breakdown:
        return {step.name: _build_breakdown(step.breakdown)}
    match step.name:
        case "sleep":
            return {"sleep": step.seconds}
        case "say" | "fail":
            return {step.name: _build_text(step.parameters["text"])}
    return {step.name: {word: _build_text(value) for word, value in step.parameters.items()}}


def _build_call(call: ScriptCall) -> dict[str, object]:
    return {_quote_if_needed(call.name): _build_value(call.arguments)}


def _build_breakdown(breakdown: ScriptFault) -> CommentedMap:
    times = {} if breakdown.times is None else {"times": breakdown.times}
    return _flow_mapping({"kind": breakdown.kind.value, "why": _quote_if_needed(breakdown.why), **times})


def _flow_mapping(values: Mapping[str, object]) -> CommentedMap:
    mapping = CommentedMap(values)
    mapping.fa.set_flow_style()
    return mapping


def _build_value(value: JsonValue) -> object:
    match value:
        case str():
            return _build_text(value)
        case list():
            return [_build_value(item) for item in value]
        case dict():
            return {_quote_if_needed(key): _build_value(inner) for key, inner in value.items()}
    return value


def _build_text(text: str) -> str:
    if "\n" not in text or not _fits_block(text):
        return _quote_if_needed(text)
    block: str = LiteralScalarString(text)
    return block


def _quote_if_needed(text: str) -> str:
    quoted: str = DoubleQuotedScalarString(text)
    return text if text.isprintable() else quoted


def _fits_block(text: str) -> bool:
    """Return whether a block preserves the text: all lines are printable, and the first and last are not blank."""
    lines = text.removesuffix("\n").split("\n")
    is_printable = all(line.replace("\t", "").isprintable() for line in lines)
    return is_printable and not lines[0][:1].isspace() and all(line.strip() for line in (lines[0], lines[-1]))
