"""The agents of the plan gate are exported where no layout is given, from their own prompts, contracts and table."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.registry import PLAN_GATE_ROLES
from proofstone.export.plan_gate_pages import list_plan_gate_roles
from proofstone.export.prompts import read_role_prompt
from proofstone.export.targets import EXPORT_TARGETS
from proofstone.plan_gate.rules.decision import DECISION_TABLE
from tests.export.reading import exported, fences, flowing, parsed, section
from tests.rows import each_row

FILES = {
    "challenger": "plan-gate/challenger.md",
    "domain_expert": "plan-gate/domain-expert.md",
    "devils_advocate": "plan-gate/devils-advocate.md",
    "researcher:resolve": "plan-gate/researcher-resolve.md",
    "researcher:surface": "plan-gate/researcher-surface.md",
    "researcher:probe": "plan-gate/researcher-probe.md",
    "synthesizer": "plan-gate/synthesizer.md",
    "challenger:audit": "plan-gate/challenger-audit.md",
}
OVERVIEW = "plan-gate/README.md"


def test_only_the_generic_set_has_them() -> None:
    there = {kind: sorted(path for path in exported(kind) if "plan-gate" in path) for kind in EXPORT_TARGETS}
    assert there == {"copilot": [], "claude": [], "generic": sorted([OVERVIEW, *FILES.values()])}


def test_nobody_is_left_out() -> None:
    assert set(list_plan_gate_roles()) == set(FILES)
    assert set(PLAN_GATE_ROLES) <= set(FILES)


@each_row(("name", "path"), FILES.items())
def test_a_page_has_all_of_the_prompt_and_both_contracts(name: str, path: str) -> None:
    page, role = exported("generic")[path], list_plan_gate_roles()[name]
    given, answer = (section(page, heading) for heading in ("What you are given", "Your answer"))
    assert list(parsed(fences(given, "yaml")[0])) == list(role.input.model_fields)
    assert list(parsed(fences(answer, "yaml")[0])) == list(role.output.model_fields)
    prompt = read_role_prompt(role)
    assert all(part in page for part in (prompt.purpose, prompt.given, prompt.work, prompt.judged, prompt.answer))
    assert all(flowing(rule) in flowing(page) for rule in prompt.rules)


@each_row(("name", "path"), FILES.items())
def test_a_page_says_what_stands_in_for_each_tool(name: str, path: str) -> None:
    tools = section(exported("generic")[path], "Tools")
    assert sorted(list_plan_gate_roles()[name].tools) == sorted(
        line.split("`")[1] for line in tools.splitlines() if "`" in line
    )


def test_the_overview_has_every_row_of_the_table_and_every_agent() -> None:
    page = exported("generic")[OVERVIEW]
    assert [row.when in section(page, "The table") for row in DECISION_TABLE] == [True] * len(DECISION_TABLE)
    assert all(f"]({path.removeprefix('plan-gate/')})" in section(page, "The agents") for path in FILES.values())
    assert "advice, not a lock" in flowing(page)
    assert "`proofstone verify-plan PLAN.md`" in flowing(page)


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_no_agent_of_the_pipeline_may_look_on_the_web(kind: str) -> None:
    for path, text in exported(kind).items():
        if "**Type:** Agent definition" in text:
            assert "look on the web" in section(text, "Tool Access").partition("Not allowed:")[2], path
