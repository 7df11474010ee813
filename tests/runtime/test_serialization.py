"""Every effect and every result of every workflow survives JSON, under a name that stays."""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType
from typing import Final, get_args

import pytest

from proofstone.agents.rules.conversation import ConversationEffect, ConversationEffectResult
from proofstone.common.serialization import deserialize, list_serializable, serialize
from proofstone.pipeline.rules.effects import PipelineEffect, PipelineEffectResult
from proofstone.plan_gate.rules.effects import PlanEffect, PlanEffectResult
from proofstone.solve.rules.effects import SolveEffect, SolveEffectResult, SubtaskEffect, SubtaskEffectResult
from tests.runtime.samples import sample

UNIONS: Final = (
    ConversationEffect,
    ConversationEffectResult,
    PipelineEffect,
    PipelineEffectResult,
    PlanEffect,
    PlanEffectResult,
    SolveEffect,
    SolveEffectResult,
    SubtaskEffect,
    SubtaskEffectResult,
)
EXCHANGED: Final = {kind for union in UNIONS for kind in get_args(union)} - {NoneType}
"""All that a workflow yields or receives. A result that is None is written as null."""
NAMES: Final = Path(__file__).parent / "names.json"


def test_every_effect_and_result_has_a_name() -> None:
    assert set(list_serializable().values()) == EXCHANGED


def test_no_name_changes() -> None:
    """A stored journal and a worker of another version know these names: a name may be added, none may change."""
    assert sorted(list_serializable()) == json.loads(NAMES.read_text())


@pytest.mark.parametrize("name", sorted(list_serializable()))
def test_a_value_survives_json(name: str) -> None:
    value = sample(list_serializable()[name])
    written = json.dumps(serialize(value))
    assert deserialize(json.loads(written)) == value
    assert json.loads(written)["type"] == name


@pytest.mark.parametrize("document", [None, {}, {"type": "pipeline.nothing", "value": {}}, "pipeline.commit_change"])
def test_what_is_not_a_serialized_value_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="not a serialized value of a known type"):
        deserialize(document)


def test_a_class_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="Path is not registered"):
        serialize(NAMES)
