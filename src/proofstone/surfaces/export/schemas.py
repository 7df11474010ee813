"""The schemas by which agents hand work to each other, and the page that shows them.

A schema is a contract of the product, written as typed YAML, with one example that is of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from proofstone.contracts.agent import Completion, OutputHeader
from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.plan import PlannedTask
from proofstone.roles import Role
from proofstone.surfaces.export.markdown import table
from proofstone.surfaces.export.prompts import renamed
from proofstone.surfaces.export.reports import ImplementationReport, VerificationReport
from proofstone.surfaces.export.typed_yaml import typed_yaml


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
    named = {one.contract.__name__: one.name for one in known if one.contract is not contract}
    return renamed(typed_yaml(contract, named, omit))


@cache
def examples() -> Mapping[str, Mapping[str, Any]]:
    """One payload for each schema."""
    text = (files("proofstone.surfaces.export") / "examples.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = YAML(typ="safe", pure=True).load(text)
    return found


def schemas_page(known: Sequence[Schema]) -> str:
    rows = ((f"[`{one.name}`](#{one.name})", one.producer, one.consumers, one.purpose) for one in known)
    listed = table(("schema", "written by", "read by", "what it is"), rows)
    head = _HEAD.format(table=listed, header=schema_text((), OutputHeader))
    return "\n".join((head, *(_section(one, known) for one in known)))


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
