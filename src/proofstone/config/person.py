"""A person's own settings: who serves which role, what may be spent, and where their keys may be sent.

They stand in a file of the person's, outside every repository, and go before what a repository says. Where providers
are reached is said here alone: a repository that could say it could have the person's key sent to a server of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from proofstone.config.backends import BackendSettings, Choice, Origin, Place, choose
from proofstone.config.budget import BudgetSettings
from proofstone.config.component import Component
from proofstone.config.programs import ProgramSettings
from proofstone.config.providers import BUILT_IN, ModelSettings, Provider, model_settings
from proofstone.config.reading import load_bytes
from proofstone.config.settings import AbsolutePath, Settings, VariableName
from proofstone.config.telemetry import TelemetrySettings
from proofstone.config.web import WebSettings
from proofstone.errors import ConfigError


class TrustSettings(Component):
    """What repositories may have of yours without asking. For a single repository, `proofstone trust` grants exactly
    what
    its settings ask for."""

    pass_through: tuple[VariableName, ...] = Field(
        default=(),
        alias="pass",
        description="Variables of your environment that the `pass` of any repository may hand to its checks and "
        "executors.",
    )
    weaker_sandbox: bool = Field(
        default=False,
        strict=True,
        description="Let the `[sandbox]` section of any repository weaken the sandbox, of checks and of coding agents, "
        "which have your login.",
    )
    folders: tuple[AbsolutePath, ...] = Field(
        default=(),
        description="Folders whose repositories get whatever their settings ask for: for CI, and for what you wrote "
        "yourself.",
    )
    untrusted: Literal["refuse", "ignore"] = Field(
        default="refuse",
        description="What happens if settings ask for what you have not granted: `refuse` to run anything, or `ignore` "
        "it, run with the protective value, and say so in the report.",
    )


class PersonSettings(Component):
    """All settings of one person."""

    backends: BackendSettings = BackendSettings()
    budget: BudgetSettings = BudgetSettings()
    trust: TrustSettings = TrustSettings()
    web: WebSettings = WebSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    programs: Mapping[str, ProgramSettings] = Field(
        default={}, description="Coding agents by the name of their preset: `[programs.claude]`."
    )
    providers: Mapping[str, Provider] = Field(default={}, description="Services beside those that are built in.")
    models: Mapping[str, ModelSettings] = Field(
        default={}, description='Models by `provider:model` or a glob: `[models."openrouter:*"]`.'
    )


@dataclass(frozen=True)
class Person:
    settings: PersonSettings
    file: Path
    """Where they stand, or would."""

    @property
    def providers(self) -> Mapping[str, Provider]:
        """All that there are: the person's own in the place of built-in ones."""
        return {**BUILT_IN, **self.settings.providers}

    def model(self, name: str) -> ModelSettings:
        """What is known or wanted of `provider:model`."""
        return model_settings(self.settings.models, name)


def person_file() -> Path:
    """`$PROOFSTONE_CONFIG`, else `$XDG_CONFIG_HOME/proofstone/proofstone.toml`, else
    `~/.config/proofstone/proofstone.toml`."""
    if chosen := os.environ.get("PROOFSTONE_CONFIG"):
        return Path(chosen).absolute()
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if folder.is_absolute():  # the XDG rules say to ignore a relative one
        return folder / "proofstone" / "proofstone.toml"
    try:
        return Path.home() / ".config" / "proofstone" / "proofstone.toml"
    except RuntimeError as error:
        raise ConfigError(
            "there is no home directory to look for your settings in",
            hint="set XDG_CONFIG_HOME to an absolute path; nothing need be there",
        ) from error


def load_person() -> Person:
    """The settings of whoever runs this; the defaults if they have no file."""
    file = person_file()
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        if os.environ.get("PROOFSTONE_CONFIG"):
            raise ConfigError(
                f"{file}: there is no such file, though PROOFSTONE_CONFIG names it",
                hint="unset PROOFSTONE_CONFIG, or write it",
            ) from error
        return Person(PersonSettings(), file)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    return Person(load_bytes(content, str(file), PersonSettings), file)


def chosen(
    agent: str, person: PersonSettings, repository: Settings, command_line: Mapping[str, tuple[str, ...]]
) -> Choice:
    """Who serves `agent`, of all that was said about it."""
    return choose(
        agent,
        (
            Place(Origin.COMMAND_LINE, command_line),
            Place(Origin.PERSON, person.backends.lines),
            Place(Origin.REPOSITORY, repository.backend_lines),
        ),
    )


def budget(person: PersonSettings, repository: Settings) -> BudgetSettings:
    """Limit by limit: the person's, else the lower one of the default and the repository's. A repository cannot spend
    more of a person's money than they would have spent without it."""
    theirs = repository.budget.model_dump()
    lowered = _lower(BudgetSettings().model_dump(), theirs)
    return BudgetSettings.model_validate(_over(person.budget.model_dump(exclude_unset=True), lowered))


def _lower(defaults: Mapping[str, object], theirs: Mapping[str, object]) -> dict[str, object]:
    """Number by number the lower one; 0 is no limit, and none is lower than any."""
    merged: dict[str, object] = {**theirs, **defaults}
    for key, other in theirs.items():
        own = defaults.get(key)
        if isinstance(other, Mapping):
            merged[key] = _lower(own if isinstance(own, Mapping) else {}, other)
        elif isinstance(other, int | float) and isinstance(own, int | float):
            merged[key] = min((one for one in (own, other) if one), default=type(own)(0))
        else:
            merged[key] = other if own is None else own
    return merged


def _over(upper: Mapping[str, object], lower: Mapping[str, object]) -> dict[str, object]:
    """Two tables as one; where both speak, the upper is right."""
    merged = {**lower, **upper}
    for key in upper.keys() & lower.keys():
        above, below = upper[key], lower[key]
        if isinstance(above, Mapping) and isinstance(below, Mapping):
            merged[key] = _over(above, below)
    return merged
