"""Choose the model that `api:<provider>:<model>` names, with its settings.

All user errors are found here, before the SDK of a provider is imported: a wrong spec, an unknown provider, a missing
key or package.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from proofstone.agents.models import EditMode
from proofstone.agents.rules.tiers import find_model_tier
from proofstone.config.probes import ProbeRecord, build_probe_key
from proofstone.config.profiles import Profile
from proofstone.config.providers import (
    BUILT_IN_PROVIDERS,
    STANDARD_PROFILE,
    AnswerMode,
    ModelSettings,
    Provider,
    ProviderProtocol,
    choose_answer_mode,
    find_model_settings,
    find_vendor,
)
from proofstone.errors import InputError

_MODULES: Final[Mapping[ProviderProtocol, str]] = {
    ProviderProtocol.OPENAI_CHAT: "openai",
    ProviderProtocol.OPENAI_RESPONSES: "openai",
    ProviderProtocol.ANTHROPIC: "anthropic",
    ProviderProtocol.GOOGLE: "google.genai",
}
_FORBIDDEN: Final = frozenset("#?%\\")
"""Some providers put the name of the model into the URL, where these characters have another meaning."""
_INSTALL: Final[Mapping[str, str]] = {
    "pydantic_ai": "pip install proofstone",
    "openai": "pip install proofstone",
    "anthropic": "pip install 'proofstone[anthropic]'",
    "google.genai": "pip install 'proofstone[google]'",
}


@dataclass(frozen=True)
class ModelChoice:
    """A model that can be asked, as far as this is known without a request."""

    spec: str
    provider_name: str
    provider: Provider
    model: str
    settings: ModelSettings
    key: str | None = field(repr=False)
    """None: no key is needed, or the provider's own package finds it."""
    answer: AnswerMode = "tool"
    """How the model gives its answer."""
    calls_tools: bool | None = None
    """Whether it calls tools, as far as a probe found out."""
    profile: Profile = STANDARD_PROFILE

    @property
    def name(self) -> str:
        return f"{self.provider_name}:{self.model}"

    @property
    def edits(self) -> EditMode:
        """How the model changes files: by its settings, else by the probe and its tier."""
        if self.settings.edits != "auto":
            return self.settings.edits
        if self.profile.edits is not None:
            return self.profile.edits
        is_small = (self.settings.tier or find_model_tier(self.model)) == 1
        return "blocks" if is_small or self.calls_tools is False else "tool"

    @property
    def vendor(self) -> str:
        return find_vendor(self.provider_name, self.provider, self.model, self.settings)

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI's own service or a plain proxy of it. Other services with its protocol accept less."""
        return (
            self.provider.wire in (ProviderProtocol.OPENAI_CHAT, ProviderProtocol.OPENAI_RESPONSES)
            and self.provider.vendor == "openai"
        )

    @property
    def is_anthropic(self) -> bool:
        """Whether this is Anthropic's own service."""
        is_own_host = urlsplit(self.provider.url or "").hostname == "api.anthropic.com"
        return self.provider.wire is ProviderProtocol.ANTHROPIC and is_own_host


def choose_model(
    spec: str,
    providers: Mapping[str, Provider],
    models: Mapping[str, ModelSettings],
    environ: Mapping[str, str],
    probes: Mapping[str, ProbeRecord] | None = None,
    profile: Profile = STANDARD_PROFILE,
) -> ModelChoice:
    """Return the model that a spec names, with its provider, settings and key. `probes` is what was found out."""
    scheme, _, rest = spec.partition(":")
    name, _, model = rest.partition(":")
    if scheme != "api" or not name or not model.strip():
        raise InputError(f"`{spec}` names no model", hint="write `api:<provider>:<model>`, such as `api:openai:gpt-5`")
    _require_valid_name(spec, model)
    known = {**BUILT_IN_PROVIDERS, **providers}
    provider = known.get(name)
    if provider is None:
        raise InputError(
            f"`{spec}`: there is no provider `{name}`",
            hint=f"use one of {', '.join(sorted(known))}, or set up your own under `[providers.{name}]`",
        )
    _require_packages(spec, provider)
    settings = find_model_settings(models, f"{name}:{model}")
    probed = (probes or {}).get(build_probe_key(provider, model))
    mode = choose_answer_mode(settings, f"{name}:{model}", probed.answer if probed else None, profile)
    calls_tools = probed.calls_tools if probed else None
    key = _read_key(spec, provider, environ)
    return ModelChoice(spec, name, provider, model, settings, key, mode, calls_tools, profile)


def _require_valid_name(spec: str, model: str) -> None:
    for character in model:
        if character in _FORBIDDEN or character.isspace() or not character.isprintable():
            raise InputError(
                f"{spec!a}: the name of a model cannot have {character!a} in it",
                hint="write the name as the provider lists it, without spaces and without any of # ? % \\",
            )


def _require_packages(spec: str, provider: Provider) -> None:
    required = ["pydantic_ai"]
    if module := _MODULES.get(provider.wire):
        required.append(module)
    for module in required:
        if not _is_installed(module):
            raise InputError(f"`{spec}` needs the package `{module}`, which is not installed", hint=_INSTALL[module])


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def _read_key(spec: str, provider: Provider, environ: Mapping[str, str]) -> str | None:
    if provider.key_variable is None:
        return None
    key = environ.get(provider.key_variable, "").strip()
    if not key:
        raise InputError(
            f"`{spec}` needs a key, and the environment variable `{provider.key_variable}` is not set",
            hint=f"set it: `export {provider.key_variable}=…`",
        )
    return key


# Our names of providers that differ from those in the table.
