"""The pipeline's tables: whole, and without a loop that has no end."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

from proofstone.agents.models import FaultKind
from proofstone.agents.rules.budget import FAULT_POLICIES
from proofstone.agents.rules.conversation import MAX_REPAIRS
from proofstone.export.definitions import PIPELINE_PLACES
from proofstone.export.overview import build_dispatch_patterns
from proofstone.export.pipeline_tables import BUDGETS, EDGES, END, GATES, STEPS, build_diagram
from proofstone.export.targets import EXPORT_TARGETS
from proofstone.gate.rules.pass_rule import MIN_SIGNALS, MIN_SIGNALS_LARGE
from proofstone.gate.rules.state_machine import MAX_ATTEMPTS, RETRY_POLICIES
from tests.export.reading import exported, flowing

IDS = [step.id for step in STEPS]


def order(bounded: bool) -> list[str]:
    """The steps in an order in which they can come, with or without the ways back that are bounded."""
    graph: dict[str, set[str]] = {}
    for edge in EDGES:
        if bounded or not edge.bound:
            graph.setdefault(edge.target, set()).add(edge.source)
    return list(TopologicalSorter(graph).static_order())


def test_every_loop_has_an_edge_that_is_bounded() -> None:
    assert order(bounded=False)
    with pytest.raises(CycleError):
        order(bounded=True)


def test_every_step_is_reached_and_left() -> None:
    assert {edge.target for edge in EDGES} == {*IDS[1:], END}
    assert {edge.source for edge in EDGES} == set(IDS)
    assert len(set(IDS)) == len(IDS)


def test_every_agent_has_a_step_and_every_step_an_agent() -> None:
    assert {step.agent for step in STEPS} == set(PIPELINE_PLACES)


def test_the_diagram_shows_every_step_and_every_edge() -> None:
    lines = build_diagram().splitlines()
    assert lines[0] == "flowchart TD"
    assert len([line for line in lines if "-->" in line]) == len(EDGES)
    for step in STEPS:
        assert sum(f'"{step.id} {step.title}<br/>' in line for line in lines) == 1
    assert '    S6 -- "NEEDS_REVISION<br/>(max 3)" --> S6r' in lines


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_the_orchestrator_is_told_every_step_and_every_gate(kind: str) -> None:
    page = flowing(next(text for path, text in exported(kind).items() if "orchestrator" in path))
    for step in STEPS:
        assert f"**Step {step.id}, {step.title}.** {step.does}" in page
    for gate in GATES:
        for option in gate.options:
            assert f"| `{gate.id}` | {gate.step} | `{option.id}`" in page
    assert f"at least {MIN_SIGNALS} distinct passing checks ({MIN_SIGNALS_LARGE} for a Large one)" in page


def test_numbers_that_the_product_has_are_the_products() -> None:
    most = {budget.loop: budget.most for budget in BUDGETS}
    assert most["Attempts at one task"] == MAX_ATTEMPTS
    assert most["Corrections of an output that is not of its schema"] == MAX_REPAIRS
    assert (
        most["Retries of a tool inside an agent, for an error that may pass"]
        == FAULT_POLICIES[FaultKind.UNAVAILABLE].retries
    )
    page = build_dispatch_patterns()
    for failure, policy in RETRY_POLICIES.items():
        assert f"| `{failure}` | {policy.retries} |" in page
