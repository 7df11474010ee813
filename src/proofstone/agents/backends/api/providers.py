"""Connect to a provider: pydantic-ai's model, on an HTTP client that is limited in where it goes and what it reads.

The SDKs read addresses, proxies, further keys, headers and retries from the environment. All of this is set explicitly
here: the address always, only the configured proxy, only the chosen key, the headers of the environment only for the
vendor that they are named after, and no retries, because the engine retries.

A response that is larger than the limits below is not a real answer and is not read into memory. Bytes are counted
after decompression, because that is what has to be held. Providers with their own client (`wire = "other"`) do not use
this transport; their answer is measured before it becomes a turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, create_async_httpx2_client, infer_model
from pydantic_ai.profiles import ModelProfile

from proofstone.agents.backends.api.model_choice import ModelChoice
from proofstone.config.providers import ProviderProtocol
from proofstone.errors import InputError

MAX_ANSWER_SIZE: Final = 16 * 2**20
"""The largest answer, in bytes on the wire and in characters at the end."""
MAX_STREAM_SIZE: Final = 4 * MAX_ANSWER_SIZE
"""The largest streamed answer: each token has an envelope of some hundred bytes, and models write more than a hundred
thousand tokens."""
MAX_CALLS: Final = 64
"""Calls in one turn. The engine carries out fewer and answers the others one by one."""
MAX_NAME_CHARS: Final = 200
"""Characters in the name of a tool, a call or a model."""
MAX_TOKENS: Final = 10**12
"""No model reads or writes this many; a larger count is an error."""


class AnswerTooLargeError(RuntimeError):
    """The provider sent a larger answer than is accepted."""

    def __init__(self, largest: int) -> None:
        super().__init__(f"its answer is larger than {largest // 2**20} MiB")


class LimitedTransport(httpx2.AsyncHTTPTransport):
    """Raise `TooLargeError` when a response grows too large, whoever reads it."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        response.request = request
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        headers = response.headers.copy()
        for name in ("content-encoding", "content-length"):  # the body is passed on decoded
            headers.pop(name, None)
        return httpx2.Response(
            response.status_code,
            headers=headers,
            stream=_LimitedStream(response, MAX_STREAM_SIZE if is_stream else MAX_ANSWER_SIZE),
            extensions=response.extensions,
        )


class _LimitedStream(httpx2.AsyncByteStream):
    """A response body that raises an error when it grows too large."""

    def __init__(self, response: httpx2.Response, largest: int) -> None:
        self._response = response
        self._largest = largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = line = 0
        async with aclosing(self._response.aiter_bytes()) as pieces:
            async for piece in pieces:
                size += len(piece)
                line = (0 if b"\n" in piece else line) + len(piece) - 1 - piece.rfind(b"\n")
                if size > self._largest:
                    raise AnswerTooLargeError(self._largest)
                if line > MAX_ANSWER_SIZE:  # the SDKs rescan an unfinished line with every new piece
                    raise AnswerTooLargeError(MAX_ANSWER_SIZE)
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


SILENT_SECONDS: Final = 600.0
"""How long a provider may send nothing, unless the settings of the model say so. The deadline of a turn is set by the
engine and is usually shorter."""
_CONNECT_SECONDS: Final = 10.0
_NO_KEY: Final = "none"
"""The key to send where none is needed: otherwise the SDKs would look for one in the environment."""


@dataclass(frozen=True)
class ModelConnection:
    """A model of pydantic-ai and the HTTP client that it uses."""

    model: Model[Any]
    http: httpx2.AsyncClient | None
    """None: the model has its own client."""

    async def aclose(self) -> None:
        if self.http:
            await self.http.aclose()
        else:
            async with self.model:  # leaving the context closes it
                pass


def connect(choice: ModelChoice) -> ModelConnection:
    if choice.provider.wire is ProviderProtocol.OTHER:
        return ModelConnection(_infer_model(choice), None)
    # With our own transport, httpx does not look up proxies in the environment.
    transport = LimitedTransport(proxy=choice.provider.proxy)
    settings = choice.settings
    silent = max(settings.first_seconds or SILENT_SECONDS, settings.pause_seconds or SILENT_SECONDS)
    # The session limits the two waits by themselves; the client only needs to be as patient as the longer one.
    http = create_async_httpx2_client(timeout=httpx2.Timeout(silent + 1, connect=_CONNECT_SECONDS), transport=transport)
    return ModelConnection(_BUILDERS[choice.provider.wire](choice, http), http)


def _build_openai_chat(choice: ModelChoice, http: httpx2.AsyncClient) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    # Do not take a stream without its end for a short answer.
    strict = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if choice.answer == "schema":  # the settings or a probe say so; the library knows few servers
        strict = OpenAIModelProfile(
            openai_chat_streaming_requires_finish_reason=True,
            supports_json_schema_output=True,
        )
    return OpenAIChatModel(choice.model, provider=_build_openai_provider(choice, http), profile=strict)


def _build_openai_responses(choice: ModelChoice, http: httpx2.AsyncClient) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIResponsesModel

    return OpenAIResponsesModel(choice.model, provider=_build_openai_provider(choice, http))


def _build_openai_provider(choice: ModelChoice, http: httpx2.AsyncClient) -> Any:  # noqa: ANN401  two classes without a base
    from openai import AsyncOpenAI
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = AsyncOpenAI(api_key=choice.key or _NO_KEY, base_url=choice.provider.url, http_client=http, max_retries=0)
    if choice.is_openai:
        return OpenAIProvider(openai_client=client)
    # These were read from the environment, and concern only OpenAI.
    client.organization = client.project = client.admin_api_key = None
    client._custom_headers = {}
    return OpenAICompatibleProvider(choice.provider_name, openai_client=client, profile=_find_profile(choice))


def _find_profile(choice: ModelChoice) -> ModelProfile | None:
    """Return the special features of a provider's models, such as sending their reasoning back to them."""
    if choice.provider_name == "deepseek":
        from pydantic_ai.providers.deepseek import DeepSeekProvider

        return DeepSeekProvider.model_profile(choice.model)
    if choice.provider_name == "ollama":
        from pydantic_ai.providers.ollama import OllamaProvider

        return OllamaProvider.model_profile(choice.model)
    return None


def _build_anthropic(choice: ModelChoice, http: httpx2.AsyncClient) -> Model[Any]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=choice.key or _NO_KEY, base_url=choice.provider.url, http_client=http, max_retries=0
    )
    if not choice.is_anthropic:
        client._custom_headers = {}  # read from the environment
    return AnthropicModel(choice.model, provider=AnthropicProvider(anthropic_client=client))


def _build_google(choice: ModelChoice, http: httpx2.AsyncClient) -> Model[Any]:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(
        api_key=choice.key or _NO_KEY,
        base_url=choice.provider.url,
        http_client=http,
        retry_options=HttpRetryOptions(attempts=1),
    )
    return GoogleModel(choice.model, provider=provider)


_BUILDERS: Final = {
    ProviderProtocol.OPENAI_CHAT: _build_openai_chat,
    ProviderProtocol.OPENAI_RESPONSES: _build_openai_responses,
    ProviderProtocol.ANTHROPIC: _build_anthropic,
    ProviderProtocol.GOOGLE: _build_google,
}


def _infer_model(choice: ModelChoice) -> Model[Any]:
    try:
        return infer_model(choice.name)
    except ImportError as error:
        raise InputError(
            f"`{choice.spec}` needs a package that is not installed: {str(error).partition(', you can use')[0]}",
            hint="pip install 'proofstone[all]'",
        ) from error
    except UserError as error:
        message = str(error).partition(" To try Pydantic AI")[0]
        raise InputError(f"`{choice.spec}` cannot be used: {message}") from error
