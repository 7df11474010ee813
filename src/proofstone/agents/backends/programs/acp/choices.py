"""What an agent of the Agent Client Protocol offers when a session begins, and what is chosen. Pure.

A mode in which it asks before it changes anything, by name, for the protocol has no other mark of it; a way to log in
that needs no person; the model that the person wants.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.lines import objects_at, text_at, value_at

# Ids and names of modes, in small letters and without anything between, the best first.
_ASKING: Final = (
    "ask", "alwaysask", "askalways", "approve", "manual", "default", "normal", "suggest", "untrusted", "agent", "build",
    "readonly", "smartapprove",
)  # fmt: skip
_NOT_ASKING: Final = re.compile(r"auto|yolo|bypass|full|accept|dontask|neverask|noask|skip|danger|unrestrict|allowall")


@dataclass(frozen=True)
class Mode:
    id: str
    name: str = ""


@dataclass(frozen=True)
class Choice:
    """What to ask the agent for: a method of the protocol, with its parameters beside the session."""

    method: str
    parameters: Mapping[str, JsonValue]
    value: str
    """What is chosen, for a person."""


Offer = Mapping[str, JsonValue]
"""What the agent said to `session/new`."""


def mode_for(offer: Offer, wanted: str) -> Choice | None:
    """The mode to be set. `wanted`: the one that the preset names, if the agent has it. None: it offers none in which
    it would ask."""
    modes = [Mode(text_at(item, "id"), text_at(item, "name")) for item in objects_at(offer, "modes", "availableModes")]
    if modes:
        id = asking_mode(modes, wanted)
        return Choice("session/set_mode", {"modeId": id}, id) if id else None
    for option in _options(offer, "mode"):
        id = asking_mode([Mode(value, name) for value, name in _values(option)], wanted)
        return _set(option, id) if id else None
    return None


def has_modes(offer: Offer) -> bool:
    return bool(objects_at(offer, "modes", "availableModes")) or any(_options(offer, "mode"))


def asking_mode(modes: Sequence[Mode], wanted: str = "") -> str:
    """The mode in which the agent asks before it changes anything; empty: none of them is known to."""
    if any(mode.id == wanted for mode in modes):
        return wanted
    asking = [mode for mode in modes if not any(map(_NOT_ASKING.search, _spelt(mode)))]
    known = [(_ASKING.index(word), mode.id) for mode in asking for word in _spelt(mode) if word in _ASKING]
    return min(known)[1] if known else ""


def _spelt(mode: Mode) -> tuple[str, str]:
    """Some are addresses: what counts stands behind the `#`."""
    return _plain(mode.id.rpartition("#")[2]), _plain(mode.name)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())


def model_for(offer: Offer, model: str) -> Choice | None:
    """How the model is set; None: the agent does not offer it."""
    for option in _options(offer, "model"):
        for value, name in _values(option):
            if _is(model, value, name):
                return _set(option, value)
    for item in objects_at(offer, "models", "availableModels"):
        id = text_at(item, "modelId")
        if _is(model, id, text_at(item, "name")):
            return Choice("session/set_model", {"modelId": id}, id)
    return None


def has_model(offer: Offer, model: str) -> bool:
    """Whether it is the model that the session has already."""
    return _is(model, *_current_models(offer))


def tells_model(offer: Offer) -> bool:
    """Whether it tells which model the session has."""
    return any(_current_models(offer))


def _current_models(offer: Offer) -> list[str]:
    options = [text_at(option, "currentValue") for option in _options(offer, "model")]
    return [*options, text_at(offer, "models", "currentModelId")]


def _is(model: str, *called: str) -> bool:
    """Some put the name of the provider before it."""
    return any(name == model or name.endswith(f"/{model}") for name in called)


def login_for(methods: Sequence[Mapping[str, JsonValue]], given: Collection[str]) -> str:
    """A way to log in for which everything is there: the variables with its key. Empty: all of them need a person."""
    for method in methods:
        variables = [text_at(item, "name") for item in objects_at(method, "vars")] or _variables_in(method)
        if variables and all(name in given for name in variables):
            return text_at(method, "id")
    for method in methods:
        if _takes_a_key(method) and any(name.endswith("_KEY") for name in given):
            return text_at(method, "id")
    return ""


def _variables_in(method: Mapping[str, JsonValue]) -> list[str]:
    """Those that its description names."""
    return re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*KEY\b", text_at(method, "description"))


def _takes_a_key(method: Mapping[str, JsonValue]) -> bool:
    return "apikey" in _plain(text_at(method, "id")) or "apikey" in _plain(text_at(method, "name"))


def _options(offer: Offer, category: str) -> Iterator[Mapping[str, JsonValue]]:
    for option in objects_at(offer, "configOptions"):
        if text_at(option, "type") == "select" and category in (text_at(option, "category"), text_at(option, "id")):
            yield option


def _values(option: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Value and name of each, also of those that stand in groups."""
    for item in objects_at(option, "options"):
        if value_at(item, "value") is not None:
            yield text_at(item, "value"), text_at(item, "name")
        for inner in objects_at(item, "options"):
            yield text_at(inner, "value"), text_at(inner, "name")


def _set(option: Mapping[str, JsonValue], value: str) -> Choice:
    return Choice("session/set_config_option", {"configId": text_at(option, "id"), "value": value}, value)
