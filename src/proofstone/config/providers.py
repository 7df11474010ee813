"""Model providers, their protocols, and what is known about single models.

This is plain data. A provider is a wire protocol at a URL with the name of a variable that holds the key; the key
itself is never part of the configuration. A user's entry replaces the built-in one with the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails

from proofstone.config.backends import SettingsModel
from proofstone.config.profiles import PROFILES, Profile, ProfileName
from proofstone.config.settings import VariableName

Url = Annotated[str, Field(strict=True, pattern=r"^https?://[^\s@]+$", title="an http or https URL")]
Vendor = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9][a-z0-9_.-]*$", title="the name of a vendor")]
Seconds = Annotated[float, Field(strict=True, gt=0, le=86_400, allow_inf_nan=False)]
AnswerMode = Literal["tool", "schema", "text"]
Usd = Annotated[float, Field(strict=True, ge=0, le=100_000, allow_inf_nan=False)]


class ProviderProtocol(StrEnum):
    """The protocol of a provider."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    OTHER = "other"
    """A provider that pydantic-ai knows by name; its own package and variables apply."""


_KEY_NAMES: Final = frozenset({"key", "api_key", "apikey", "secret", "token"})
_KEY_ADVICE: Final = (
    "put the key into an environment variable, and name that variable in `key_variable`: "
    '`key_variable = "OFFICE_KEY"` and `export OFFICE_KEY=…`'
)


class Provider(SettingsModel):
    """A service that serves models."""

    wire: ProviderProtocol = Field(description="The protocol of the provider.")
    url: Url | None = Field(
        default=None, description="The URL of the provider. Required for every wire except `other`."
    )
    key_variable: VariableName | None = Field(
        default=None, description="The environment variable that holds the key. None: no key is sent."
    )
    vendor: Vendor | None = Field(
        default=None,
        description="The vendor of the models, used to tell different vendors apart. None: the part of the model's "
        "name before a `/`, or the name of the provider.",
    )
    proxy: Url | None = Field(
        default=None,
        description="A proxy to reach the provider. The proxy variables of the environment are ignored, because they "
        "could send the key to a place that you did not choose.",
    )

    @model_validator(mode="before")
    @classmethod
    def _reject_keys(cls, values: object) -> object:
        keys = sorted(_KEY_NAMES & values.keys()) if isinstance(values, Mapping) else []
        if keys:
            context = {"error": ValueError(f"no such setting; {_KEY_ADVICE}")}
            details = [InitErrorDetails(type="value_error", loc=(name,), input=None, ctx=context) for name in keys]
            raise ValidationError.from_exception_data(cls.__name__, details)
        return values

    @field_validator("key_variable", mode="before")
    @classmethod
    def _validate_variable_name(cls, value: object) -> object:
        """Do not repeat an invalid name in the error: it may be the key itself."""
        if isinstance(value, str) and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError(f"this is not the name of a variable; {_KEY_ADVICE}")
        return value

    @model_validator(mode="after")
    def _validate_address(self) -> Provider:
        if self.wire is ProviderProtocol.OTHER and (self.url or self.proxy):
            raise ValueError('`wire = "other"` uses its own address; drop `url` and `proxy`, or choose another wire')
        if self.wire is not ProviderProtocol.OTHER and not self.url:
            raise ValueError(f'`wire = "{self.wire}"` needs a `url`')
        return self


class ModelSettings(SettingsModel):
    """Facts about one model, and how to call it."""

    tier: int | None = Field(
        default=None,
        ge=1,
        le=3,
        strict=True,
        description="Capability of the model, from 1 to 3 (the highest). None: unknown.",
    )
    vendor: Vendor | None = Field(
        default=None, description="The vendor of the model, if the provider serves several vendors."
    )
    input_usd: Usd | None = Field(default=None, description="Price of a million input tokens, in US dollars.")
    output_usd: Usd | None = Field(default=None, description="Price of a million output tokens.")
    cache_read_usd: Usd | None = Field(
        default=None, description="Price of a million input tokens from the cache. None: `input_usd`."
    )
    cache_write_usd: Usd | None = Field(
        default=None, description="Price of a million input tokens written to the cache. None: `input_usd`."
    )
    max_output_tokens: int | None = Field(
        default=None, ge=1, strict=True, description="The maximum length of an answer. None: the provider's limit."
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, strict=True, description="The sampling temperature. None: the provider's default."
    )
    stream: bool = Field(default=True, strict=True, description="Stream the answer while it is being written.")
    first_seconds: Seconds | None = Field(
        default=None,
        description="How long the model may take until its answer begins. A local server reads a long prompt for "
        "minutes. None: 600, and never longer than the dispatch.",
    )
    pause_seconds: Seconds | None = Field(
        default=None,
        description="How long the model may send nothing in the middle of its answer. None: 600.",
    )
    answer_seconds: Seconds | None = Field(
        default=None, description="How long a whole answer may take. None: as long as the dispatch has."
    )
    edits: Literal["auto", "tool", "blocks"] = Field(
        default="auto",
        description="How the model changes files: by a `tool`, or also by search/replace `blocks` and whole files in "
        "its text. `auto`: blocks for a model of tier 1, and for one that calls no tools by the probe.",
    )
    answer: Literal["auto", "tool", "schema", "text"] = Field(
        default="auto",
        description="How the model gives its answer: as the arguments of a `tool`; as text that its server holds to a "
        "JSON `schema`, where no other tool is offered; or as `text` that describes the schema. `auto`: what "
        "`proofstone backends --probe` found out, else what is known about the provider, else `tool`.",
    )

    @model_validator(mode="after")
    def _validate_prices(self) -> ModelSettings:
        if (self.input_usd is None) != (self.output_usd is None):
            raise ValueError("set both `input_usd` and `output_usd`, or neither")
        if self.input_usd is None and (self.cache_read_usd is not None or self.cache_write_usd is not None):
            raise ValueError("cache prices require `input_usd` and `output_usd`")
        return self


BUILT_IN_PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider(
        wire=ProviderProtocol.OPENAI_RESPONSES,
        url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        vendor="openai",
    ),
    "openai-chat": Provider(
        wire=ProviderProtocol.OPENAI_CHAT,
        url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        vendor="openai",
    ),
    "anthropic": Provider(
        wire=ProviderProtocol.ANTHROPIC, url="https://api.anthropic.com", key_variable="ANTHROPIC_API_KEY"
    ),
    "google": Provider(
        wire=ProviderProtocol.GOOGLE, url="https://generativelanguage.googleapis.com/", key_variable="GOOGLE_API_KEY"
    ),
    "deepseek": Provider(
        wire=ProviderProtocol.OPENAI_CHAT,
        url="https://api.deepseek.com",
        key_variable="DEEPSEEK_API_KEY",
        vendor="deepseek",
    ),
    "groq": Provider(
        wire=ProviderProtocol.OPENAI_CHAT, url="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"
    ),
    "mistral": Provider(
        wire=ProviderProtocol.OPENAI_CHAT,
        url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        vendor="mistral",
    ),
    "openrouter": Provider(
        wire=ProviderProtocol.OPENAI_CHAT, url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"
    ),
    "together": Provider(
        wire=ProviderProtocol.OPENAI_CHAT, url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"
    ),
    "xai": Provider(
        wire=ProviderProtocol.OPENAI_CHAT, url="https://api.x.ai/v1", key_variable="XAI_API_KEY", vendor="xai"
    ),
    "ollama": Provider(wire=ProviderProtocol.OPENAI_CHAT, url="http://127.0.0.1:11434/v1"),
    "lmstudio": Provider(wire=ProviderProtocol.OPENAI_CHAT, url="http://127.0.0.1:1234/v1"),
    "azure": Provider(wire=ProviderProtocol.OTHER),
    "bedrock": Provider(wire=ProviderProtocol.OTHER),
    "cohere": Provider(wire=ProviderProtocol.OTHER),
    "google-cloud": Provider(wire=ProviderProtocol.OTHER, vendor="google"),
    "huggingface": Provider(wire=ProviderProtocol.OTHER),
}

BUILT_IN_MODELS: Final[Mapping[str, ModelSettings]] = {
    # These run on the user's own machine.
    "ollama:*": ModelSettings(input_usd=0, output_usd=0),
    "lmstudio:*": ModelSettings(input_usd=0, output_usd=0),
}

STANDARD_PROFILE: Final = PROFILES[ProfileName.STANDARD]
ANSWER_MODES: Final[tuple[tuple[str, AnswerMode], ...]] = (
    ("ollama:*", "schema"),
    ("lmstudio:*", "schema"),
    ("*:*", "tool"),
)
"""How models answer, by `provider:model`, where nobody has said or probed it. The first match decides. Servers of small
models hold them to a schema; other models were trained to call tools."""


def choose_answer_mode(
    settings: ModelSettings, name: str, probed: AnswerMode | None, profile: Profile = STANDARD_PROFILE
) -> AnswerMode:
    """Return how `provider:model` gives its answer: by its settings, the probe, the profile, or the table."""
    if settings.answer != "auto":
        return settings.answer
    if probed is not None:
        return probed
    if profile.answer is not None:
        return profile.answer
    return next(mode for pattern, mode in ANSWER_MODES if fnmatchcase(name, pattern))


_VENDOR_MODELS: Final[tuple[tuple[str, str, str], ...]] = (
    ("gpt|chatgpt|codex|o[1-9]", "openai", "gpt-5"),
    ("claude", "anthropic", "claude-sonnet-4-5"),
    ("gemini|gemma", "google", "gemini-2.5-pro"),
    ("deepseek", "deepseek", "deepseek-chat"),
    ("grok", "xai", "grok-4"),
    ("mistral|magistral|codestral|devstral|ministral", "mistral", "mistral-large-latest"),
)
"""How names of models begin, the provider of their vendor, and one of its models."""
_ALTERNATIVE_VARIABLES: Final[Mapping[str, str]] = {"GOOGLE_API_KEY": "GEMINI_API_KEY"}
"""Variables in which other programs expect the same key."""

# The names that aggregators use → the names of the vendors' own providers here.
_VENDOR_NAMES: Final[Mapping[str, str]] = {"mistralai": "mistral", "x-ai": "xai", "meta": "meta-llama"}


def find_model_settings(configured: Mapping[str, ModelSettings], name: str) -> ModelSettings:
    """Return the settings of `provider:model`: by its exact name, by the first glob that matches, or
    the built-in ones.
    """
    if exact := configured.get(name):
        return exact
    for pattern, settings in (*configured.items(), *BUILT_IN_MODELS.items()):
        if fnmatchcase(name, pattern):
            return settings
    return ModelSettings()


def find_vendor(name: str, provider: Provider, model: str, settings: ModelSettings) -> str:
    """Return the vendor of a model: `anthropic` for `anthropic/claude-…` at any aggregator."""
    prefix, slash, _ = model.partition("/")
    vendor = settings.vendor or provider.vendor or (prefix.lower() if slash and prefix else name)
    return _VENDOR_NAMES.get(vendor, vendor)


def guess_spec(spec: str, providers: Mapping[str, Provider]) -> str | None:
    """Guess the spec that was meant, if one lacks its kind, its provider or its model: `api:openai:gpt-5`."""
    name, colon, model = spec.removeprefix("api:").partition(":")
    if spec.startswith("api:") and name and model:
        return None
    if name in providers:
        example = next((example for _, home, example in _VENDOR_MODELS if home == name), "<model>")
        return f"api:{name}:{model or example}"
    home = next((home for prefix, home, _ in _VENDOR_MODELS if re.match(rf"({prefix})(?![a-z])", name.lower())), None)
    return f"api:{home}:{name}{colon}{model}" if home else None


def find_alternative_variable(variable: str, environ: Mapping[str, str]) -> str | None:
    """Return another variable that is set and that, by its name, holds the same key as `variable`."""
    other = _ALTERNATIVE_VARIABLES.get(variable)
    return other if other and environ.get(other, "").strip() else None
