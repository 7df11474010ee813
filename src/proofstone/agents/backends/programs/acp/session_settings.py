"""Choose from what an agent offers when a session begins. Pure.

Chosen are: a mode in which the agent asks before it changes anything, by its name, because the protocol does not mark
such modes; a login that needs no person; the model that the user wants.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends.programs.lines import get_objects, get_text, get_value

# Ids and names of modes, in lower case and without punctuation, the best first.
_ASKING_WORDS: Final = (
    "ask", "alwaysask", "askalways", "approve", "manual", "default", "normal", "suggest", "untrusted", "agent", "build",
    "readonly", "smartapprove",
)  # fmt: skip
_UNATTENDED: Final = re.compile(r"auto|yolo|bypass|full|accept|dontask|neverask|noask|skip|danger|unrestrict|allowall")


@dataclass(frozen=True)
class SessionMode:
    """A session mode that the agent offers."""

    id: str
    name: str = ""


@dataclass(frozen=True)
class SessionSetting:
    """A request to the agent: a method of the protocol, with its parameters besides the session."""

    method: str
    parameters: Mapping[str, JsonValue]
    value: str
    """The value that is chosen, to show to the user."""


SessionOffer = Mapping[str, JsonValue]
"""The agent's answer to `session/new`."""


def choose_mode(offer: SessionOffer, wanted: str) -> SessionSetting | None:
    """Return the mode to set, or None if the agent offers none in which it asks.

    `wanted` is the mode that the preset names; it is preferred if the agent has it.
    """
    modes = [
        SessionMode(get_text(mode, "id"), get_text(mode, "name"))
        for mode in get_objects(offer, "modes", "availableModes")
    ]
    if modes:
        id = find_asking_mode(modes, wanted)
        return SessionSetting("session/set_mode", {"modeId": id}, id) if id else None
    for option in _find_options(offer, "mode"):
        id = find_asking_mode([SessionMode(value, name) for value, name in _list_values(option)], wanted)
        return _select_option(option, id) if id else None
    return None


def has_modes(offer: SessionOffer) -> bool:
    return bool(get_objects(offer, "modes", "availableModes")) or any(_find_options(offer, "mode"))


def find_asking_mode(modes: Sequence[SessionMode], wanted: str = "") -> str:
    """Return the mode in which the agent asks before it changes anything, or an empty text if none is known to."""
    if any(mode.id == wanted for mode in modes):
        return wanted
    asking = [mode for mode in modes if not any(map(_UNATTENDED.search, _normalize_mode(mode)))]
    known = [
        (_ASKING_WORDS.index(word), mode.id)
        for mode in asking
        for word in _normalize_mode(mode)
        if word in _ASKING_WORDS
    ]
    return min(known)[1] if known else ""


def _normalize_mode(mode: SessionMode) -> tuple[str, str]:
    """Return the id and the name of a mode for comparison. Some ids are URLs, of which only the fragment counts."""
    return _normalize(mode.id.rpartition("#")[2]), _normalize(mode.name)


def _normalize(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())


def find_model(offer: SessionOffer, model: str) -> SessionSetting | None:
    """Return how to set the model, or None if the agent does not offer it."""
    for option in _find_options(offer, "model"):
        for value, name in _list_values(option):
            if _matches_model(model, value, name):
                return _select_option(option, value)
    for model_offer in get_objects(offer, "models", "availableModels"):
        id = get_text(model_offer, "modelId")
        if _matches_model(model, id, get_text(model_offer, "name")):
            return SessionSetting("session/set_model", {"modelId": id}, id)
    return None


def has_model(offer: SessionOffer, model: str) -> bool:
    """Return whether the session already has this model."""
    return _matches_model(model, *_list_current_models(offer))


def reports_model(offer: SessionOffer) -> bool:
    """Return whether the agent reports which model the session has."""
    return any(_list_current_models(offer))


def _list_current_models(offer: SessionOffer) -> list[str]:
    options = [get_text(option, "currentValue") for option in _find_options(offer, "model")]
    return [*options, get_text(offer, "models", "currentModelId")]


def _matches_model(model: str, *names: str) -> bool:
    """Return whether one of the names is that of the model. Some agents put the provider's name before it."""
    return any(name == model or name.endswith(f"/{model}") for name in names)


def choose_login(methods: Sequence[Mapping[str, JsonValue]], variables_set: Collection[str]) -> str:
    """Return a login whose variables with the key are all set, or an empty text if every login needs a person."""
    for method in methods:
        variables = [get_text(variable, "name") for variable in get_objects(method, "vars")] or _find_variables(method)
        if variables and all(name in variables_set for name in variables):
            return get_text(method, "id")
    for method in methods:
        if _uses_api_key(method) and any(name.endswith("_KEY") for name in variables_set):
            return get_text(method, "id")
    return ""


def _find_variables(method: Mapping[str, JsonValue]) -> list[str]:
    """Return the variables that the description names."""
    return re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*KEY\b", get_text(method, "description"))


def _uses_api_key(method: Mapping[str, JsonValue]) -> bool:
    return "apikey" in _normalize(get_text(method, "id")) or "apikey" in _normalize(get_text(method, "name"))


def _find_options(offer: SessionOffer, category: str) -> Iterator[Mapping[str, JsonValue]]:
    for option in get_objects(offer, "configOptions"):
        if get_text(option, "type") == "select" and category in (get_text(option, "category"), get_text(option, "id")):
            yield option


def _list_values(option: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield value and name of each choice, including those in groups."""
    for choice in get_objects(option, "options"):
        if get_value(choice, "value") is not None:
            yield get_text(choice, "value"), get_text(choice, "name")
        for nested in get_objects(choice, "options"):
            yield get_text(nested, "value"), get_text(nested, "name")


def _select_option(option: Mapping[str, JsonValue], value: str) -> SessionSetting:
    return SessionSetting("session/set_config_option", {"configId": get_text(option, "id"), "value": value}, value)
