"""The presets of all known programs, by the name that `cli:` and `acp:` use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proofstone.agents.backends.programs.known import (
    aider,
    claude,
    codex,
    copilot,
    gemini,
    goose,
    mini_swe_agent,
    opencode,
    qwen,
)
from proofstone.agents.backends.programs.preset import Preset

PRESETS: Final[Mapping[str, Preset]] = {
    module.PRESET.name: module.PRESET
    for module in (claude, codex, gemini, opencode, qwen, copilot, goose, aider, mini_swe_agent)
}
