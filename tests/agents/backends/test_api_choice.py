"""Which model is meant, and what a person gets to hear when it cannot be."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from proofstone.agents.backends.api import api_backend
from proofstone.agents.backends.api.model_choice import choose_model
from proofstone.agents.backends.api.providers import connect
from proofstone.config.providers import (
    BUILT_IN_PROVIDERS,
    ModelSettings,
    Provider,
    ProviderProtocol,
    find_model_settings,
    find_vendor,
)
from proofstone.errors import InputError
from tests.agents.backends.api_world import conversation, site_in
from tests.rows import each_row

KEYS = {provider.key_variable: "k-1234567" for provider in BUILT_IN_PROVIDERS.values() if provider.key_variable}


@each_row("name", sorted(BUILT_IN_PROVIDERS))
def test_every_built_in_provider_can_be_chosen(name: str) -> None:
    backend = api_backend(f"api:{name}:some-model", environ=KEYS)
    assert backend.identity.spec == f"api:{name}:some-model"
    assert backend.identity.model == "some-model"
    backend.close()


@each_row("name", sorted(name for name, at in BUILT_IN_PROVIDERS.items() if at.wire is not ProviderProtocol.OTHER))
def test_every_built_in_provider_that_we_speak_to_ourselves_makes_a_model(name: str) -> None:
    choice = choose_model(f"api:{name}:some-model", {}, {}, KEYS)
    connection = connect(choice)
    assert connection.model.model_name == "some-model"
    assert str(connection.model.base_url).rstrip("/") == str(choice.provider.url).rstrip("/")
    asyncio.run(connection.aclose())


@each_row("spec", ["api:", "api:openai", "api:openai:", "api::m", "openai:gpt-5", "api:openai: "])
def test_a_spec_without_a_provider_or_a_model_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match="names no model") as refused:
        api_backend(spec, environ=KEYS)
    assert "api:<provider>:<model>" in str(refused.value.hint)


def test_the_name_of_a_model_may_have_colons() -> None:
    assert choose_model("api:ollama:qwen3:8b", {}, {}, {}).model == "qwen3:8b"


@each_row(
    ("model", "named"),
    [
        ("a#b", "'#'"),
        ("a?key=1", "'?'"),
        ("a%2f..%2fb", "'%'"),
        ("a\\b", r"'\\'"),
        ("a b", "' '"),
        (" gpt-5", "' '"),
        ("gpt-5\n", r"'\n'"),
        ("a\x00b", r"'\x00'"),
        ("a\x1b[31m", r"'\x1b'"),
        ("a\u00a0b", r"'\xa0'"),
        ("a\u202eb", r"'\u202e'"),
    ],
)
def test_a_name_that_would_be_read_as_something_else_is_refused(model: str, named: str) -> None:
    with pytest.raises(InputError) as refused:
        choose_model(f"api:google:{model}", {}, {}, KEYS)
    assert str(refused.value).endswith(f"the name of a model cannot have {named} in it")
    assert str(refused.value).isprintable()


@each_row("model", ["qwen3:8b", "anthropic/claude-4.5", "@cf/meta/llama", "ft:gpt-5:a::b", "模型_1+x"])
def test_names_as_providers_have_them_are_taken(model: str) -> None:
    assert choose_model(f"api:openrouter:{model}", {}, {}, KEYS).model == model


@pytest.mark.parametrize(
    ("spec", "variable"),
    [("api:openai:m", "OPENAI"), ("api:openai-chat:m", "OPENAI"), ("api:anthropic:m", "ANTHROPIC")],
)
def test_headers_of_the_environment_are_for_the_vendor_they_name(
    spec: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{variable}_CUSTOM_HEADERS", "X-Team: ours")
    connection = connect(choose_model(spec, {}, {}, KEYS))
    assert connection.model.client.default_headers["X-Team"] == "ours"  # type: ignore[attr-defined]
    asyncio.run(connection.aclose())


def test_an_unknown_provider_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(InputError, match="there is no provider `opnai`") as refused:
        api_backend(
            "api:opnai:gpt-5",
            {"mine": Provider(wire=ProviderProtocol.OPENAI_CHAT, url="http://127.0.0.1/v1")},
            environ={},
        )
    for name in ("anthropic", "mine", "openai", "[providers.opnai]"):
        assert name in str(refused.value.hint)


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": "  "}])
def test_a_missing_key_is_named_by_its_variable(environ: dict[str, str]) -> None:
    with pytest.raises(InputError, match="OPENAI_API_KEY") as refused:
        api_backend("api:openai:gpt-5", environ=environ)
    assert "export OPENAI_API_KEY" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("name", "module", "install"),
    [
        ("openai", "openai", "pip install proofstone"),
        ("anthropic", "anthropic", "pip install 'proofstone[anthropic]'"),
        ("google", "google.genai", "pip install 'proofstone[google]'"),
        ("openai", "pydantic_ai", "pip install proofstone"),
    ],
)
def test_a_missing_package_is_named_with_how_to_get_it(
    name: str, module: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"needs the package `{module}`") as refused:
        api_backend(f"api:{name}:m", environ=KEYS)
    assert refused.value.hint == install


@pytest.mark.parametrize(
    ("spec", "providers", "says"),
    [
        ("api:cohere:command", {}, "cannot be used|not installed"),
        ("api:nobody:m", {"nobody": Provider(wire=ProviderProtocol.OTHER)}, "cannot be used"),
    ],
)
def test_what_another_provider_lacks_is_said_at_the_first_turn(
    spec: str, providers: dict[str, Provider], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_API_KEY", raising=False)
    backend = api_backend(spec, providers, environ={})
    with pytest.raises(InputError, match=says) as refused:
        backend.turn(conversation(), site_in(tmp_path), 5)
    assert "Pydantic AI" not in str(refused.value)
    backend.close()


def test_the_key_is_in_no_representation() -> None:
    assert "k-1234567" not in repr(choose_model("api:openai:gpt-5", {}, {}, KEYS))


@each_row(
    ("spec", "vendor"),
    [
        ("api:openai:gpt-5", "openai"),
        ("api:openai-chat:gpt-5", "openai"),
        ("api:anthropic:claude", "anthropic"),
        ("api:openrouter:anthropic/claude", "anthropic"),
        ("api:openrouter:x-ai/grok", "xai"),
        ("api:xai:grok", "xai"),
        ("api:openrouter:mistralai/large", "mistral"),
        ("api:mistral:large", "mistral"),
        ("api:groq:openai/gpt-oss", "openai"),
        ("api:groq:llama", "groq"),
        ("api:google-cloud:gemini", "google"),
        ("api:ollama:qwen", "ollama"),
    ],
)
def test_a_vendor_is_the_same_wherever_its_models_are_served(spec: str, vendor: str) -> None:
    assert choose_model(spec, {}, {}, KEYS).vendor == vendor


def test_a_vendor_that_is_set_goes_before_all() -> None:
    settings = ModelSettings(vendor="meta-llama")
    assert find_vendor("groq", BUILT_IN_PROVIDERS["groq"], "openai/llama", settings) == "meta-llama"


def test_settings_are_those_of_the_name_then_of_the_first_glob() -> None:
    given = {
        "openai:*": ModelSettings(tier=1),
        "openai:gpt-5": ModelSettings(tier=3),
        "*:gpt-*": ModelSettings(tier=2),
        "ollama:big": ModelSettings(tier=2, input_usd=1, output_usd=1),
    }
    assert find_model_settings(given, "openai:gpt-5").tier == 3
    assert find_model_settings(given, "openai:gpt-4").tier == 1
    assert find_model_settings(given, "azure:gpt-4").tier == 2
    assert find_model_settings(given, "ollama:big").input_usd == 1
    assert find_model_settings(given, "ollama:small").input_usd == 0, "one's own machine costs nothing"
    assert find_model_settings(given, "xai:grok") == ModelSettings()


@each_row(
    ("values", "says"),
    [
        ({"wire": "openai-chat"}, "needs a `url`"),
        ({"wire": "other", "url": "http://127.0.0.1"}, "uses its own address"),
        ({"wire": "openai-chat", "url": "127.0.0.1:80"}, "url"),
        ({"wire": "openai-chat", "url": "http://me:secret@127.0.0.1"}, "url"),
        ({"wire": "openai-chat", "url": "http://127.0.0.1", "key_variable": "sk-123"}, "key_variable"),
        ({"wire": "openai-chat", "url": "http://127.0.0.1", "key": "sk-123"}, "key"),
        ({"wire": "smoke"}, "wire"),
    ],
)
def test_a_provider_that_cannot_be_is_refused(values: dict[str, str], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Provider.model_validate(values)


@each_row(
    "values",
    [
        {"input_usd": 1.0},
        {"output_usd": 1.0},
        {"cache_read_usd": 1.0},
        {"input_usd": -1.0, "output_usd": 1.0},
        {"input_usd": float("nan"), "output_usd": 1.0},
        {"tier": 4},
        {"tier": 0},
        {"max_output_tokens": 0},
        {"temperature": 3.0},
    ],
)
def test_settings_of_a_model_that_cannot_be_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ModelSettings.model_validate(values)
