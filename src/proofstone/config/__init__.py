"""Settings, read once.

A repository's settings are in `proofstone.toml` in its root, or in `[tool.proofstone]` of its `pyproject.toml`. A
user's own settings are in a file of their own, which takes precedence.

settings.py      the settings of a repository: one frozen model for each section, with documented and bounded fields
backends.py      which backend serves which role, and what agents may spend
providers.py     model providers, and what is known about single models
services.py      the web and telemetry services that a user has configured
user.py          the settings of a user, and how they combine with a repository's
loader.py        from text to `Settings`, or a `ConfigError` that names file, line, key and a correct value
rules.py         which changes of a setting weaken a check, and which values need the user's consent
trust.py         the consent that a user has given
setting_docs.py  the line of a key in a TOML text, and descriptions of settings from the models' schema
home.py          the folder of Proofstone's state
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
