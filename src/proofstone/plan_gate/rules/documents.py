"""The records of the plan gate as documents: YAML and JSON, read and written, and the schemas they follow. Pure.

A document names its record first, as the protocol does: `challenge:`, `unknown:` and so on. The text is composed into
nodes and not into values: a value stays as it was written (`claim: 010` is the text `010`), and whatever is wrong has
its line. A record refers to nothing in its own text, so anchors are refused, and with them everything that grows when
it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    IterationState,
    ProbedRisk,
    SurfacedContext,
    Unknown,
)
from proofstone.common.parsing import yaml_reader
from proofstone.documents.markdown import yaml
from proofstone.errors import InputError
from proofstone.plan_gate.models import PlanReport

Record: TypeAlias = Challenge | Unknown | SurfacedContext | ProbedRisk | IterationState

RECORDS: Final[Mapping[str, type[Record]]] = {
    "challenge": Challenge,
    "unknown": Unknown,
    "surfaced_context": SurfacedContext,
    "probed_risk": ProbedRisk,
    "iteration_state": IterationState,
}
"""By the key under which a document holds it."""
REPORT: Final = "plan_report"

_KEYS: Final = {kind: key for key, kind in RECORDS.items()}
_LONGEST: Final = 512 * 1024
_MOST_ERRORS: Final = 5
_NULL: Final = "tag:yaml.org,2002:null"
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7e]")
_QUOTE: Final = "a text with a colon, a bracket or a quotation mark in it stands in quotation marks"
_KNOWN: Final = f"a record stands under its name: {', '.join(RECORDS)}"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def to_yaml(record: Record) -> str:
    return yaml(_document(record)) + "\n"


def to_json(record: Record) -> str:
    return json.dumps(_document(record), ensure_ascii=False, indent=2) + "\n"


def from_text(text: str, source: str) -> Record:
    """The one record that the text holds, YAML or JSON. `source` names the text to whoever wrote it."""
    records = all_from_text(text, source)
    if len(records) != 1:
        raise InputError(f"{source}: there are {len(records)} records in it, and one is read", hint=_KNOWN)
    return records[0]


def all_from_text(text: str, source: str) -> tuple[Record, ...]:
    """Every record in it, in order: one below the other, in a list, or in several YAML documents."""
    if len(text) > _LONGEST:
        raise InputError(f"{source}: larger than {_LONGEST // 1024} KiB", hint="records are read a few at a time")
    reading = _Reading(source)
    records = tuple(record for root in reading.composed(text) for record in reading.records(root))
    if not records:
        raise InputError(f"{source}: there is no record in it", hint=_KNOWN)
    return records


def schemas() -> dict[str, dict[str, Any]]:
    """A JSON Schema for the documents of each record, by its name, and one for the report."""
    wrapped = {key: _wrapped(key, kind) for key, kind in RECORDS.items()}
    return {**wrapped, REPORT: {"$schema": _DRAFT, **PlanReport.model_json_schema()}}


def _document(record: Record) -> dict[str, Any]:
    return {_KEYS[type(record)]: record.model_dump(mode="json")}


def _wrapped(key: str, kind: type[Record]) -> dict[str, Any]:
    schema = kind.model_json_schema()
    parts = schema.pop("$defs", {})
    return {
        "$schema": _DRAFT,
        "title": key,
        "type": "object",
        "properties": {key: {"$ref": f"#/$defs/{kind.__name__}"}},
        "required": [key],
        "additionalProperties": False,
        "$defs": {**parts, kind.__name__: schema},
    }


class _Reading:
    """One text, which comes from `source`."""

    def __init__(self, source: str) -> None:
        self._source = source

    def composed(self, text: str) -> list[Node]:
        try:
            roots = list(yaml_reader().compose_all(_as_yaml(text)))
        except (YAMLError, ValueError, OverflowError, RecursionError) as error:
            line, why = _trouble(text, error)
            raise InputError(f"{self._source}:{line}: neither YAML nor JSON: {why}", hint=_QUOTE) from error
        return [root for root in roots if not _is_null(root)]

    def records(self, node: Node) -> Iterator[Record]:
        self._refuse_anchor(node)
        if isinstance(node, SequenceNode):
            for item in node.value:
                yield from self.records(item)
            return
        if not isinstance(node, MappingNode):
            raise self._wrong(node, "this is no record", _KNOWN)
        for key, value in self._items(node).items():
            if key not in RECORDS:
                raise self._wrong(node, f"`{key}` is the name of no record", _KNOWN, (key,))
            yield self._record(key, value, node)

    def _record(self, key: str, node: Node, root: Node) -> Record:
        value = self._value(node)
        try:
            return RECORDS[key].model_validate(value)
        except ValidationError as error:
            (first, *others) = error.errors()[:_MOST_ERRORS]
            line = _line(root, (key, *first["loc"]))
            more = "".join(f"; line {_line(root, (key, *other['loc']))}: {_in_words(key, other)}" for other in others)
            fields = f"a {key} has {', '.join(RECORDS[key].model_fields)}"
            raise InputError(f"{self._source}:{line}: {_in_words(key, first)}{more}", hint=fields) from error

    def _value(self, node: Node) -> object:
        self._refuse_anchor(node)
        if isinstance(node, MappingNode):
            return {key: self._value(value) for key, value in self._items(node).items()}
        if isinstance(node, SequenceNode):
            return [self._value(item) for item in node.value]
        return None if _is_null(node) else self._text(node)

    def _refuse_anchor(self, node: Node) -> None:
        if node.anchor:
            raise self._wrong(node, f"an anchor, `&{node.anchor}`", "write it out where it is meant")

    def _items(self, node: MappingNode) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for key, value in node.value:
            name = self._text(key) if isinstance(key, ScalarNode) else ""
            if not name:
                raise self._wrong(key, "a key that is no word", "write `name: value`")
            if name in found:
                raise self._wrong(key, f"`{name}` a second time", "put `---` between two records of one kind")
            found[name] = value
        return found

    def _text(self, node: Node) -> str:
        """JSON writes a character beyond the first plane as two halves."""
        try:
            return str(node.value).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self._wrong(node, "half of a character", "write both halves, or the character itself") from error

    def _wrong(self, node: Node, what: str, hint: str, path: tuple[str, ...] = ()) -> InputError:
        return InputError(f"{self._source}:{_line(node, path)}: {what}", hint=hint)


def _as_yaml(text: str) -> str:
    """JSON is YAML too, once all that YAML would not read as it stands is written out."""
    text = text.removeprefix("\ufeff")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text  # then it is YAML, or nothing that can be read
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1].replace("\x7f", "\\u007f"), text)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == _NULL


def _line(node: Node, path: tuple[int | str, ...]) -> int:
    """Of what the path leads to, or of the last thing on the way that is there."""
    line = node.start_mark.line
    for step in path:
        match node:
            case MappingNode():
                found = next(((key, value) for key, value in node.value if key.value == step), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line, found[1]
            case SequenceNode() if isinstance(step, int):
                node = node.value[step]
                line = node.start_mark.line
            case _:
                break
    return int(line) + 1


def _trouble(text: str, error: Exception) -> tuple[int, str]:
    """The line, and what is wrong there."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return int(error.problem_mark.line) + 1, str(error.problem).partition("\n")[0]
    if isinstance(error, ReaderError):
        return text.count("\n", 0, error.position) + 1, str(error.reason)
    return 1, "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]


def _in_words(key: str, error: ErrorDetails) -> str:
    place = ".".join((key, *map(str, error["loc"])))
    match error["type"]:
        case "missing":
            return f"{place} is missing"
        case "extra_forbidden":
            return f"{place}: there is no such field"
        case "model_type" | "model_attributes_type":
            return f"{place}: must hold fields"
        case _:
            words = error["msg"].removeprefix("Value error, ")
            return f"{place}: {words[0].lower()}{words[1:]}"
