"""A user's own settings: which backend serves which role, what agents may spend, and where keys may be sent.

They are in a file of the user's, outside every repository, and take precedence over a repository's settings. Only this
file says where providers are reached and which coding agents are installed: a repository that could say so could have
the user's key sent to a server of its own, or its own program run with the user's login.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofstone.config.backends import (
    MODEL_PATTERN,
    BackendOrigin,
    BackendSelection,
    BackendSettings,
    BackendSource,
    BudgetSettings,
    SettingsModel,
    choose_backend,
)
from proofstone.config.loader import load_model
from proofstone.config.profiles import Profile, ProfileName, choose_profile
from proofstone.config.providers import BUILT_IN_PROVIDERS, ModelSettings, Provider, find_model_settings
from proofstone.config.services import TelemetrySettings, WebSettings
from proofstone.config.settings import AbsolutePath, Settings, VariableName, VariableValue
from proofstone.errors import ConfigError

_LOGIN_VARIABLE = re.compile(r"(ANTHROPIC|CLAUDE|CODEX|OPENAI|GEMINI|GOOGLE|COPILOT|DASHSCOPE|QWEN)_.*(KEY|TOKEN)")


def is_login_variable(variable: str) -> bool:
    """Return whether a variable holds the login of a coding agent."""
    return _LOGIN_VARIABLE.fullmatch(variable) is not None


_WORD = Annotated[str, Field(strict=True, pattern=r"^[^\x00]*$", title="a text")]
_MODEL = Annotated[
    str,
    Field(
        strict=True,
        pattern=rf"^({MODEL_PATTERN})?$",
        title="the name of a model, which begins with a letter or a digit",
    ),
]
_HOST = Annotated[
    str,
    Field(
        strict=True,
        pattern=r"^(\*\.)?([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$",
        title="a host: `api.example.com`, `*.example.com` or `10.0.0.2:8080`",
    ),
]


def _validate_below_home(path: str) -> str:
    if ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} leads out of HOME")
    return path


_BELOW_HOME = Annotated[
    str,
    Field(strict=True, pattern=r"^[^/\x00][^\x00]*$", title="a path below HOME, such as `.config/agent`"),
    AfterValidator(_validate_below_home),
]


class ProgramSettings(SettingsModel):
    """A coding agent, by the name of its preset, or by the name of the program if there is no preset."""

    path: _WORD = Field(default="", description="The path of the program. Empty: it is searched for on PATH.")
    model: _MODEL = Field(default="", description="The model that it uses. Empty: its own default.")
    arguments: tuple[_WORD, ...] = Field(default=(), description="Additional arguments, after those of the preset.")
    set: Mapping[VariableName, VariableValue] = Field(
        default={}, description="Variables that are set for it. If one holds a URL, its host may be reached."
    )
    pass_through: tuple[VariableName, ...] = Field(
        default=(), alias="pass", description="Additional variables of your environment that are passed to it."
    )
    hosts: tuple[_HOST, ...] = Field(
        default=(), description="Additional hosts it may reach: `api.example.com`, `*.example.com`, `10.0.0.2:8080`."
    )
    share: tuple[_BELOW_HOME, ...] = Field(
        default=(), description="Additional files and folders below HOME with its login, which it reads and writes."
    )


class TrustSettings(SettingsModel):
    """What repositories may have without asking you. For a single repository, `proofstone trust` grants exactly what
    its settings request.
    """

    pass_through: tuple[VariableName, ...] = Field(
        default=(),
        alias="pass",
        description="Variables of your environment that any repository may pass to its checks and executors with "
        "`pass`.",
    )
    weaker_sandbox: bool = Field(
        default=False,
        strict=True,
        description="Allow the `[sandbox]` section of any repository to weaken the sandbox, of checks and of coding "
        "agents, which have your login.",
    )
    folders: tuple[AbsolutePath, ...] = Field(
        default=(),
        description="Folders whose repositories get whatever their settings request: for CI, and for repositories that "
        "you wrote yourself.",
    )
    untrusted: Literal["refuse", "ignore"] = Field(
        default="refuse",
        description="What happens if settings request something that you have not granted: `refuse` to run anything, "
        "or `ignore` it, use the protective value, and say so in the report.",
    )


class ProfileSettings(SettingsModel):
    """What suits your models. It decides what neither a model's own settings nor a probe decide."""

    models: Literal["small", "standard", "frontier"] = Field(
        default="standard",
        description="How answers are given and files changed, which tools are offered, and the lane of a request "
        "without files; `--profile` overrides it.",
    )


class UserSettings(SettingsModel):
    """All settings of one user."""

    profile: ProfileSettings = ProfileSettings()
    backends: BackendSettings = BackendSettings()
    budget: BudgetSettings = BudgetSettings()
    trust: TrustSettings = TrustSettings()
    web: WebSettings = WebSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    programs: Mapping[str, ProgramSettings] = Field(
        default={}, description="Coding agents by the name of their preset: `[programs.claude]`."
    )
    providers: Mapping[str, Provider] = Field(default={}, description="Providers in addition to the built-in ones.")
    models: Mapping[str, ModelSettings] = Field(
        default={}, description='Models by `provider:model` or a glob: `[models."openrouter:*"]`.'
    )


@dataclass(frozen=True)
class UserConfig:
    """The user's settings, and their file."""

    settings: UserSettings
    file: Path
    """The file with the settings, which need not exist."""

    @property
    def providers(self) -> Mapping[str, Provider]:
        """All providers: the user's own entries replace built-in ones."""
        return {**BUILT_IN_PROVIDERS, **self.settings.providers}

    @property
    def profile(self) -> Profile:
        """The profile of this process."""
        return choose_profile(ProfileName(self.settings.profile.models))

    def find_model_settings(self, name: str) -> ModelSettings:
        """Return the settings of `provider:model`."""
        return find_model_settings(self.settings.models, name)


def find_user_file() -> Path:
    """Return the path of the user's settings.

    It is `$PROOFSTONE_CONFIG`, else `$XDG_CONFIG_HOME/proofstone/proofstone.toml`, else
    `~/.config/proofstone/proofstone.toml`.
    """
    if chosen := os.environ.get("PROOFSTONE_CONFIG"):
        return Path(chosen).absolute()
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if folder.is_absolute():  # the XDG specification says to ignore a relative path
        return folder / "proofstone" / "proofstone.toml"
    try:
        return Path.home() / ".config" / "proofstone" / "proofstone.toml"
    except RuntimeError as error:
        raise ConfigError(
            "there is no home directory with your settings",
            hint="set XDG_CONFIG_HOME to an absolute path; the folder may be empty",
        ) from error


def load_user_config() -> UserConfig:
    """Return the user's settings, or the defaults if they have no file."""
    file = find_user_file()
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        if os.environ.get("PROOFSTONE_CONFIG"):
            raise ConfigError(
                f"{file}: there is no such file, but PROOFSTONE_CONFIG names it",
                hint="unset PROOFSTONE_CONFIG, or create the file",
            ) from error
        return UserConfig(UserSettings(), file)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    return UserConfig(load_model(content, str(file), UserSettings), file)


def choose_agent_backend(
    agent: str, person: UserSettings, repository: Settings, command_line: Mapping[str, tuple[str, ...]]
) -> BackendSelection:
    """Return the backend of `agent`, chosen from the command line, the user's settings and the repository's."""
    return choose_backend(
        agent,
        (
            BackendSource(BackendOrigin.COMMAND_LINE, command_line),
            BackendSource(BackendOrigin.PERSON, person.backends.specs_by_key),
            BackendSource(BackendOrigin.REPOSITORY, repository.backend_specs),
        ),
    )


def merge_budgets(person: UserSettings, repository: Settings) -> BudgetSettings:
    """Combine the budgets, limit by limit: the user's, else the lower one of the default and the repository's.

    A repository cannot spend more of a user's money than they would have spent without it.
    """
    repository_limits = repository.budget.model_dump()
    lowered = _take_lower(BudgetSettings().model_dump(), repository_limits)
    return BudgetSettings.model_validate(_override(person.budget.model_dump(exclude_unset=True), lowered))


def _take_lower(defaults: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    """Return the lower number of each pair; 0 means no limit, so any number is lower."""
    merged: dict[str, object] = {**others, **defaults}
    for key, other in others.items():
        own = defaults.get(key)
        if isinstance(other, Mapping):
            merged[key] = _take_lower(own if isinstance(own, Mapping) else {}, other)
        elif isinstance(other, int | float) and isinstance(own, int | float):
            merged[key] = min((limit for limit in (own, other) if limit), default=type(own)(0))
        else:
            merged[key] = other if own is None else own
    return merged


def _override(upper: Mapping[str, object], lower: Mapping[str, object]) -> dict[str, object]:
    """Merge two tables; where both have a value, `upper` wins."""
    merged = {**lower, **upper}
    for key in upper.keys() & lower.keys():
        above, below = upper[key], lower[key]
        if isinstance(above, Mapping) and isinstance(below, Mapping):
            merged[key] = _override(above, below)
    return merged
