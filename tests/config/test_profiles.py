"""Profiles: what each sets, and what comes before it."""

from __future__ import annotations

import pytest

from proofstone.agents.backends.api.model_choice import choose_model
from proofstone.config.probes import ProbeRecord, build_probe_key
from proofstone.config.profiles import PROFILE_VARIABLE, PROFILES, ProfileName, choose_profile
from proofstone.config.providers import ModelSettings, Provider, ProviderProtocol
from proofstone.errors import ConfigError

HOME = Provider(wire=ProviderProtocol.OPENAI_CHAT, url="http://127.0.0.1:1/v1")
SMALL, FRONTIER = PROFILES[ProfileName.SMALL], PROFILES[ProfileName.FRONTIER]
KEY = build_probe_key(HOME, "m")


def choose(
    settings: ModelSettings | None = None, probe: ProbeRecord | None = None, name: str = "small"
) -> tuple[str, str]:
    """Return how the model answers and how it changes files."""
    models, probes = {"home:m": settings or ModelSettings()}, {KEY: probe} if probe else {}
    choice = choose_model("api:home:m", {"home": HOME}, models, {}, probes, PROFILES[ProfileName(name)])
    return choice.answer, choice.edits


def test_a_profile_decides_what_nothing_else_decides() -> None:
    assert choose() == ("schema", "blocks")
    assert choose(name="standard") == ("tool", "tool")
    assert choose(ModelSettings(tier=1), name="frontier") == ("tool", "tool")


def test_settings_and_the_probe_come_first() -> None:
    assert choose(ModelSettings(answer="text", edits="tool")) == ("text", "tool")
    assert choose(probe=ProbeRecord(answer="text", calls_tools=True)) == ("text", "blocks")


def test_the_command_line_comes_before_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_profile(ProfileName.SMALL) is SMALL
    monkeypatch.setenv(PROFILE_VARIABLE, "frontier")
    assert choose_profile(ProfileName.SMALL) is FRONTIER
    monkeypatch.setenv(PROFILE_VARIABLE, "huge")
    with pytest.raises(ConfigError, match="there is no such profile"):
        choose_profile(ProfileName.SMALL)
