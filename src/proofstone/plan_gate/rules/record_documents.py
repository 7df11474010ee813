"""The records of the plan gate as documents: reading and writing YAML and JSON, and their schemas. Pure.

A document names its record first, as the protocol does: `challenge:`, `unknown:` and so on. The text is composed into
nodes, not values: a value stays as written (`claim: 010` is the text `010`), and every problem has its line. A record
refers to nothing in its own text, so anchors are refused, and with them everything that grows when it is read.
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
from proofstone.common.parsing import make_yaml_reader
from proofstone.documents.markdown import format_yaml
from proofstone.errors import InputError
from proofstone.plan_gate.models import PlanReport

PlanRecord: TypeAlias = Challenge | Unknown | SurfacedContext | ProbedRisk | IterationState

RECORD_TYPES: Final[Mapping[str, type[PlanRecord]]] = {
    "challenge": Challenge,
    "unknown": Unknown,
    "surfaced_context": SurfacedContext,
    "probed_risk": ProbedRisk,
    "iteration_state": IterationState,
}
"""By the key under which a document contains the record."""
REPORT_NAME: Final = "plan_report"

_KEYS: Final = {kind: key for key, kind in RECORD_TYPES.items()}
_MAX_LENGTH: Final = 512 * 1024
_MAX_ERRORS: Final = 5
_NULL: Final = "tag:yaml.org,2002:null"
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7e]")
_QUOTE_HINT: Final = "put text with a colon, a bracket or a quotation mark into quotation marks"
_RECORD_HINT: Final = f"write a record under its name: {', '.join(RECORD_TYPES)}"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def write_yaml(record: PlanRecord) -> str:
    """Write a record as YAML."""
    return format_yaml(_make_document(record)) + "\n"


def write_json(record: PlanRecord) -> str:
    """Write a record as JSON."""
    return json.dumps(_make_document(record), ensure_ascii=False, indent=2) + "\n"


def read_record(text: str, source: str) -> PlanRecord:
    """Read the single record of the text, YAML or JSON. `source` names the text in error messages."""
    records = read_all_records(text, source)
    if len(records) != 1:
        raise InputError(f"{source}: has {len(records)} records, but only one is allowed", hint=_RECORD_HINT)
    return records[0]


def read_all_records(text: str, source: str) -> tuple[PlanRecord, ...]:
    """Read all records of the text, in order: one after another, in a list, or in several YAML documents."""
    if len(text) > _MAX_LENGTH:
        raise InputError(f"{source}: larger than {_MAX_LENGTH // 1024} KiB", hint="read only a few records at a time")
    reader = _RecordReader(source)
    records = tuple(record for root in reader.compose(text) for record in reader.read_records(root))
    if not records:
        raise InputError(f"{source}: contains no record", hint=_RECORD_HINT)
    return records


def build_schemas() -> dict[str, dict[str, Any]]:
    """Return a JSON Schema for the documents of each record, by name, and one for the report."""
    record_schemas = {key: _build_schema(key, kind) for key, kind in RECORD_TYPES.items()}
    return {**record_schemas, REPORT_NAME: {"$schema": _DRAFT, **PlanReport.model_json_schema()}}


def _make_document(record: PlanRecord) -> dict[str, Any]:
    return {_KEYS[type(record)]: record.model_dump(mode="json")}


def _build_schema(key: str, kind: type[PlanRecord]) -> dict[str, Any]:
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


class _RecordReader:
    """Reads the records of a text that comes from `source`."""

    def __init__(self, source: str) -> None:
        self._source = source

    def compose(self, text: str) -> list[Node]:
        try:
            roots = list(make_yaml_reader().compose_all(_to_yaml_text(text)))
        except (YAMLError, ValueError, OverflowError, RecursionError) as error:
            line, why = _describe_error(text, error)
            raise InputError(f"{self._source}:{line}: neither YAML nor JSON: {why}", hint=_QUOTE_HINT) from error
        return [root for root in roots if not _is_null(root)]

    def read_records(self, node: Node) -> Iterator[PlanRecord]:
        self._refuse_anchor(node)
        if isinstance(node, SequenceNode):
            for child in node.value:
                yield from self.read_records(child)
            return
        if not isinstance(node, MappingNode):
            raise self._make_error(node, "this is not a record", _RECORD_HINT)
        for key, value in self._read_items(node).items():
            if key not in RECORD_TYPES:
                raise self._make_error(node, f"`{key}` is not the name of a record", _RECORD_HINT, (key,))
            yield self._read_record(key, value, node)

    def _read_record(self, key: str, node: Node, root: Node) -> PlanRecord:
        value = self._read_value(node)
        try:
            return RECORD_TYPES[key].model_validate(value)
        except ValidationError as error:
            (first, *others) = error.errors()[:_MAX_ERRORS]
            line = _find_line(root, (key, *first["loc"]))
            more = "".join(
                f"; line {_find_line(root, (key, *other['loc']))}: {_describe_field_error(key, other)}"
                for other in others
            )
            fields = f"a {key} has {', '.join(RECORD_TYPES[key].model_fields)}"
            raise InputError(
                f"{self._source}:{line}: {_describe_field_error(key, first)}{more}", hint=fields
            ) from error

    def _read_value(self, node: Node) -> object:
        self._refuse_anchor(node)
        if isinstance(node, MappingNode):
            return {key: self._read_value(value) for key, value in self._read_items(node).items()}
        if isinstance(node, SequenceNode):
            return [self._read_value(child) for child in node.value]
        return None if _is_null(node) else self._read_text(node)

    def _refuse_anchor(self, node: Node) -> None:
        if node.anchor:
            raise self._make_error(node, f"an anchor, `&{node.anchor}`", "write it out where it is meant")

    def _read_items(self, node: MappingNode) -> dict[str, Node]:
        items: dict[str, Node] = {}
        for key, value in node.value:
            name = self._read_text(key) if isinstance(key, ScalarNode) else ""
            if not name:
                raise self._make_error(key, "a key that is not a word", "write `name: value`")
            if name in items:
                raise self._make_error(key, f"`{name}` a second time", "put `---` between two records of one kind")
            items[name] = value
        return items

    def _read_text(self, node: Node) -> str:
        """Return the text of a node. JSON writes a character beyond the first plane as two halves."""
        try:
            return str(node.value).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self._make_error(node, "half of a character", "write both halves, or the character itself") from error

    def _make_error(self, node: Node, what: str, hint: str, path: tuple[str, ...] = ()) -> InputError:
        return InputError(f"{self._source}:{_find_line(node, path)}: {what}", hint=hint)


def _to_yaml_text(text: str) -> str:
    """Make JSON readable as YAML by escaping the characters that YAML does not accept."""
    text = text.removeprefix("\ufeff")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text  # it is YAML, or unreadable
    return _BEYOND_ASCII.sub(lambda match: json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f"), text)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == _NULL


def _find_line(node: Node, path: tuple[int | str, ...]) -> int:
    """Return the line of the node that the path leads to, or of the last existing node on the way."""
    line = node.start_mark.line
    for step in path:
        match node:
            case MappingNode():
                pair = next(((key, value) for key, value in node.value if key.value == step), None)
                if pair is None:
                    break
                line, node = pair[0].start_mark.line, pair[1]
            case SequenceNode() if isinstance(step, int):
                node = node.value[step]
                line = node.start_mark.line
            case _:
                break
    return int(line) + 1


def _describe_error(text: str, error: Exception) -> tuple[int, str]:
    """Return the line, and what is wrong there."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return int(error.problem_mark.line) + 1, str(error.problem).partition("\n")[0]
    if isinstance(error, ReaderError):
        return text.count("\n", 0, error.position) + 1, str(error.reason)
    return 1, "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]


def _describe_field_error(key: str, error: ErrorDetails) -> str:
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
