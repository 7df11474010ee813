"""What the two agents answer whose answers the engine would otherwise write or not need: a claim about one task, and
what running the checks on it gave.

A contract as YAML that an agent can write by: its fields in order, what each takes, and which must be there.

It is YAML itself, so that it can be parsed: a value names a type (`text`, `integer`), lists what is allowed (`a | b`),
or names another schema. What a contract says of a field stands above it, its limits beside it.

The schemas by which agents hand work to each other, and the page that shows them.

A schema is a contract of the product, written as typed YAML, with one example that is of it.
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

from proofstone.agents.models import Completion, Output, OutputHeader
from proofstone.agents.roles.models.gate import ExecutorResult
from proofstone.agents.roles.models.payload import Line, Part
from proofstone.agents.roles.models.pipeline import PlannedTask
from proofstone.agents.roles.role import Role
from proofstone.common.models import Contract, Phase, Verdict
from proofstone.documents.markdown import markdown_table
from proofstone.errors import InternalError
from proofstone.export.prompts import renamed

MOST_CORRECTIONS = 2
"""Within one attempt, before it is handed on as it is."""


class RanCheck(Part):
    """One command, as the agent says that it went."""

    check_name: Line
    command: Line
    verdict: Verdict
    exit_code: int | None = None
    output_snippet: str = Field(default="", max_length=500, description="The lines that matter.")


class SelfCheck(Part):
    attempts: int = Field(ge=0, le=MOST_CORRECTIONS, description="How often you corrected your own work.")
    passed: bool


class ImplementationReport(ExecutorResult):
    """What an executor answers, and what its own look at it gave."""

    completion: Completion
    task_type: Literal["code", "documentation", "revert"]
    baseline: tuple[RanCheck, ...] = Field(description="What checks gave before you changed anything.")
    changes: tuple[Line, ...] = Field(default=(), description="One line for each file: what changed, and why.")
    self_check: SelfCheck


class EvidenceGate(Part):
    total_checks: int = Field(ge=0)
    passed: int = Field(ge=0)
    failed: int = Field(ge=0)
    unverifiable: int = Field(ge=0, description="Never counted as passed.")
    gate_status: Literal["passed", "failed"]


class ProofstoneCheck(Part):
    ran: bool
    exit_code: int | None = Field(default=None, description="0: passed; 1: failed or unverifiable; 2: bad input.")
    why_not: str = Field(default="", description="If it did not run, why.")


class CascadeResult(RanCheck):
    tier: int = Field(ge=1, le=4)
    phase: Literal[Phase.BASELINE, Phase.AFTER]


class VerificationReport(Output):
    """What a verifier answers."""

    task_id: Line
    evidence_gate: EvidenceGate
    proofstone_check: ProofstoneCheck = Field(
        description="What `proofstone check` said. It decides; the rest explains."
    )
    findings: tuple[CascadeResult, ...] = Field(min_length=1, description="Every check that was run, or could not be.")
    regressions: tuple[Line, ...] = Field(default=(), description="What passed on the baseline and fails now.")
    baseline_cross_check: tuple[Line, ...] = Field(
        default=(), description="Where the implementer's own baseline differs from what you saw."
    )


_WIDTH: Final = 110
_TYPES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true | false",
}
_STEP: Final = "  "

_Schema = Mapping[str, Any]


def typed_yaml(contract: type[Contract], named: Mapping[str, str], omit: Collection[str] = ()) -> str:
    """`named` are contracts that have a schema of their own, by the contract's name; `omit` are fields left out."""
    schema = contract.model_json_schema()
    return "\n".join(_Writer(schema, named).fields(schema, omit)) + "\n"


class _Writer:
    def __init__(self, root: _Schema, named: Mapping[str, str]) -> None:
        self._parts: _Schema = root.get("$defs", {})
        self._named = named

    def fields(self, schema: _Schema, omit: Collection[str] = ()) -> list[str]:
        lines: list[str] = []
        for name, field in schema["properties"].items():
            if name not in omit:
                lines += self._field(name, field, name in schema.get("required", ()))
        return lines

    def _field(self, name: str, field: _Schema, required: bool) -> list[str]:
        kind = self._resolved(field)
        about = textwrap.wrap(field.get("description", ""), _WIDTH)
        may_be_null = ("or null",) if {"type": "null"} in kind.get("anyOf", ()) else ()
        facts = ", ".join(("required" if required else "optional", *self._limits(kind), *may_be_null))
        lines = [f"# {line}" for line in about]
        inside = self._object(kind)
        if inside is not None:
            return [*lines, f"{name}:  # {facts}", *_indented(self.fields(inside))]
        items = self._object(self._resolved(kind["items"])) if "items" in kind else None
        if items is not None:
            return [*lines, f"{name}:  # {facts}", *_as_item(self.fields(items))]
        return [*lines, f"{name}: {self._type(field)}  # {facts}"]

    def _type(self, field: _Schema) -> str:
        kind = self._resolved(field)
        if (name := _reference(field)) in self._named:
            return self._named[name]
        if "enum" in kind or "const" in kind:
            return " | ".join(map(str, kind.get("enum", [kind.get("const")])))
        if "anyOf" in kind:
            return " | ".join(self._type(way) for way in kind["anyOf"] if way != {"type": "null"})
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
        """The object that is to be written out in place, alone or in its stead null."""
        ways = [way for way in kind.get("anyOf", [kind]) if way.get("type") != "null"]
        if len(ways) != 1 or _reference(ways[0]) in self._named or kind.get("title") in self._named:
            return None
        only = self._resolved(ways[0])
        return only if "properties" in only else None

    def _limits(self, kind: _Schema) -> list[str]:
        each = [f"each {limit}" for limit in self._limits(self._resolved(kind["items"]))] if "items" in kind else []
        return [
            *_span(kind, "minLength", "maxLength", " characters"),
            *_span(kind, "minItems", "maxItems", ""),
            *_span(kind, "minimum", "maximum", ""),
            *each,
        ]

    def _resolved(self, field: _Schema) -> _Schema:
        found: _Schema = self._parts[name] if (name := _reference(field)) else field
        return found


def _reference(field: _Schema) -> str:
    return str(field.get("$ref", "")).removeprefix("#/$defs/")


def _span(kind: _Schema, least: str, most: str, unit: str) -> list[str]:
    match kind.get(least), kind.get(most):
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


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"{_STEP}{line}" for line in lines]


def _as_item(lines: Sequence[str]) -> list[str]:
    """As the one item of a list: the dash stands before its first field."""
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [f"{_STEP}{'- ' if number == first else _STEP}{line}" for number, line in enumerate(lines)]


@dataclass(frozen=True)
class Schema:
    name: str
    contract: type[Contract]
    purpose: str
    producer: str
    consumers: str


def schemas(roles: Mapping[str, Role]) -> tuple[Schema, ...]:
    """In the order of the pipeline."""
    return (
        Schema("completion-contract", Completion, "How an agent says it has ended", "all agents", "orchestrator"),
        Schema(
            "research-output",
            roles["researcher"].output,
            "What is there, with where it can be seen",
            "researcher",
            "spec, designer",
        ),
        Schema(
            "spec-output",
            roles["specifier"].output,
            "What is wanted, so that it can be tested",
            "spec",
            "designer, planner, implementer, verifier",
        ),
        Schema(
            "design-output",
            roles["designer"].output,
            "How it is to be built, decision by decision",
            "designer",
            "planner, implementer, adversarial-reviewer",
        ),
        Schema(
            "plan-output",
            roles["planner"].output,
            "The tasks, their risks, and the risk of the whole",
            "planner",
            "orchestrator, implementer, verifier",
        ),
        Schema("task-schema", PlannedTask, "One task of the plan", "planner", "implementer, verifier"),
        Schema(
            "implementation-report",
            ImplementationReport,
            "What was done, and what its author saw",
            "implementer",
            "verifier",
        ),
        Schema(
            "verification-report",
            VerificationReport,
            "What running the checks gave",
            "verifier",
            "orchestrator, adversarial-reviewer",
        ),
        Schema(
            "review-findings",
            roles["reviewer"].output,
            "What must not be let through, and a verdict",
            "adversarial-reviewer",
            "orchestrator, designer, planner, knowledge-agent",
        ),
        Schema(
            "knowledge-output",
            roles["knowledge"].output,
            "What the next run should know",
            "knowledge-agent",
            "nobody after it",
        ),
    )


def schema_text(known: Sequence[Schema], contract: type[Contract], omit: Sequence[str] = ()) -> str:
    """A contract as typed YAML, in which the others are called by their names."""
    named = {item.contract.__name__: item.name for item in known if item.contract is not contract}
    return renamed(typed_yaml(contract, named, omit))


@cache
def examples() -> Mapping[str, Mapping[str, Any]]:
    """One payload for each schema."""
    text = (files("proofstone.export") / "examples.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = YAML(typ="safe", pure=True).load(text)
    return found


def schemas_page(known: Sequence[Schema]) -> str:
    rows = ((f"[`{item.name}`](#{item.name})", item.producer, item.consumers, item.purpose) for item in known)
    listed = markdown_table(("schema", "written by", "read by", "what it is"), rows)
    head = _HEAD.format(table=listed, header=schema_text((), OutputHeader))
    return "\n".join((head, *(_section(item, known) for item in known)))


def _section(one: Schema, known: Sequence[Schema]) -> str:
    return _SECTION.format(
        name=one.name,
        purpose=one.purpose,
        producer=one.producer,
        consumers=one.consumers,
        schema=schema_text(known, one.contract),
        example=_yaml(examples()[one.name]),
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
