"""One session with a model: a connection, and how a turn is sent over it."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import AsyncExitStack
from typing import cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from proofstone.agents.backends.api import faults, messages, prices
from proofstone.agents.backends.api.answer_watch import AnswerWatch, SilenceError
from proofstone.agents.backends.api.event_loop import OutputCallback
from proofstone.agents.backends.api.model_choice import ModelChoice
from proofstone.agents.backends.api.providers import MAX_ANSWER_SIZE, AnswerTooLargeError, connect
from proofstone.agents.models import Conversation, Fault, Turn
from proofstone.config.providers import ProviderProtocol

# pydantic-ai warns its own users of ignored settings and adapted schemas. These warnings are not for our users.
warnings.filterwarnings("ignore", module=r"pydantic_ai\..*")


def build_request_parameters(choice: ModelChoice, conversation: Conversation) -> ModelRequestParameters:
    """Return the instructions, the tools and the form of the answer, as this model is sent them."""
    return messages.build_parameters(
        conversation,
        choice.answer,
        can_drop_tools=choice.provider.wire is not ProviderProtocol.ANTHROPIC,
        hidden=None if choice.calls_tools is False else choice.profile.hidden_tools,
    )


class ApiSession:
    """A connection to one model, over which turns are requested."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._connection = connect(choice)

    async def turn(self, conversation: Conversation, hear: OutputCallback, seconds: float | None) -> Turn | Fault:
        """Return the next turn. `hear` gets pieces of its text, and `ProgressLine`s about the waiting."""
        limits = [limit for limit in (seconds, self._choice.settings.answer_seconds) if limit is not None]
        seconds = min(limits, default=None)
        history = messages.build_messages(conversation, self._choice.name)
        parameters = build_request_parameters(self._choice, conversation)
        settings = self._build_settings(conversation)
        try:
            async with asyncio.timeout(seconds) as deadline:
                response = messages.sanitize_response(await self._request(history, settings, parameters, hear))
                turn = messages.build_turn(response, self._choice.name, self._compute_cost(response))
        except SilenceError as error:
            return faults.build_silence_fault(self._choice, error.has_begun, error.seconds)
        except TimeoutError as error:
            return (
                faults.build_timeout_fault(self._choice, seconds)
                if deadline.expired()
                else faults.build_fault(error, self._choice)
            )
        except faults.PEER_ERRORS as error:
            return faults.build_fault(error, self._choice)
        fault = self._find_fault(response)
        return fault.model_copy(update={"usage": turn.usage}) if fault else turn

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _request(
        self,
        history: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        hear: OutputCallback,
    ) -> ModelResponse:
        model = self._connection.model
        watch = AnswerWatch(self._choice.settings.first_seconds, self._choice.settings.pause_seconds, hear)
        async with watch.ticking():
            if not self._choice.settings.stream:
                response = await watch.wait(model.request(history, settings, parameters))
                if response.text:
                    hear(messages.make_encodable(response.text))
                return response
            async with AsyncExitStack() as stack:
                stream = await watch.wait(
                    stack.enter_async_context(model.request_stream(history, settings, parameters))
                )
                events = aiter(stream)
                while (event := await watch.wait(anext(events, None))) is not None:
                    watch.count(_count_added(event))
                    if watch.characters > MAX_ANSWER_SIZE:
                        raise AnswerTooLargeError(MAX_ANSWER_SIZE)
                    if text := _get_text(event):
                        hear(messages.make_encodable(text))
                return stream.get()

    def _build_settings(self, conversation: Conversation) -> ModelSettings:
        choice = self._choice
        settings: dict[str, object] = {"cache": True}
        if choice.settings.max_output_tokens is not None:
            settings["max_tokens"] = choice.settings.max_output_tokens
        if choice.settings.temperature is not None:
            settings["temperature"] = choice.settings.temperature
        if choice.is_openai:
            settings["openai_prompt_cache_key"] = f"proofstone-{conversation.occasion.role}"
        if (
            choice.provider.wire is ProviderProtocol.OTHER
            and "max_retries" not in self._connection.model.unsupported_settings
        ):
            settings["max_retries"] = 0
        return cast(ModelSettings, settings)  # each kind of model has its own keys besides the common ones

    def _compute_cost(self, response: ModelResponse) -> float | None:
        choice = self._choice
        return prices.compute_cost(
            response.usage, choice.provider_name, response.model_name or choice.model, choice.settings
        )

    def _find_fault(self, response: ModelResponse) -> Fault | None:
        """Return why the response is not a turn, or None. The response must be paid for either way."""
        if response.finish_reason == "content_filter":
            return faults.build_filtered_fault(self._choice, response.provider_details)
        if response.state != "complete" or response.finish_reason == "error" or self._is_unfinished(response):
            return faults.build_incomplete_fault(self._choice)
        return None

    def _is_unfinished(self, response: ModelResponse) -> bool:
        """Return whether the end is missing: a cut stream looks like a short answer, and no parts like an empty one."""
        return response.finish_reason is None and (self._choice.settings.stream or not response.parts)


def _count_added(event: ModelResponseStreamEvent) -> int:
    """Return the number of characters that the event adds to the answer."""
    match event:
        case PartStartEvent(part=TextPart(content=text) | ThinkingPart(content=text) | ToolCallPart(args=text)):
            return len(text or "")
        case PartDeltaEvent(
            delta=TextPartDelta(content_delta=text)
            | ThinkingPartDelta(content_delta=text)
            | ToolCallPartDelta(args_delta=text)
        ):
            return len(text or "")
        case _:
            return 0


def _get_text(event: ModelResponseStreamEvent) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""
