"""Write values of workflows as JSON under stable names, and read them back.

Effects and their results cross the border of a process: the journal keeps results, and another engine may carry out an
effect on another machine. So each of their classes is registered under a name that stays the same when the class is
renamed or moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from pydantic import JsonValue, PlainSerializer, PlainValidator, TypeAdapter

from proofstone.common.models import FrozenModel

T = TypeVar("T")
_TYPE: Final = "type"
_VALUE: Final = "value"
_TYPES: Final[dict[str, type]] = {}
_NAMES: Final[dict[type, str]] = {}
_ADAPTERS: Final[dict[type, TypeAdapter[Any]]] = {}


def serializable(name: str) -> Callable[[type[T]], type[T]]:
    """Register a dataclass or a model under a stable name."""

    def register(cls: type[T]) -> type[T]:
        if name in _TYPES:
            raise ValueError(f"{name}: is the name of {_TYPES[name].__qualname__} already")
        _TYPES[name], _NAMES[cls] = cls, name
        return cls

    return register


def list_serializable() -> Mapping[str, type]:
    """Return every registered class by its name."""
    return dict(_TYPES)


def serialize(value: object) -> dict[str, JsonValue]:
    """Return a value of a registered class as JSON, together with the name of its class."""
    cls: type[Any] = type(value)
    if cls not in _NAMES:
        raise TypeError(f"{cls.__qualname__} is not registered: decorate it with @serializable")
    return {_TYPE: _NAMES[cls], _VALUE: _adapter(cls).dump_python(value, mode="json")}


def deserialize(document: object) -> Any:  # noqa: ANN401  the document names the type
    """Return the value that `serialize` has written."""
    if not isinstance(document, Mapping) or document.get(_TYPE) not in _TYPES:
        raise ValueError(f"not a serialized value of a known type: {str(document)[:200]}")
    return _adapter(_TYPES[document[_TYPE]]).validate_python(document[_VALUE])


def _adapter(cls: type[Any]) -> TypeAdapter[Any]:
    if cls not in _ADAPTERS:
        _ADAPTERS[cls] = TypeAdapter(cls)
    return _ADAPTERS[cls]


def _dump_model(model: FrozenModel) -> dict[str, JsonValue]:
    return {_TYPE: type(model).__name__, _VALUE: model.model_dump(mode="json")}


def _load_model(document: object) -> FrozenModel:
    if isinstance(document, FrozenModel):
        return document
    if not isinstance(document, Mapping):
        raise ValueError("not a serialized model")
    return _find_model(str(document.get(_TYPE))).model_validate(document[_VALUE])


@cache
def _find_model(name: str) -> type[FrozenModel]:
    found = [model for model in _list_models(FrozenModel) if model.__name__ == name]
    if len(found) != 1:
        raise ValueError(f"{name}: {'no' if not found else 'more than one'} model has this name")
    return found[0]


def _list_models(base: type[FrozenModel]) -> Iterator[type[FrozenModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _list_models(model)


AnyModel = Annotated[FrozenModel, PlainSerializer(_dump_model), PlainValidator(_load_model)]
"""A field that holds some model, such as the output of a role. It is written with the name of its class."""
