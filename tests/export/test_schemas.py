"""Contracts as typed YAML, and examples that are of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from proofstone.agents.roles.registry import ROLES
from proofstone.common.models import FrozenModel
from proofstone.export.definitions import PIPELINE_PLACES
from proofstone.export.overview import build_references
from proofstone.export.schemas import OutputSchema, list_schemas, read_examples, write_typed_yaml
from tests.export.reading import fences, parsed, section
from tests.rows import each_row

SCHEMAS = list_schemas(ROLES)


class Inner(FrozenModel):
    id: str = Field(min_length=1, description="Its own.")
    size: int = Field(default=1, ge=0, le=3)


class Other(FrozenModel):
    word: str


class Outer(FrozenModel):
    colour: Literal["red", "green"]
    name: str | None = None
    words: tuple[str, ...] = Field(default=(), max_length=2)
    inner: Inner | None = None
    inners: tuple[Inner, ...] = Field(min_length=1)
    other: Other
    others: tuple[Other, ...] = ()
    ways: Mapping[str, tuple[str, ...]] = {}
    more: Mapping[str, JsonValue] = {}
    sure: bool = False
    hidden: str = ""


def test_a_contract_is_written_field_by_field() -> None:
    assert (
        write_typed_yaml(Outer, {"Other": "other-schema"}, ("hidden",))
        == """\
colour: red | green  # required
name: text  # optional, or null
words: [text]  # optional, at most 2
inner:  # optional, or null
  # Its own.
  id: text  # required, not empty
  size: integer  # optional, 0 to 3
inners:  # required, at least 1
    # Its own.
  - id: text  # required, not empty
    size: integer  # optional, 0 to 3
other: other-schema  # required
others: [other-schema]  # optional
ways: {text: [text]}  # optional
more: {text: anything}  # optional
sure: true | false  # optional
"""
    )


@each_row("schema", SCHEMAS)
def test_every_field_of_a_contract_is_in_its_schema_and_the_example_is_of_it(schema: OutputSchema) -> None:
    typed, example = fences(section(build_references()["schemas"], schema.name), "yaml")
    assert list(parsed(typed)) == list(schema.contract.model_fields)
    assert parsed(example) == read_examples()[schema.name]
    schema.contract.model_validate_json(json.dumps(parsed(example)))


def test_there_is_one_example_for_each_schema() -> None:
    assert list(read_examples()) == [one.name for one in SCHEMAS]
    assert len(SCHEMAS) == 10


def test_who_writes_and_who_reads_a_schema_are_agents() -> None:
    everybody = {*PIPELINE_PLACES, "all agents", "nobody after it"}
    for one in SCHEMAS:
        assert {one.producer, *one.consumers.split(", ")} <= everybody
