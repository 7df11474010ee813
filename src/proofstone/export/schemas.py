"""The schemas of the outputs that agents hand to each other, and the page that documents them.

A schema is a contract of the product, written as typed YAML, with one valid example. The typed YAML lists the fields in
order, their values, and which of them are required. It can be parsed as YAML: a value names a type (`text`, `integer`),
lists the allowed words (`a | b`), or names another schema. The description of a field is above it, its limits beside
it.

The reports of the implementer and the verifier are defined here, because the engine does not need them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO
from typing import Any, Final, Literal

from pydantic import Field
from ruamel.yaml import YAML

from proofstone.agents.models import Completion, OutputHeader, RoleOutput
from proofstone.agents.roles.models.gate import ExecutorResult
from proofstone.agents.roles.models.payload import AnswerPart, ShortText
from proofstone.agents.roles.models.pipeline import PlannedTask
from proofstone.agents.roles.role import Role
from proofstone.common.models import FrozenModel, Phase, Verdict
from proofstone.documents.markdown import markdown_table
from proofstone.errors import InternalError
from proofstone.export.prompts import rename_roles

MAX_SELF_CORRECTIONS = 2
"""Corrections within one attempt, before the work is handed over as it is."""


class RanCheck(AnswerPart):
    """One command and its result, as the agent reports it."""

    check_name: ShortText
    command: ShortText
    verdict: Verdict
    exit_code: int | None = None
    output_snippet: str = Field(default="", max_length=500, description="The lines that matter.")


class SelfCheck(AnswerPart):
    attempts: int = Field(ge=0, le=MAX_SELF_CORRECTIONS, description="How often you corrected your own work.")
    passed: bool


class ImplementationReport(ExecutorResult):
    """The answer of an executor, with the results of its own checks."""

    completion: Completion
    task_type: Literal["code", "documentation", "revert"]
    baseline: tuple[RanCheck, ...] = Field(description="What checks gave before you changed anything.")
    changes: tuple[ShortText, ...] = Field(default=(), description="One line for each file: what changed, and why.")
    self_check: SelfCheck


class EvidenceGate(AnswerPart):
    total_checks: int = Field(ge=0)
    passed: int = Field(ge=0)
    failed: int = Field(ge=0)
    unverifiable: int = Field(ge=0, description="Never counted as passed.")
    gate_status: Literal["passed", "failed"]


class ProofstoneCheck(AnswerPart):
    ran: bool
    exit_code: int | None = Field(default=None, description="0: passed; 1: failed or unverifiable; 2: bad input.")
    why_not: str = Field(default="", description="If it did not run, why.")


class CascadeResult(RanCheck):
    tier: int = Field(ge=1, le=4)
    phase: Literal[Phase.BASELINE, Phase.AFTER]


class VerificationReport(RoleOutput):
    """The answer of a verifier."""

    task_id: ShortText
    evidence_gate: EvidenceGate
    proofstone_check: ProofstoneCheck = Field(
        description="What `proofstone check` said. It decides; the rest explains."
    )
    findings: tuple[CascadeResult, ...] = Field(min_length=1, description="Every check that was run, or could not be.")
    regressions: tuple[ShortText, ...] = Field(default=(), description="What passed on the baseline and fails now.")
    baseline_cross_check: tuple[ShortText, ...] = Field(
        default=(), description="Where the implementer's own baseline differs from what you saw."
    )


_WIDTH: Final = 110
_TYPES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true | false",
}
_INDENT: Final = "  "

_Schema = Mapping[str, Any]


def write_typed_yaml(contract: type[FrozenModel], named: Mapping[str, str], omit: Collection[str] = ()) -> str:
    """Write a contract as typed YAML. `named` maps contracts that have a schema of their own to its name; `omit`
    lists fields to leave out.
    """
    schema = contract.model_json_schema()
    return "\n".join(_Writer(schema, named).fields(schema, omit)) + "\n"


class _Writer:
    def __init__(self, root: _Schema, named: Mapping[str, str]) -> None:
        self._definitions: _Schema = root.get("$defs", {})
        self._schema_names = named

    def fields(self, schema: _Schema, omit: Collection[str] = ()) -> list[str]:
        lines: list[str] = []
        for name, field in schema["properties"].items():
            if name not in omit:
                lines += self._field(name, field, name in schema.get("required", ()))
        return lines

    def _field(self, name: str, field: _Schema, required: bool) -> list[str]:
        kind = self._resolve(field)
        description = textwrap.wrap(field.get("description", ""), _WIDTH)
        may_be_null = ("or null",) if {"type": "null"} in kind.get("anyOf", ()) else ()
        facts = ", ".join(("required" if required else "optional", *self._limits(kind), *may_be_null))
        lines = [f"# {line}" for line in description]
        nested = self._object(kind)
        if nested is not None:
            return [*lines, f"{name}:  # {facts}", *_indent(self.fields(nested))]
        items = self._object(self._resolve(kind["items"])) if "items" in kind else None
        if items is not None:
            return [*lines, f"{name}:  # {facts}", *_indent_as_item(self.fields(items))]
        return [*lines, f"{name}: {self._type(field)}  # {facts}"]

    def _type(self, field: _Schema) -> str:
        kind = self._resolve(field)
        if (name := _reference(field)) in self._schema_names:
            return self._schema_names[name]
        if "enum" in kind or "const" in kind:
            return " | ".join(map(str, kind.get("enum", [kind.get("const")])))
        if "anyOf" in kind:
            return " | ".join(self._type(option) for option in kind["anyOf"] if option != {"type": "null"})
        match kind.get("type"):
            case "array":
                return f"[{self._type(kind['items'])}]"
            case "object":
                return f"{{text: {self._type(kind['additionalProperties'])}}}"
            case str(type):
                return _TYPES[type]
            case None if not set(kind) - {"title", "description", "default"}:
                return "anything"
        raise InternalError(f"a contract has a field that cannot be written as typed YAML: {dict(kind)}")

    def _object(self, kind: _Schema) -> _Schema | None:
        """Return the object to write in place, if the field is one object or null."""
        options = [option for option in kind.get("anyOf", [kind]) if option.get("type") != "null"]
        if len(options) != 1 or _reference(options[0]) in self._schema_names or kind.get("title") in self._schema_names:
            return None
        only = self._resolve(options[0])
        return only if "properties" in only else None

    def _limits(self, kind: _Schema) -> list[str]:
        each = [f"each {limit}" for limit in self._limits(self._resolve(kind["items"]))] if "items" in kind else []
        return [
            *_describe_range(kind, "minLength", "maxLength", " characters"),
            *_describe_range(kind, "minItems", "maxItems", ""),
            *_describe_range(kind, "minimum", "maximum", ""),
            *each,
        ]

    def _resolve(self, field: _Schema) -> _Schema:
        definition: _Schema = self._definitions[name] if (name := _reference(field)) else field
        return definition


def _reference(field: _Schema) -> str:
    return str(field.get("$ref", "")).removeprefix("#/$defs/")


def _describe_range(kind: _Schema, lower: str, upper: str, unit: str) -> list[str]:
    match kind.get(lower), kind.get(upper):
        case None, None:
            return []
        case None, top:
            return [f"at most {top}{unit}"]
        case 1, None if unit:
            return ["not empty"]
        case bottom, None:
            return [f"at least {bottom}{unit}"]
        case bottom, top:
            return [f"{bottom} to {top}{unit}"]
    return []


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"{_INDENT}{line}" for line in lines]


def _indent_as_item(lines: Sequence[str]) -> list[str]:
    """Indent the lines as a list item: the dash is before the first field."""
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [f"{_INDENT}{'- ' if number == first else _INDENT}{line}" for number, line in enumerate(lines)]


@dataclass(frozen=True)
class OutputSchema:
    name: str
    contract: type[FrozenModel]
    purpose: str
    producer: str
    consumers: str


def list_schemas(roles: Mapping[str, Role]) -> tuple[OutputSchema, ...]:
    """Return the schemas in the order of the pipeline."""
    return (
        OutputSchema("completion-contract", Completion, "How an agent says it has ended", "all agents", "orchestrator"),
        OutputSchema(
            "research-output",
            roles["researcher"].output,
            "What is there, with where it can be seen",
            "researcher",
            "spec, designer",
        ),
        OutputSchema(
            "spec-output",
            roles["specifier"].output,
            "What is wanted, so that it can be tested",
            "spec",
            "designer, planner, implementer, verifier",
        ),
        OutputSchema(
            "design-output",
            roles["designer"].output,
            "How it is to be built, decision by decision",
            "designer",
            "planner, implementer, adversarial-reviewer",
        ),
        OutputSchema(
            "plan-output",
            roles["planner"].output,
            "The tasks, their risks, and the risk of the whole",
            "planner",
            "orchestrator, implementer, verifier",
        ),
        OutputSchema("task-schema", PlannedTask, "One task of the plan", "planner", "implementer, verifier"),
        OutputSchema(
            "implementation-report",
            ImplementationReport,
            "What was done, and what its author saw",
            "implementer",
            "verifier",
        ),
        OutputSchema(
            "verification-report",
            VerificationReport,
            "What running the checks gave",
            "verifier",
            "orchestrator, adversarial-reviewer",
        ),
        OutputSchema(
            "review-findings",
            roles["reviewer"].output,
            "What must not be let through, and a verdict",
            "adversarial-reviewer",
            "orchestrator, designer, planner, knowledge-agent",
        ),
        OutputSchema(
            "knowledge-output",
            roles["knowledge"].output,
            "What the next run should know",
            "knowledge-agent",
            "nobody after it",
        ),
    )


def write_schema(known: Sequence[OutputSchema], contract: type[FrozenModel], omit: Sequence[str] = ()) -> str:
    """Write a contract as typed YAML that refers to the other schemas by name."""
    named = {schema.contract.__name__: schema.name for schema in known if schema.contract is not contract}
    return rename_roles(write_typed_yaml(contract, named, omit))


@cache
def read_examples() -> Mapping[str, Mapping[str, Any]]:
    """Return one payload for each schema."""
    text = (files("proofstone.export") / "examples.yaml").read_text(encoding="utf-8")
    payloads: Mapping[str, Mapping[str, Any]] = YAML(typ="safe", pure=True).load(text)
    return payloads


def build_schemas_page(known: Sequence[OutputSchema]) -> str:
    rows = (
        (f"[`{schema.name}`](#{schema.name})", schema.producer, schema.consumers, schema.purpose) for schema in known
    )
    table = markdown_table(("schema", "written by", "read by", "what it is"), rows)
    head = _HEAD.format(table=table, header=write_schema((), OutputHeader))
    return "\n".join((head, *(_section(schema, known) for schema in known)))


def _section(schema: OutputSchema, known: Sequence[OutputSchema]) -> str:
    return _SECTION.format(
        name=schema.name,
        purpose=schema.purpose,
        producer=schema.producer,
        consumers=schema.consumers,
        schema=write_schema(known, schema.contract),
        example=_yaml(read_examples()[schema.name]),
    )


def _yaml(value: Mapping[str, Any]) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = 1_000
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue()


_HEAD = """# Schemas

What agents hand to each other. Each output is one YAML document: the header, and in `payload` what its schema says.
Markdown files beside it are for people; decisions are made from the YAML alone.

In the schemas a value is a type (`text`, `integer`), the words that are allowed (`a | b`), or the name of another
schema; `[text]` is a list of them, `{{text: …}}` a mapping. What is not marked `required` may be left out.

{table}

## Header

```yaml
{header}```

`agent` is the agent's name, `instance` says which of several (`researcher:impact`), `step` is the step of the pipeline.
Times are ISO 8601 in UTC. `schema_version` is `"1"`.

## When a schema changes

It belongs to the agent that writes it. A new field that may be left out changes nothing for readers: fields that they
do not know are ignored and kept. A field that is removed, renamed or retyped raises `schema_version`, and everybody in
the column "read by" changes with it.

Nothing here is enforced by the program that runs the agents: an agent checks its own output before it returns, and the
orchestrator refuses an output without a readable `completion`. In Proofstone's own runtime the same contracts are
enforced.
"""

_SECTION = """## {name}

{purpose}. Written by: {producer}. Read by: {consumers}.

```yaml
{schema}```

For example:

```yaml
{example}```
"""
