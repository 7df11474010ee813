"""Who takes part: how many they are, how each says that it has ended, in which words, and what each is told to check.

The seed's agents are pages of instructions. Such pages are exported (`tests/export` holds the checks of them, and shows
that each can fail); the runtime has roles instead, with contracts that code enforces. The criteria hold for both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from proofstone.agents.models import Completion, CompletionStatus, RoleOutput
from proofstone.agents.roles.models.plan_gate_records import PlanSeverity
from proofstone.agents.roles.registry import LOOP_ROLES, PLAN_GATE_ROLES, ROLES
from proofstone.agents.roles.role import Role
from proofstone.agents.rules.answer import MalformedAnswer, parse_answer
from proofstone.common.models import FrozenModel, Severity
from tests.acceptance.conftest import Ended
from tests.export import checks
from tests.export.checks import Check
from tests.export.reading import HOSTS, exported
from tests.pipeline.talk import GAVE_UP, concern, design, finding, plan, research, review, spec, talk

EVERYBODY = {**ROLES, **PLAN_GATE_ROLES, **LOOP_ROLES}
of_everybody = pytest.mark.parametrize("one", EVERYBODY.values(), ids=EVERYBODY)
IN_A_RUN = {"researcher", "specifier", "designer", "reviewer", "planner", "executor", "architect", "knowledge"}
"""The seed's nine, but for the orchestrator and the verifier, which are the engine: it dispatches and it checks."""
DISPATCHES = "SELECT payload FROM messages WHERE type = 'Dispatch'"
AT_ITS_PLAN_GATE = {"challenger", "synthesizer"}


def wrong(check: Check) -> list[str]:
    """What is wrong with the definitions that are exported, for any program."""
    return [problem for kind, host in HOSTS.items() for problem in check(host, exported(kind))]


# AC-2: not fewer than 4 and not more than 15.


def test_ac_02_there_are_at_least_four_and_at_most_fifteen_roles(well: Ended) -> None:
    """AC-2. As they are defined, and as they are asked in a whole run."""
    assert 4 <= len(IN_A_RUN) <= len(ROLES) <= 15
    asked = {json.loads(payload)["occasion"]["role"] for (payload,) in well.rows(DISPATCHES)}
    assert asked == IN_A_RUN | AT_ITS_PLAN_GATE
    assert asked <= set(ROLES)


@pytest.mark.seed("pipeline", "definitions-exported")
def test_ac_02_nine_definitions_are_exported() -> None:
    """AC-2: the seed's own nine."""
    assert wrong(checks.agent_count) == []


# AC-3: everybody ends by one of three words.


def test_ac_03_every_definition_says_when_it_ends_how() -> None:
    """AC-3."""
    assert wrong(checks.completion_contracts) == []


def test_ac_03_there_are_three_ways_to_end() -> None:
    """AC-3, with the fields of the seed's contract."""
    assert [one.value for one in CompletionStatus] == ["DONE", "NEEDS_REVISION", "ERROR"]
    fields = ["status", "summary", "severity", "findings_count", "risk_level", "output_paths", "evidence_summary"]
    assert list(Completion.model_fields) == fields


READ = (ROLES["executor"], ROLES["architect"])
"""Whose answer has the form that the gate's seed gives it."""


@of_everybody
@pytest.mark.seed("pipeline", "completion-contract")
def test_ac_03_every_role_ends_by_the_contract(one: Role) -> None:
    """AC-3. They state it in their answer, and without it there is none; at the task gate, where the form of an answer
    is another seed's, code reads it from what was answered."""
    assert issubclass(one.output, RoleOutput) == (one not in READ)
    if one in READ:
        assert one.completion is not ROLES["designer"].completion
        return
    assert "completion" in one.output.model_json_schema()["required"]
    for said in (b"{}", b'{"completion": {"status": "FINE", "summary": "s"}}', b'{"completion": {"status": "DONE"}}'):
        found = parse_answer(said, one.output)
        assert isinstance(found, MalformedAnswer)
        assert "completion" in found.why


@pytest.mark.parametrize(
    ("who", "answer", "reason"),
    [
        ("spec", spec(), "no specification: I cannot"),
        ("design 1", design(), "no design: I cannot"),
        ("plan", plan(), "no plan: I cannot"),
        ("research", research(), "insufficient research: 0 of 4 researchers answered"),
        ("code", review(), "code review: security has not submitted: I cannot"),
    ],
)
@pytest.mark.seed("pipeline", "completion-contract")
def test_ac_03_an_error_is_no_answer_whatever_stands_beside_it(who: str, answer: RoleOutput, reason: str) -> None:
    """AC-3. An agent that says ERROR was not heard, although the rest of what it says is of the schema."""
    it = talk(script={who: answer.model_copy(update={"completion": GAVE_UP})})
    assert (it.end.outcome.value, it.end.commit) == ("failed", None)
    assert it.end.reason.startswith(reason)


def test_ac_03_how_everybody_ended_is_on_record(well: Ended, red: Ended) -> None:
    """AC-3: in the telemetry, by step and agent; two researchers and the keeper of knowledge ended in an error."""
    step = "SELECT step, instance, status, retry_count FROM pipeline_telemetry WHERE run_id = ?"
    query = f"{step} AND status != 'running'"
    assert {status for _, _, status, _ in well.rows(query, well.report.run_id)} == {"DONE"}
    ended = [row for row in red.rows(query, red.report.run_id) if row[2] != "DONE"]
    assert sorted(ended, key=str) == [
        ("knowledge", None, "ERROR", 1),
        ("research/r1", "impact", "ERROR", 1),
        ("research/r1", "patterns", "ERROR", 1),
    ]


# AC-7: one scale of severity.

SEVERITIES = {"blocker", "critical", "major", "minor"}


def _scales(schema: object) -> Iterator[set[str]]:
    """The words that each field `severity` of a schema allows."""
    if isinstance(schema, list):
        for one in schema:
            yield from _scales(one)
    if not isinstance(schema, dict):
        return
    for name, value in schema.items():
        if name == "severity" and isinstance(value, dict):
            yield set(re.findall(r"'(\w+)'", str(_enums(value))))
        yield from _scales(value)


def _enums(schema: object) -> list[Any]:
    if isinstance(schema, list):
        return [word for one in schema for word in _enums(one)]
    if not isinstance(schema, dict):
        return []
    own = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]
    return [*own, *(word for value in schema.values() for word in _enums(value))]


def _inlined(contract: type[FrozenModel]) -> object:
    """Its schema, with definitions where they are referred to, as deep as they go."""
    schema = contract.model_json_schema()
    definitions = schema.get("$defs", {})

    def put(value: object, depth: int = 0) -> object:
        if isinstance(value, list):
            return [put(one, depth) for one in value]
        if not isinstance(value, dict):
            return value
        reference = str(value.get("$ref", "")).rpartition("/")[2]
        if reference in definitions and depth < 8:
            return put(definitions[reference], depth + 1)
        return {name: put(one, depth) for name, one in value.items() if name != "$defs"}

    return put(schema)


@of_everybody
@pytest.mark.seed("pipeline", "severity")
def test_ac_07_every_severity_is_of_the_one_scale(one: Role) -> None:
    """AC-7. The plan gate's own words are read as words of the scale (rules, section 0), and no third one is."""
    scales = [scale for contract in (one.input, one.output) for scale in _scales(_inlined(contract))]
    assert scales or one in READ or not issubclass(one.output, RoleOutput)
    for scale in scales:
        assert scale in (SEVERITIES, {word.value for word in PlanSeverity})


def test_ac_07_the_scale_is_the_ledgers_too(well: Ended) -> None:
    """AC-7: no row can say anything else."""
    assert {one.value for one in Severity} == SEVERITIES
    ((made,),) = well.rows("SELECT sql FROM sqlite_master WHERE name = 'checks'")
    (allowed,) = re.findall(r"severity IN \(([^)]*)\)", made)
    assert set(re.findall(r"\w+", allowed.lower())) == SEVERITIES


@pytest.mark.parametrize(
    ("word", "read"),
    [
        *((word, word.lower()) for word in ("Blocker", "CRITICAL", "Major", "minor")),
        *(("BLOCKING", "blocker"), ("SIGNIFICANT", "major"), ("MINOR", "minor")),
    ],
)
@pytest.mark.seed("pipeline", "severity")
def test_ac_07_every_spelling_of_it_is_read(word: str, read: str) -> None:
    """AC-7: the seed's own, and verify-plan's."""
    assert Severity(word).value == read
    assert finding().model_validate({**finding().model_dump(), "severity": word}).severity.value == read
    assert concern().model_validate({**concern().model_dump(), "severity": word}).severity.value == read


def test_ac_07_no_definition_has_another_scale() -> None:
    """AC-7."""
    assert wrong(checks.unified_severity) == []


@of_everybody
def test_ac_07_no_prompt_teaches_another_scale(one: Role) -> None:
    """AC-7."""
    assert not re.search(r"\b(?:severity|severities)\b[^.\n]*\b(?:high|medium|low|trivial)\b", one.instructions, re.I)


# AC-8, of the definitions; what a run writes down is in `test_whole_run.py`.


def test_ac_08_every_definition_refers_to_a_schema_that_is_there() -> None:
    """AC-8."""
    assert wrong(checks.typed_outputs) == []


# AC-12: everybody is told to check themselves, and nobody is believed for that.


def test_ac_12_every_definition_has_something_to_go_through_before_it_returns() -> None:
    """AC-12."""
    assert wrong(checks.self_verification) == []


@of_everybody
def test_ac_12_everybody_is_told_what_will_be_judged_and_what_an_answer_must_hold(one: Role) -> None:
    """AC-12. The seed has each agent verify itself before it returns. Here it is told what its work is held against,
    and the schema is checked by code."""
    assert "\n## What you return\n" in one.instructions
    assert "\n## What happens with your answer\n" in one.instructions
    assert "Nothing you say counts as evidence" in one.instructions
    assert "correct what is named and send the whole object again" in one.instructions


def test_ac_12_an_executor_checks_its_own_work_and_the_engine_does_it_again() -> None:
    """AC-12. It runs the verify commands itself before it says success; the engine's own run decides."""
    told = ROLES["executor"].instructions
    assert "`success` if all of it is done and you saw the verify commands pass" in told
    assert "The engine freezes your work tree, runs the checks" in told


@pytest.mark.parametrize("said", [review("needs_revision"), review("blocker"), plan(), design(), spec(), research()])
def test_ac_12_what_contradicts_itself_is_no_answer(said: RoleOutput) -> None:
    """AC-12. What a careful agent would see in its own answer, code sees: a verdict without its finding, a task that
    waits for itself, a selection of nothing, an id twice."""
    wrong: dict[str, dict[str, Any]] = {
        "PanelOutput": {"findings": []},
        "PlanOutput": {"tasks": [{**_first(said, "tasks"), "depends_on": [_first(said, "tasks").get("id")]}]},
        "DesignOutput": {"decisions": [{**_first(said, "decisions"), "selected": "nothing"}]},
        "SpecOutput": {"acceptance_criteria": [_first(said, "acceptance_criteria")] * 2},
        "ResearchOutput": {"findings": [_first(said, "findings")] * 2},
    }
    body = said.model_dump(mode="json")
    assert type(said).model_validate(body) == said
    with pytest.raises(ValidationError):
        type(said).model_validate({**body, **wrong[type(said).__name__]})


def _first(said: RoleOutput, field: str) -> dict[str, Any]:
    found = said.model_dump(mode="json").get(field)
    return dict(found[0]) if found else {}
