"""Settings, read once: `proofstone.toml` in the repository's root, or `[tool.proofstone]` in its `pyproject.toml`; and
a person's
own file, which goes before it.

component.py  what the settings of every component have in common
settings.py   what a repository can set: one frozen model for each component, documented and bounded field by field
backends.py   who serves which role, and which of several places that say so is right
budget.py     what agents may spend
providers.py  who serves models, and what is known about single models
person.py     what a person can set, where it stands, and how it goes with what a repository says
reading.py    from text to `Settings`, or a `ConfigError` that names file, line, key and what would be right
lines.py      on which line of a TOML text a key stands
wording.py    what a setting takes, in words, from the models' own schema
home.py       where Proofstone keeps its state
"""

from __future__ import annotations

from proofstone.config.home import proofstone_home
from proofstone.config.reading import FILES, configured_in, load, load_files, load_text
from proofstone.config.settings import (
    CheckSettings,
    EnvironmentSettings,
    GateSettings,
    LimitSettings,
    SandboxLevel,
    SandboxSettings,
    Settings,
    TestSettings,
)

__all__ = [
    "FILES",
    "CheckSettings",
    "EnvironmentSettings",
    "GateSettings",
    "LimitSettings",
    "SandboxLevel",
    "SandboxSettings",
    "Settings",
    "TestSettings",
    "configured_in",
    "load",
    "load_files",
    "load_text",
    "proofstone_home",
]
