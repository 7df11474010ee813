"""The records as documents: what is written reads back, what the protocol shows is read, what is wrong has its line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeConfidence,
    ChallengeLine,
    ChallengeOrigin,
    ChallengeStatus,
    Convergence,
    ConvergenceStatus,
    IterationState,
    PlanQuality,
    PlanSeverity,
    ProbedRisk,
    RiskLine,
    SurfacedContext,
    SurfacedImpact,
    SurfacedLine,
    SurfacedSource,
    TeamMode,
    Unknown,
    UnknownLine,
    UnknownResolution,
    UnknownType,
)
from proofstone.errors import InputError
from proofstone.plan_gate.rules.record_documents import (
    RECORD_TYPES,
    PlanRecord,
    build_schemas,
    read_all_records,
    read_record,
    write_json,
    write_yaml,
)
from tests.plan_gate.reports import CHALLENGES, RISK, STATES, SURFACED, UNKNOWN, report
from tests.rows import each_row

FIELDS = {
    "challenge": [
        *("id", "origin", "claim", "concern", "failure_scenario", "alternative", "severity", "confidence", "status"),
        *("resolution", "mitigation", "iteration_introduced"),
    ],
    "unknown": ["id", "description", "type", "affects_challenge", "suggested_query", "resolution", "finding"],
    "surfaced_context": ["id", "source", "location", "relevance", "impact", "generates_challenge"],
    "probed_risk": ["id", "risk", "trigger", "cascade", "probability", "severity", "generates_challenge"],
    "iteration_state": [
        *("iteration", "plan_path", "plan_quality", "team_mode", "challenges", "unknowns", "surfaced_contexts"),
        *("probed_risks", "convergence", "user_responses", "synthesizer_directives", "quality_score"),
    ],
}
"""Of the protocol, in its order, with the mitigation that was added to it."""
EACH: dict[str, PlanRecord] = {
    "challenge": CHALLENGES[0],
    "unknown": UNKNOWN,
    "surfaced_context": SURFACED,
    "probed_risk": RISK,
    "iteration_state": STATES[1],
}

CHALLENGE = """\
# One block per challenge. id increments globally across all iterations.
challenge:
  id: "C12"                         # e.g. C1, C2, C12
  origin: "devils-advocate"
  claim: "The plan assumes X"
  concern: "This fails when Y because Z"
  failure_scenario: "Concretely: if Y occurs, then Z breaks, causing W"
  alternative: "Instead, consider A which avoids Z by doing B"
  severity: "SIGNIFICANT"
  confidence: "MED"
  status: "OPEN"
  resolution: "How it was settled — evidence, debate outcome, or user decision"
  iteration_introduced: 1           # integer
"""
STATE = """\
iteration_state:
  iteration: 1                      # integer, starts at 1
  plan_path: "/absolute/path/to/plan.md"
  plan_quality: "RICH"
  team_mode: "scaled"

  challenges:                       # full list — include all, mark status
    - id: "C1"
      status: "OPEN"
      severity: "BLOCKING"

  unknowns:                         # all unknowns this iteration
    - id: "U1"
      resolution: "CONFIRMED"

  surfaced_contexts:                # all surfaced findings this iteration
    - id: "S1"
      impact: "contradicts_plan"
      generates_challenge: "C3"

  probed_risks:                     # all probed risks this iteration
    - id: "P1"
      generates_challenge: "null"

  convergence:
    blocking_open: 0                # count of BLOCKING challenges with status OPEN or UNRESOLVED
    significant_open: 0
    status: "CONTINUE"

  user_responses: []                # list of user clarifications received this iteration
  synthesizer_directives: []        # instructions synthesizer passed to next iteration
  quality_score: null               # null until final iteration; integer 1-10 when set
"""
UNKNOWN_TEXT = """\
unknown:
  id: "U4"                          # e.g. U1, U4
  description: "What we don't know and need to know"
  type: "STALE_KNOWLEDGE"
  affects_challenge: "C2"          # which challenge this unblocks
  suggested_query: "Exact query to run in memory_search (if available), Grep, or WebSearch"
  resolution: "PARTIALLY_RESOLVED"
  finding: "[VERIFIED: source | finding | impact]"
"""
SURFACED_TEXT = """\
surfaced_context:
  id: "S3"
  source: "claude_md"
  location: "Exact path, key, or commit hash"
  relevance: "Why this matters to the current plan"
  impact: "changes_needed"
  generates_challenge: "null"       # if this finding spawns a new challenge
"""
RISK_TEXT = """\
probed_risk:
  id: "P2"
  risk: "What could go wrong"
  trigger: "The specific condition that activates this risk"
  cascade: "Downstream consequences if trigger fires"
  probability: "LOW"
  severity: "MINOR"
  generates_challenge: "C7"
"""
BARE = {
    "id": "C1",
    "origin": "rules",
    "claim": "c",
    "concern": "c",
    "failure_scenario": "f",
    "alternative": "a",
    "severity": "MINOR",
    "confidence": "LOW",
    "status": "OPEN",
    "iteration_introduced": 1,
}

texts = st.text()
numbers = st.integers(min_value=1, max_value=10**6)
counts = st.integers(min_value=0, max_value=99)


def ids(letter: str) -> st.SearchStrategy[str]:
    return numbers.map(lambda number: f"{letter}{number}")


generated = st.none() | ids("C")
challenges = st.builds(
    Challenge,
    id=ids("C"),
    origin=st.sampled_from(ChallengeOrigin),
    claim=texts,
    concern=texts,
    failure_scenario=texts,
    alternative=texts,
    severity=st.sampled_from(PlanSeverity),
    confidence=st.sampled_from(ChallengeConfidence),
    status=st.sampled_from(ChallengeStatus),
    resolution=texts,
    mitigation=texts,
    iteration_introduced=numbers,
)
unknowns = st.builds(
    Unknown,
    id=ids("U"),
    description=texts,
    type=st.sampled_from(UnknownType),
    affects_challenge=ids("C"),
    suggested_query=texts,
    resolution=st.sampled_from(UnknownResolution),
    finding=texts,
)
surfaced = st.builds(
    SurfacedContext,
    id=ids("S"),
    source=st.sampled_from(SurfacedSource),
    location=texts,
    relevance=texts,
    impact=st.sampled_from(SurfacedImpact),
    generates_challenge=generated,
)
risks = st.builds(
    ProbedRisk,
    id=ids("P"),
    risk=texts,
    trigger=texts,
    cascade=texts,
    probability=st.sampled_from(["LOW", "MED"]),
    severity=st.sampled_from(PlanSeverity),
    generates_challenge=generated,
)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


states = st.builds(
    IterationState,
    iteration=st.integers(1, 3),
    plan_path=texts,
    plan_quality=st.sampled_from(PlanQuality),
    team_mode=st.sampled_from(TeamMode),
    challenges=some(
        st.builds(
            ChallengeLine,
            id=ids("C"),
            status=st.sampled_from(ChallengeStatus),
            severity=st.sampled_from(PlanSeverity),
        )
    ),
    unknowns=some(st.builds(UnknownLine, id=ids("U"), resolution=st.sampled_from(UnknownResolution))),
    surfaced_contexts=some(
        st.builds(SurfacedLine, id=ids("S"), impact=st.sampled_from(SurfacedImpact), generates_challenge=generated)
    ),
    probed_risks=some(st.builds(RiskLine, id=ids("P"), generates_challenge=generated)),
    convergence=st.builds(
        Convergence, blocking_open=counts, significant_open=counts, status=st.sampled_from(ConvergenceStatus)
    ),
    user_responses=some(texts),
    synthesizer_directives=some(texts),
    quality_score=st.none() | st.integers(1, 10),
)


@given(challenges | unknowns | surfaced | risks | states)
@pytest.mark.seed("plan-gate", "challenge-schema")
def test_every_record_reads_back_as_it_was(record: PlanRecord) -> None:
    assert read_record(write_yaml(record), "a.yaml") == record
    assert read_record(write_json(record), "a.json") == record
    assert read_record(json.dumps(json.loads(write_json(record))), "ascii.json") == record


@each_row("key", FIELDS)
@pytest.mark.seed("plan-gate", "challenge-schema")
def test_a_document_names_its_record_and_has_the_fields_of_the_protocol_in_order(key: str) -> None:
    lines = write_yaml(EACH[key]).splitlines()
    assert lines[0] == f"{key}:"
    assert [found[1] for line in lines if (found := re.match(r"  (\w+):", line))] == FIELDS[key]
    assert {name: list(body) for name, body in json.loads(write_json(EACH[key])).items()} == {key: FIELDS[key]}


@each_row("text", [CHALLENGE, UNKNOWN_TEXT, SURFACED_TEXT, RISK_TEXT, STATE])
def test_what_the_protocol_shows_is_read(text: str) -> None:
    record = read_record(text, "protocol.yaml")
    assert read_record(write_yaml(record), "again.yaml") == record


def test_the_words_of_the_protocol_arrive() -> None:
    state = read_record(STATE, "state.yaml")
    assert isinstance(state, IterationState)
    assert state.surfaced_contexts[0].generates_challenge == "C3"
    assert state.probed_risks[0].generates_challenge is None
    assert state.convergence.status is ConvergenceStatus.CONTINUE
    found = read_record(UNKNOWN_TEXT, "u.yaml")
    assert isinstance(found, Unknown)
    assert found.finding == "[VERIFIED: source | finding | impact]"


@each_row(
    ("written", "read"),
    [
        ("010", "010"),
        ("yes", "yes"),
        ("2026-01-01", "2026-01-01"),
        ('"null"', "null"),
        ("1.10", "1.10"),
        ("|-\n    a\n    b", "a\nb"),
    ],
)
def test_a_text_stays_as_it_was_written(written: str, read: str) -> None:
    record = read_record(CHALLENGE.replace('"The plan assumes X"', written), "a.yaml")
    assert isinstance(record, Challenge)
    assert record.claim == read


def test_the_severities_of_the_rest_of_the_runtime_are_read() -> None:
    record = read_record(CHALLENGE.replace('"SIGNIFICANT"', "major"), "a.yaml")
    assert isinstance(record, Challenge)
    assert record.severity is PlanSeverity.SIGNIFICANT


@each_row(
    "text",
    [
        CHALLENGE + RISK_TEXT,
        f"{CHALLENGE}---\n{RISK_TEXT}...\n",
        f"---\n{CHALLENGE}---\n---\n{RISK_TEXT}",
        json.dumps([json.loads(write_json(read_record(text, "x"))) for text in (CHALLENGE, RISK_TEXT)], indent=1),
        "\ufeff" + json.dumps([json.loads(write_json(read_record(text, "x"))) for text in (CHALLENGE, RISK_TEXT)]),
    ],
)
def test_several_records_are_read_in_order(text: str) -> None:
    assert read_all_records(text, "all.yaml") == (read_record(CHALLENGE, "c"), read_record(RISK_TEXT, "r"))


def bombs() -> str:
    """Each list is nine times the one before it."""
    return "- &a0 [x]\n" + "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


@each_row(
    ("text", "said"),
    [
        (CHALLENGE.replace('"SIGNIFICANT"', '"GRAVE"'), "x:9: challenge.severity: input should be 'BLOCKING'"),
        (CHALLENGE.replace('  status: "OPEN"\n', ""), "x:2: challenge.status is missing"),
        (CHALLENGE + "  weight: 3\n", "x:14: challenge.weight: there is no such field"),
        (CHALLENGE.replace('"C12"', '"C{N}"'), "x:3: challenge.id: string should match"),
        (STATE.replace('"C3"', '"three"'), "x:19: iteration_state.surfaced_contexts.0.generates_challenge: "),
        (f"{RISK_TEXT}---\n{CHALLENGE}".replace("MED", "SURE"), "x:19: challenge.confidence: "),
        (
            CHALLENGE.replace('"MED"', '"SURE"').replace('"SIGNIFICANT"', '"GRAVE"'),
            "'MINOR'; line 10: challenge.confidence: ",
        ),
        (
            json.dumps({"challenge": {**BARE, "claim": "🦊\u2028", "status": "SHUT"}}, indent=1),
            "x:11: challenge.status: ",
        ),
        (json.dumps({"challenge": {**BARE, "claim": "🦊\x7f", "status": 0}}, ensure_ascii=False, indent=1), "x:11: "),
        ("id: C1\nclaim: x\n", "x:1: `id` is not the name of a record"),
        ("challenge: none\n", "x:1: challenge: must hold fields"),
        ("challenge:\n  a: [\n", "x:3: neither YAML nor JSON: "),
        ("challenge: \x07\n", "x:1: neither YAML nor JSON: "),
        ('{"challenge": {"id": }', "x:1: neither YAML nor JSON: "),
        (CHALLENGE + CHALLENGE, "x:15: `challenge` a second time"),
        ('{"challenge": 1,\n"challenge": 2}', "x:2: `challenge` a second time"),
        ("? [a]\n: b\n", "x:1: a key that is not a word"),
        ("some words\n", "x:1: this is not a record"),
        ("- challenge: {}\n- 3\n", "x:1: challenge.id is missing"),
        (r'{"challenge": {"id": "\ud83d"}}', "x:1: half of a character"),
        ("challenge:\n  id: &me C1\n  claim: *me\n", "x:2: an anchor, `&me`"),
        ("&all\nchallenge: *all\n", "x:1: an anchor, `&all`"),
        ("- &all [*all]\n", "x:1: an anchor, `&all`"),
        (bombs(), "x:1: an anchor, `&a0`"),
        ("", "x: contains no record"),
        ("# nothing\n---\n", "x: contains no record"),
        ("[" * 100_000, "x:1: neither YAML nor JSON: it is nested too deeply"),
        ("# " + "x" * 600_000, "x: larger than 512 KiB"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_all_records(text, "x")
    assert said in caught.value.message
    assert caught.value.hint


def test_one_record_is_one() -> None:
    with pytest.raises(InputError, match=r"^all\.yaml: has 2 records, but only one is allowed"):
        read_record(CHALLENGE + RISK_TEXT, "all.yaml")


def references(schema: object) -> set[str]:
    if isinstance(schema, dict):
        here = {schema["$ref"]} if "$ref" in schema else set()
        return here.union(*(references(value) for value in schema.values()))
    return set().union(*(references(item) for item in schema)) if isinstance(schema, list) else set()


def test_there_is_a_schema_for_each_document_and_the_report() -> None:
    found = build_schemas()
    assert list(found) == [*RECORD_TYPES, "plan_report"]
    for key, kind in RECORD_TYPES.items():
        schema = found[key]
        assert schema["required"] == [key]
        assert schema["properties"] == {key: {"$ref": f"#/$defs/{kind.__name__}"}}
        assert list(schema["$defs"][kind.__name__]["properties"]) == FIELDS[key]
    assert set(found["plan_report"]["properties"]) == set(report().model_dump())


@each_row("schema", build_schemas().values())
def test_a_schema_stands_by_itself(schema: dict[str, Any]) -> None:
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert references(schema) == {f"#/$defs/{name}" for name in schema["$defs"]}
