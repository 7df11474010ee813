"""How capable models are, and who may judge whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.tiers import ModelDemand, ServingBackend, find_model_tier, find_tier_problems
from tests.rows import each_row

MODELS: dict[str, int | None] = {
    "gpt-5": 3,
    "gpt-5-mini": 1,
    "gpt-5.2-codex": 3,
    "gpt-4.1": 2,
    "gpt-4.1-nano": 1,
    "o3": 3,
    "o4-mini": 1,
    "claude-opus-4-5": 3,
    "claude-sonnet-4-5": 2,
    "claude-3-5-haiku-latest": 1,
    "anthropic/claude-opus-4.1": 3,
    "gemini-2.5-pro": 3,
    "gemini-2.5-flash": 1,
    "gemini-2.5-flash-lite": 1,
    "gemini-1.5-pro": 2,
    "mistral-small-latest": 1,
    "mistral-large-latest": 2,
    "deepseek-reasoner": 3,
    "deepseek-chat": 2,
    "qwen2.5-coder:7b": 1,
    "qwen2.5-coder:32b": 2,
    "meta-llama/Llama-3.3-70B-Instruct-Turbo": 2,
    "minimax-m2": 2,
    "my-own-model": None,
    "": None,
}


@each_row(("model", "tier"), MODELS.items())
def test_the_tier_of_a_model_by_its_name(model: str, tier: int | None) -> None:
    assert find_model_tier(model) == tier


DEMANDS = {
    "planner": ModelDemand(1),
    "executor": ModelDemand(1),
    "architect": ModelDemand(1, ("executor",)),
    "meta_validator": ModelDemand(1, ("planner",), strict=True),
    "reviewer": ModelDemand(1, ("executor",)),
}
STRONG, STANDARD, SMALL = (
    ServingBackend("api:a:s", "a", 3),
    ServingBackend("api:b:m", "b", 2),
    ServingBackend("api:c:l", "c", 1),
)
UNKNOWN, HUMAN = ServingBackend("cmd:./agent"), ServingBackend("human")

Table = Mapping[str, Sequence[ServingBackend]]
FOUND: dict[str, tuple[Table, list[tuple[bool, str]]]] = {
    "a judge as capable": ({"executor": [STANDARD], "architect": [STANDARD]}, []),
    "a judge more capable": ({"planner": [STANDARD], "meta_validator": [STRONG]}, []),
    "a weaker judge": (
        {"executor": [STRONG], "architect": [STANDARD]},
        [(False, "architect judges executor with a weaker model: api:b:m (tier 2) against api:a:s (tier 3)")],
    ),
    "a weaker strict judge": (
        {"planner": [STRONG], "meta_validator": [STANDARD]},
        [(True, "meta_validator judges planner with a weaker model")],
    ),
    "a weaker fallback of a judge": ({"executor": [STANDARD], "architect": [STRONG, SMALL]}, [(False, "api:c:l")]),
    "a stronger fallback of the judged": ({"executor": [SMALL, STRONG], "architect": [STANDARD]}, [(False, "api:a:s")]),
    "an unknown judge": (
        {"executor": [STRONG], "architect": [UNKNOWN]},
        [(False, "architect is capable enough to judge executor cannot be verified: the tier of cmd:./agent")],
    ),
    "an unknown strict judge": ({"planner": [SMALL], "meta_validator": [UNKNOWN]}, [(True, "cannot be verified")]),
    "an unknown strict judge of itself": ({"planner": [UNKNOWN], "meta_validator": [UNKNOWN]}, []),
    "an unknown strict judge of itself and of another": (
        {"planner": [UNKNOWN, SMALL], "meta_validator": [UNKNOWN]},
        [(True, "judge planner cannot be verified: the tier of cmd:./agent is not known")],
    ),
    "a known fallback that judges an unknown one": (
        {"planner": [UNKNOWN], "meta_validator": [UNKNOWN, STRONG]},
        [(True, "the tier of cmd:./agent is not known")],
    ),
    "unknown ones beside a weaker one": (
        {"executor": [STRONG, UNKNOWN], "architect": [STANDARD]},
        [(False, "with a weaker model"), (False, "cannot be verified")],
    ),
    "a person judges": ({"executor": [STRONG], "architect": [HUMAN]}, []),
    "a person is judged": ({"executor": [HUMAN], "architect": [SMALL]}, []),
    "nobody serves": ({"executor": [], "architect": [SMALL]}, []),
    "reviewers of three vendors": (
        {"reviewer:security": [STRONG], "reviewer:architecture": [STANDARD], "reviewer:correctness": [SMALL]},
        [],
    ),
    "reviewers of two vendors": (
        {"reviewer:security": [STRONG], "reviewer:architecture": [STRONG], "reviewer:correctness": [SMALL]},
        [(False, "perspective-diverse fallback")],
    ),
    "reviewers who are the same program": (
        {"reviewer:security": [UNKNOWN], "reviewer:architecture": [UNKNOWN]},
        [(False, "perspective-diverse fallback")],
    ),
    "reviewers who are people": ({"reviewer:security": [HUMAN], "reviewer:architecture": [HUMAN]}, []),
}


@each_row(("served", "expected"), FOUND.values())
def test_what_does_not_hold_is_refused_or_recorded(served: Table, expected: list[tuple[bool, str]]) -> None:
    found = find_tier_problems(served, DEMANDS)
    assert [problem.is_refused for problem in found] == [refuse for refuse, _ in expected]
    for problem, (_, text) in zip(found, expected, strict=True):
        assert text in problem.text


def test_a_role_with_too_small_a_model_is_recorded() -> None:
    demands = {name: one.demand for name, one in ROLES.items()}
    found = find_tier_problems({"planner": [SMALL], "knowledge": [SMALL], "designer": [UNKNOWN, HUMAN]}, demands)
    assert [(one.is_refused, one.text) for one in found] == [
        (False, "planner should have a model of tier 3; api:c:l is of tier 1")
    ]


def test_the_meta_validator_must_not_be_weaker_than_the_planner_and_other_judges_should_not() -> None:
    demands = {name: one.demand for name, one in ROLES.items()}
    served = {"planner": [STRONG], "executor": [STRONG], "agent_validator": [STANDARD], "meta_validator": [STANDARD]}
    found = {
        one.text.split()[0]: one.is_refused for one in find_tier_problems(served, demands) if " judges " in one.text
    }
    assert found == {"agent_validator": False, "meta_validator": True}
