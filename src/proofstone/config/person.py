"""Coding agents that the person has installed: where they are and what they are given. The person's own file alone says
so: whoever could say it could have a program of theirs run with the person's login.

A person's own settings: who serves which role, what may be spent, and where their keys may be sent.

They stand in a file of the person's, outside every repository, and go before what a repository says. Where providers
are reached is said here alone: a repository that could say it could have the person's key sent to a server of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofstone.config.backends import MODEL, BackendSettings, BudgetSettings, Choice, Component, Origin, Place, choose
from proofstone.config.providers import BUILT_IN, ModelSettings, Provider, model_settings
from proofstone.config.reading import load_bytes
from proofstone.config.services import TelemetrySettings, WebSettings
from proofstone.config.settings import AbsolutePath, Settings, VariableName, VariableValue
from proofstone.errors import ConfigError

_LOGIN = re.compile(r"(ANTHROPIC|CLAUDE|CODEX|OPENAI|GEMINI|GOOGLE|COPILOT|DASHSCOPE|QWEN)_.*(KEY|TOKEN)")


def is_login(variable: str) -> bool:
    """Whether a variable is one in which a coding agent's login stands."""
    return _LOGIN.fullmatch(variable) is not None


_WORD = Annotated[str, Field(strict=True, pattern=r"^[^\x00]*$", title="a text")]
_MODEL = Annotated[
    str,
    Field(strict=True, pattern=rf"^({MODEL})?$", title="the name of a model, which begins with a letter or a digit"),
]
_HOST = Annotated[
    str,
    Field(
        strict=True,
        pattern=r"^(\*\.)?([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$",
        title="a host: `api.example.com`, `*.example.com` or `10.0.0.2:8080`",
    ),
]


def _below(path: str) -> str:
    if ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} leads out of HOME")
    return path


_BELOW_HOME = Annotated[
    str,
    Field(strict=True, pattern=r"^[^/\x00][^\x00]*$", title="a path below HOME, such as `.config/agent`"),
    AfterValidator(_below),
]


class ProgramSettings(Component):
    """One of them, by the name of its preset, or by the name of the program where there is none."""

    path: _WORD = Field(default="", description="The program; without it, it is looked for on PATH.")
    model: _MODEL = Field(default="", description="The model that it is told to use; without it, its own choice.")
    arguments: tuple[_WORD, ...] = Field(default=(), description="Further arguments, behind those of the preset.")
    set: Mapping[VariableName, VariableValue] = Field(
        default={}, description="Variables that it gets; the host of a URL among them may be reached."
    )
    pass_through: tuple[VariableName, ...] = Field(
        default=(), alias="pass", description="Further variables of your environment that it gets."
    )
    hosts: tuple[_HOST, ...] = Field(
        default=(), description="Further hosts that it may reach: `api.example.com`, `*.example.com`, `10.0.0.2:8080`."
    )
    share: tuple[_BELOW_HOME, ...] = Field(
        default=(), description="Further files and folders below HOME with its login, which it reads and writes."
    )


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
            merged[key] = min((item for item in (own, other) if item), default=type(own)(0))
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
