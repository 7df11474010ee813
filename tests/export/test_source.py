"""The definitions come from the product's own prompts, contracts and tables: who changes those changes the export."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import proofstone
from proofstone.agents.roles.models.pipeline import PlanRequest
from proofstone.agents.roles.registry import LOOP_ROLES, ROLES
from proofstone.agents.tools.models import READING_TOOLS, Tool
from proofstone.check.models import CheckKind
from proofstone.common.models import FrozenModel
from proofstone.errors import InternalError
from proofstone.export import plan_gate_pages as plan_gate
from proofstone.export import targets as copilot
from proofstone.export.definitions import PIPELINE_PLACES, build_agents
from proofstone.export.pipeline_tables import CHECKS_BY_TIER, TIER_CONDITIONS
from proofstone.export.prompts import ABILITY_BY_TOOL, Ability, split_prompt
from proofstone.export.schemas import list_schemas
from tests.export.reading import exported, flowing, section
from tests.rows import each_row

ROLE_OF = {
    "researcher": "researcher",
    "spec": "specifier",
    "designer": "designer",
    "planner": "planner",
    "implementer": "executor",
    "adversarial-reviewer": "reviewer",
    "knowledge-agent": "knowledge",
}
PROGRAM = """
import json, proofstone
from proofstone.export.targets import build_copilot_files
print(json.dumps([proofstone.__file__, build_copilot_files()]))
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a copy of the product exports in which every prompt has a sentence more."""
    root = tmp_path_factory.mktemp("product")
    package = Path(proofstone.__file__).parent
    shutil.copytree(package, root / "proofstone", ignore=shutil.ignore_patterns("__pycache__"))
    for prompt in (root / "proofstone" / "agents" / "roles" / "prompts").glob("*.md"):
        text = prompt.read_text().replace("## Rules\n", f"## Rules\n\nMind the {prompt.stem[::-1]} gap.\n")
        prompt.write_text(text.replace("## Tools\n\n", "## Tools\n\n- Mind the tools of all.\n"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=True
    )
    where, files = json.loads(done.stdout)
    assert where.startswith(str(root))
    found: dict[str, str] = files
    return found


@pytest.mark.parametrize(("name", "role"), ROLE_OF.items())
def test_a_sentence_more_in_a_prompt_is_a_sentence_more_in_the_definition(
    name: str, role: str, changed: dict[str, str]
) -> None:
    sentence = f"Mind the {role[::-1]} gap."
    path = copilot.COPILOT_HOST.agent_path(name)
    assert sentence in section(changed[path], "Workflow")
    assert sentence not in exported("copilot")[path]


@pytest.mark.parametrize("name", PIPELINE_PLACES)
def test_what_all_prompts_have_in_common_is_in_every_definition(name: str, changed: dict[str, str]) -> None:
    assert "Mind the tools of all." in section(changed[copilot.COPILOT_HOST.agent_path(name)], "Operating Rules")


@each_row(("name", "role"), ROLE_OF.items())
def test_no_part_of_a_prompt_is_lost(name: str, role: str) -> None:
    page = flowing(exported("copilot")[copilot.COPILOT_HOST.agent_path(name)])
    names = {"executor": "implementer", "specifier": "spec agent"}
    for paragraph in ROLES[role].instructions.split("\n"):
        words = " ".join(paragraph.lstrip("-0123456789. ").split())
        for old, new in names.items():
            words = words.replace(old, new)
        known = words.startswith("#") or words in page
        assert known or "JSON" in words or words.startswith("nothing around it"), paragraph


def test_of_the_rules_only_the_one_about_handing_over_json_is_left_out() -> None:
    common = ROLES["planner"].instructions.partition("## Tools")[2]
    [agent] = [one for one in build_agents() if one.name == "planner"]
    assert common.count("\n- ") == len(agent.prompt.rules) + 1


def test_a_heading_without_a_place_is_our_own_fault() -> None:
    with pytest.raises(InternalError, match="'Something new'"):
        split_prompt("You are it.\n\n## Something new\n\ntext\n")


class Wish(FrozenModel):
    """Another request, another answer."""

    colour: str


def test_title_tools_and_contracts_are_the_roles() -> None:
    planner = replace(ROLES["planner"], title="Paints", input=Wish, output=Wish, tools=READING_TOOLS | {Tool.RUN})
    [agent] = [one for one in build_agents({**ROLES, "planner": planner}) if one.name == "planner"]
    assert (agent.summary, agent.input, agent.schema.contract) == ("Paints", Wish, Wish)
    assert Ability.RUN in agent.abilities
    [known] = [one for one in build_agents() if one.name == "planner"]
    assert (known.input, Ability.RUN in known.abilities) == (PlanRequest, False)


def test_every_role_of_the_pipeline_has_an_agent() -> None:
    at_a_gate = {
        "architect",
        *(role.name for name, role in plan_gate.list_plan_gate_roles().items() if ":" not in name),
    }
    in_the_loop_alone = {role.name for role in LOOP_ROLES.values() if role in ROLES.values()}
    assert set(ROLE_OF.values()) == set(ROLES) - at_a_gate - in_the_loop_alone
    contracts = {one.contract for one in list_schemas(ROLES)}
    assert {ROLES[role].output for role in ROLE_OF.values() if role != "executor"} <= contracts


def test_every_tool_has_something_that_stands_in_for_it() -> None:
    assert set(ABILITY_BY_TOOL) == set(Tool)


def test_every_kind_of_check_has_its_tier() -> None:
    kinds = [kind for kinds in CHECKS_BY_TIER.values() for kind in kinds]
    assert sorted(kinds) == sorted(CheckKind)
    assert list(TIER_CONDITIONS) == list(CHECKS_BY_TIER) == [1, 2, 3, 4]
