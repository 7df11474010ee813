"""Who serves models, how they are spoken to, and what is known about single models.

Plain data. A provider is a wire protocol at an address with the name of a variable that holds the key; the key itself
is never part of the configuration. What a person sets for a name takes the place of what is built in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails

from proofstone.config.backends import Component
from proofstone.config.settings import VariableName

Url = Annotated[str, Field(strict=True, pattern=r"^https?://[^\s@]+$", title="an http or https URL")]
Vendor = Annotated[str, Field(strict=True, pattern=r"^[a-z0-9][a-z0-9_.-]*$", title="the name of a vendor")]
Usd = Annotated[float, Field(strict=True, ge=0, le=100_000, allow_inf_nan=False)]


class Wire(StrEnum):
    """The protocol that a provider speaks."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    OTHER = "other"
    """One that pydantic-ai knows under the provider's name; its own package and variables apply."""


_KEYS: Final = frozenset({"key", "api_key", "apikey", "secret", "token"})
_WHERE_KEYS_BELONG: Final = (
    "a key belongs into an environment variable, and `key_variable` names that variable: "
    '`key_variable = "OFFICE_KEY"` and `export OFFICE_KEY=…`'
)


class Provider(Component):
    """A service that answers for models."""

    wire: Wire = Field(description="The protocol that it speaks.")
    url: Url | None = Field(default=None, description="Where it is reached. Needed for every wire but `other`.")
    key_variable: VariableName | None = Field(
        default=None, description="The environment variable that holds the key. None: no key is sent."
    )
    vendor: Vendor | None = Field(
        default=None,
        description="Whose models these are, to tell different vendors apart. None: the part of the model's name "
        "before a `/`, or the name of the provider.",
    )
    proxy: Url | None = Field(
        default=None,
        description="A proxy on the way to it. The proxy variables of the environment are not followed, because they "
        "would send the key where nobody said it should go.",
    )

    @model_validator(mode="before")
    @classmethod
    def _holds_no_key(cls, written: object) -> object:
        held = sorted(_KEYS & written.keys()) if isinstance(written, Mapping) else []
        if held:
            why = {"error": ValueError(f"no such setting; {_WHERE_KEYS_BELONG}")}
            at = [InitErrorDetails(type="value_error", loc=(name,), input=None, ctx=why) for name in held]
            raise ValidationError.from_exception_data(cls.__name__, at)
        return written

    @field_validator("key_variable", mode="before")
    @classmethod
    def _names_a_variable(cls, written: object) -> object:
        """What is no name may be the key itself, so it is not repeated."""
        if isinstance(written, str) and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", written):
            raise ValueError(f"this is not the name of a variable; {_WHERE_KEYS_BELONG}")
        return written

    @model_validator(mode="after")
    def _has_an_address(self) -> Provider:
        if self.wire is Wire.OTHER and (self.url or self.proxy):
            raise ValueError('`wire = "other"` finds its own way; drop `url` and `proxy`, or name the wire')
        if self.wire is not Wire.OTHER and not self.url:
            raise ValueError(f'`wire = "{self.wire}"` needs a `url`')
        return self


class ModelSettings(Component):
    """What is known or wanted of one model."""

    tier: int | None = Field(
        default=None, ge=1, le=3, strict=True, description="How capable it is: 1 to 3, 3 the most. None: not known."
    )
    vendor: Vendor | None = Field(default=None, description="Whose model it is, if the provider serves several.")
    input_usd: Usd | None = Field(default=None, description="Price of a million input tokens, in US dollars.")
    output_usd: Usd | None = Field(default=None, description="Price of a million output tokens.")
    cache_read_usd: Usd | None = Field(
        default=None, description="Price of a million input tokens from the cache. None: `input_usd`."
    )
    cache_write_usd: Usd | None = Field(
        default=None, description="Price of a million input tokens written to the cache. None: `input_usd`."
    )
    max_output_tokens: int | None = Field(
        default=None, ge=1, strict=True, description="The longest answer. None: what the provider allows."
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, strict=True, description="None: what the provider takes."
    )
    stream: bool = Field(default=True, strict=True, description="Have the answer sent while it is being written.")
    answer: Literal["tool", "schema"] = Field(
        default="tool",
        description="How the model is asked for its answer: as the arguments of a tool, or as text of a JSON schema, "
        "which some small models manage better.",
    )

    @model_validator(mode="after")
    def _both_prices_or_none(self) -> ModelSettings:
        if (self.input_usd is None) != (self.output_usd is None):
            raise ValueError("`input_usd` and `output_usd` are given together, or neither")
        if self.input_usd is None and (self.cache_read_usd is not None or self.cache_write_usd is not None):
            raise ValueError("prices of the cache need `input_usd` and `output_usd` beside them")
        return self


BUILT_IN: Final[Mapping[str, Provider]] = {
    "openai": Provider(
        wire=Wire.OPENAI_RESPONSES, url="https://api.openai.com/v1", key_variable="OPENAI_API_KEY", vendor="openai"
    ),
    "openai-chat": Provider(
        wire=Wire.OPENAI_CHAT, url="https://api.openai.com/v1", key_variable="OPENAI_API_KEY", vendor="openai"
    ),
    "anthropic": Provider(wire=Wire.ANTHROPIC, url="https://api.anthropic.com", key_variable="ANTHROPIC_API_KEY"),
    "google": Provider(
        wire=Wire.GOOGLE, url="https://generativelanguage.googleapis.com/", key_variable="GOOGLE_API_KEY"
    ),
    "deepseek": Provider(
        wire=Wire.OPENAI_CHAT, url="https://api.deepseek.com", key_variable="DEEPSEEK_API_KEY", vendor="deepseek"
    ),
    "groq": Provider(wire=Wire.OPENAI_CHAT, url="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    "mistral": Provider(
        wire=Wire.OPENAI_CHAT, url="https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY", vendor="mistral"
    ),
    "openrouter": Provider(
        wire=Wire.OPENAI_CHAT, url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"
    ),
    "together": Provider(wire=Wire.OPENAI_CHAT, url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"),
    "xai": Provider(wire=Wire.OPENAI_CHAT, url="https://api.x.ai/v1", key_variable="XAI_API_KEY", vendor="xai"),
    "ollama": Provider(wire=Wire.OPENAI_CHAT, url="http://127.0.0.1:11434/v1"),
    "lmstudio": Provider(wire=Wire.OPENAI_CHAT, url="http://127.0.0.1:1234/v1"),
    "azure": Provider(wire=Wire.OTHER),
    "bedrock": Provider(wire=Wire.OTHER),
    "cohere": Provider(wire=Wire.OTHER),
    "google-cloud": Provider(wire=Wire.OTHER, vendor="google"),
    "huggingface": Provider(wire=Wire.OTHER),
}

BUILT_IN_MODELS: Final[Mapping[str, ModelSettings]] = {
    # The person's own machine serves them.
    "ollama:*": ModelSettings(input_usd=0, output_usd=0),
    "lmstudio:*": ModelSettings(input_usd=0, output_usd=0),
}

_HOMES: Final[tuple[tuple[str, str, str], ...]] = (
    ("gpt|chatgpt|codex|o[1-9]", "openai", "gpt-5"),
    ("claude", "anthropic", "claude-sonnet-4-5"),
    ("gemini|gemma", "google", "gemini-2.5-pro"),
    ("deepseek", "deepseek", "deepseek-chat"),
    ("grok", "xai", "grok-4"),
    ("mistral|magistral|codestral|devstral|ministral", "mistral", "mistral-large-latest"),
)
"""How names of models begin, who serves them at home, and a model of theirs."""
_ALSO_CALLED: Final[Mapping[str, str]] = {"GOOGLE_API_KEY": "GEMINI_API_KEY"}
"""Variables that other programs look for the same key in."""

# As aggregators spell them → as the vendors' own providers are called here.
_SPELLINGS: Final[Mapping[str, str]] = {"mistralai": "mistral", "x-ai": "xai", "meta": "meta-llama"}


def model_settings(given: Mapping[str, ModelSettings], name: str) -> ModelSettings:
    """Of `provider:model`: those under its very name, or of the first glob that matches, or the built-in ones."""
    if exact := given.get(name):
        return exact
    for pattern, settings in (*given.items(), *BUILT_IN_MODELS.items()):
        if fnmatchcase(name, pattern):
            return settings
    return ModelSettings()


def vendor_of(name: str, provider: Provider, model: str, settings: ModelSettings) -> str:
    """Whose model it is: `anthropic` for `anthropic/claude-…` at any aggregator."""
    prefix, slash, _ = model.partition("/")
    vendor = settings.vendor or provider.vendor or (prefix.lower() if slash and prefix else name)
    return _SPELLINGS.get(vendor, vendor)


def meant(spec: str, providers: Mapping[str, Provider]) -> str | None:
    """What was probably meant by a spec that lacks its kind, its provider or its model: `api:openai:gpt-5`."""
    name, colon, model = spec.removeprefix("api:").partition(":")
    if spec.startswith("api:") and name and model:
        return None
    if name in providers:
        usual = next((usual for _, home, usual in _HOMES if home == name), "<model>")
        return f"api:{name}:{model or usual}"
    home = next((home for begins, home, _ in _HOMES if re.match(rf"({begins})(?![a-z])", name.lower())), None)
    return f"api:{home}:{name}{colon}{model}" if home else None


def same_key(variable: str, environ: Mapping[str, str]) -> str | None:
    """Another variable that is set and by its name holds the key that is looked for in `variable`."""
    other = _ALSO_CALLED.get(variable)
    return other if other and environ.get(other, "").strip() else None
