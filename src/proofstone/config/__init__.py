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

from proofstone.config.home import find_proofstone_home
from proofstone.config.loader import (
    SETTINGS_FILES,
    find_settings_file,
    load_settings,
    load_settings_files,
    load_settings_text,
)
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
    "SETTINGS_FILES",
    "CheckSettings",
    "EnvironmentSettings",
    "GateSettings",
    "LimitSettings",
    "SandboxLevel",
    "SandboxSettings",
    "Settings",
    "TestSettings",
    "find_proofstone_home",
    "find_settings_file",
    "load_settings",
    "load_settings_files",
    "load_settings_text",
]
