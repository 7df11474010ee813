"""What a person writes as a request: a mapping or a sentence, never one taken for the other."""

from __future__ import annotations

import json

import pytest

from proofstone.agents.roles.registry import ROLES
from proofstone.agents.roles.requests import build_example, build_role_schemas, parse_request
from proofstone.errors import InputError
from tests.rows import each_row

ASKED = [name for name in ROLES if name != "executor"]
RESEARCHER = ROLES["researcher"]


@each_row("name", ASKED)
def test_the_example_of_every_role_is_a_request_for_it(name: str) -> None:
    role = ROLES[name]
    text = build_example(role)
    assert isinstance(parse_request(role, text, source="example.yaml"), role.input)
    for field in role.input.model_fields:
        assert f"{field}:" in text


def test_an_example_leaves_out_the_focus_that_the_agents_name_says() -> None:
    text = build_example(RESEARCHER, "impact")
    assert "focus:" not in text
    assert parse_request(RESEARCHER, text, focus="impact").model_dump()["focus"] == "impact"


def test_an_example_says_whose_answer_a_part_of_it_is() -> None:
    assert "proofstone ask specifier … --json | jq .output" in build_example(ROLES["designer"])


@each_row("name", ASKED)
def test_there_are_schemas_of_request_and_answer(name: str) -> None:
    both = build_role_schemas(ROLES[name])
    assert set(both) == {"request", "answer"}
    assert json.dumps(both)


SENTENCES = (
    "where is it?",
    "where is it: in the cart or in the shop: which?",
    "Note: it is about the cart",
    "two lines\nof prose: with a colon",
    "`{` is where it begins",
    "42",
    "- one\n- two",
)


@each_row("text", SENTENCES)
def test_a_sentence_is_asked_as_it_stands(text: str) -> None:
    request = parse_request(RESEARCHER, text, focus="impact")
    assert request.model_dump()["request"] == text


MAPPINGS = (
    '{"request": "where?"}',
    "{request: where?}",
    "request: where?",
    '"request": where?\n# and no more\n',
)


@pytest.mark.parametrize("text", MAPPINGS)
def test_a_mapping_is_read_field_by_field(text: str) -> None:
    assert parse_request(RESEARCHER, text, focus="impact").model_dump()["request"] == "where?"


MEANT: dict[str, tuple[str, str, str]] = {
    "json that breaks off": ('{"request": "where?",\n', "REQUEST", "REQUEST:2: "),
    "a list": ("[where, why]", "REQUEST", "not a mapping"),
    "a bracket in prose": ("[wip] where?", "REQUEST", "REQUEST:1: "),
    "yaml that breaks off": ("request: where?\nquestions: [one\n", "REQUEST", "REQUEST:3: "),
    "a colon without quotation marks": ("questions: [one]\nrequest: where: here\n", "REQUEST", "REQUEST:2: "),
    "a field that is almost one": ("requst: where?", "REQUEST", "requst: there is no such field"),
    "a field at the beginning of a sentence": ("focus: on the cart, where is it", "REQUEST", "focus: on the cart"),
    "fields, but not what it needs": ("questions: [why]", "REQUEST", "request: is missing"),
    "prose in a yaml file": ("where is it?", "x.yaml", "x.yaml: this is not a mapping"),
    "yaml that is none": ("a: b\n c: d: e\n", "x.yml", "x.yml:2: "),
    "json that is none": ('{\n"request": nothing}\n', "x.JSON", "x.JSON:2: not JSON"),
    "control characters": ("request: 'a'\nfocus: \x01\n", "x.yaml", "x.yaml:2: "),
    "nothing": (" \n", "stdin", "stdin: the request is empty"),
    "no text": ("request: [where]", "REQUEST", "request: input should be a valid string"),
}


@each_row(("text", "source", "says"), MEANT.values())
def test_what_was_meant_as_a_mapping_is_never_taken_for_a_sentence(text: str, source: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_request(RESEARCHER, text, focus="impact", source=source)
    assert says in refused.value.message
    assert refused.value.hint


def test_a_part_that_is_a_mapping_is_described_without_the_names_of_our_classes() -> None:
    with pytest.raises(InputError) as refused:
        parse_request(ROLES["designer"], "{request: x, spec: later, colour: red}")
    assert "spec: takes a mapping, which is what a specifier answers; see --example" in refused.value.message
    assert "colour: there is no such field" in refused.value.message
    assert "SpecOutput" not in refused.value.message
    assert "`proofstone ask designer --example`" in str(refused.value.hint)


def test_a_role_that_needs_more_takes_no_sentence() -> None:
    with pytest.raises(InputError, match="must be a mapping, but this is plain text"):
        parse_request(ROLES["designer"], "design it")


FOCI: dict[str, tuple[str, str, str, str]] = {
    "none": ("researcher", "", "where?", "you named none"),
    "one that there is not": ("researcher", "colour", "where?", "researcher:colour: there is no such focus"),
    "one that there is not, in the request": ("researcher", "", "{request: x, focus: colour}", "focus: input should"),
    "another than the request's": ("researcher", "impact", "{request: x, focus: patterns}", "says `focus: patterns`"),
    "of a role that has none": ("planner", "impact", "{}", "a planner has no focus"),
}


@each_row(("name", "focus", "text", "says"), FOCI.values())
def test_a_focus_that_is_none_is_refused(name: str, focus: str, text: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_request(ROLES[name], text, focus=focus)
    assert says in refused.value.message


def test_a_missing_focus_comes_with_all_that_there_are() -> None:
    with pytest.raises(InputError) as refused:
        parse_request(RESEARCHER, "where?")
    hint = "ask for researcher:architecture, researcher:impact, researcher:dependencies, researcher:patterns"
    assert refused.value.hint == hint
