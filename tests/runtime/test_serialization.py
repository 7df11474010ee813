"""Every effect and every result of every workflow survives JSON, under a name that stays."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import PydanticUndefined

from proofstone.agents.models import Fault, FaultKind
from proofstone.agents.roles.models.pipeline import DesignOutput, SpecOutput
from proofstone.agents.rules.conversation import ConversationEffect, ConversationEffectResult
from proofstone.common.models import FrozenModel
from proofstone.common.serialization import deserialize, list_serializable, serialize
from proofstone.pipeline.rules.effects import PipelineEffect, PipelineEffectResult
from proofstone.plan_gate.rules.effects import PlanEffect, PlanEffectResult
from proofstone.solve.rules.effects import SolveEffect, SolveEffectResult, SubtaskEffect, SubtaskEffectResult
from tests.pipeline.stage import designer, specifier

_PLAIN: Mapping[object, object] = {
    str: "text",
    int: 1,
    float: 0.5,
    bool: True,
    NoneType: None,
    Any: 1,
    JsonValue: {"a": [1, None]},
    SpecOutput: SpecOutput.model_validate(specifier()["output"]),
    DesignOutput: DesignOutput.model_validate(designer()["output"]),
    FrozenModel: Fault(kind=FaultKind.FAILED, why="some model"),
}
_TEXTS = ("text", "C1", "U1", "S1", "R1", "K1", "P1", "AC-1", "shop/cart.py", "shop/cart.py:1", "low", "0" * 40)


def sample(annotation: Any, text: str = "text") -> Any:  # noqa: ANN401
    """Return a value of this type. `text` stands wherever any text may stand."""
    if annotation is str:
        return text
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return sample(args[0], _fit(args[1:], text))
    if origin is Literal:
        return args[0]
    if origin in (Union, UnionType):
        return sample(next(arg for arg in args if arg is not NoneType), text)
    if origin is tuple:
        return (sample(args[0], text),) if args[-1] is ... else tuple(sample(arg, text) for arg in args)
    if origin is frozenset:
        return frozenset({sample(args[0], text)})
    if origin is not None and issubclass(origin, Mapping):
        return {sample(args[0], text): sample(args[1], text)}
    if hasattr(annotation, "__value__"):  # a type alias
        return sample(annotation.__value__, text)
    if issubclass(annotation, Enum):
        return next(iter(annotation))
    if issubclass(annotation, BaseModel):
        return _sample_model(annotation, text)
    return _sample_dataclass(annotation, text)


def _sample_dataclass(annotation: Any, text: str) -> Any:  # noqa: ANN401
    hints = get_type_hints(annotation, include_extras=True)
    return annotation(**{field.name: sample(hints[field.name], text) for field in fields(annotation) if field.init})


def _sample_model(model: type[BaseModel], text: str) -> BaseModel:
    """Return a model with every field set, or with fewer if its own rules do not allow that."""
    problems = []
    for only_required in (False, True):
        for words in (text, *_TEXTS):
            try:
                return model.model_validate(_sample_fields(model, words, only_required=only_required))
            except ValidationError as error:
                problems.append(str(error))
    raise AssertionError(f"no sample of {model.__name__}: {problems[0]}")


def _sample_fields(model: type[BaseModel], text: str, *, only_required: bool) -> dict[str, Any]:
    return {
        name: sample(field.annotation, _fit(field.metadata, text))
        for name, field in model.model_fields.items()
        if not only_required or (field.default is PydanticUndefined and field.default_factory is None)
    }


def _fit(rules: Sequence[object], text: str) -> str:
    """Return a text that the rules of a field allow."""
    for rule in rules:
        text = _fit(getattr(rule, "metadata", ()), text)
        pattern, most = getattr(rule, "pattern", None), getattr(rule, "max_length", None)
        if pattern is not None and not re.search(pattern, text):
            text = next((other for other in _TEXTS if re.search(pattern, other)), text)
        text = text if most is None else text[:most]
    return text


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
