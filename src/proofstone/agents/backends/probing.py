"""Ask a backend a short question to see whether it answers, and find out how a model answers best.

A model whose settings say how it answers, and every program, is asked once. Any other model is asked in each way in
turn until an answer has the right form: by a tool, by a schema, as text. Then it is told to call a tool. What was found
out is recorded (`config.probes`), so that no run has to find it out again. This costs a few tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import Field

from proofstone.agents.backends import Backend
from proofstone.agents.backends.api.backend import ApiBackend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, DispatchKey, EngineMessage, Fault, FaultKind, ToolSpec, Turn
from proofstone.agents.rules.answer import MalformedAnswer, read_answer
from proofstone.common.models import FrozenModel, Usage
from proofstone.config.probes import ProbeRecord
from proofstone.config.providers import AnswerMode

PROBE_SECONDS: Final = 60.0
_MODES: Final[tuple[AnswerMode, ...]] = ("tool", "schema", "text")
_WORD: Final = "proofstone"


class ProbeAnswer(FrozenModel):
    """The answer to a probe."""

    word: str = Field(description="The word that you were asked to repeat.")


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe."""

    spec: str
    fault: str = ""
    """Why the backend cannot be used; empty if it answered."""
    model: str = ""
    """The model that answered, as it reports itself."""
    milliseconds: int = 0
    usage: Usage = field(default_factory=Usage)
    answer: AnswerMode | None = None
    """How it answers; None for a backend that is no model of a provider."""
    calls_tools: bool | None = None
    """Whether it calls tools; None: this is not known."""

    def to_record(self, now: str) -> ProbeRecord | None:
        """Return what is worth recording, or None if the backend did not answer."""
        if self.fault or self.answer is None:
            return None
        return ProbeRecord(answer=self.answer, calls_tools=self.calls_tools, probed_at=now)


def probe(backend: Backend, site: ExecutionContext, seconds: float = PROBE_SECONDS) -> ProbeResult:
    """Ask the backend to repeat a word. A model of a provider is asked in each way until its answer has the form."""
    if not isinstance(backend, ApiBackend):
        return _ask(backend, _build_probe(), site, seconds)
    modes = _MODES if backend.choice.settings.answer == "auto" else (backend.choice.answer,)
    return _probe_model(lambda mode: ApiBackend(replace(backend.choice, answer=mode)), modes, site, seconds)


def _probe_model(
    build: Callable[[AnswerMode], ApiBackend], modes: tuple[AnswerMode, ...], site: ExecutionContext, seconds: float
) -> ProbeResult:
    usage = Usage()
    result: ProbeResult | None = None
    for mode in modes:
        with closing(build(mode)) as backend:
            asked = _ask(backend, _build_probe(), site, seconds)
            usage = usage + asked.usage
            result = replace(asked, answer=mode, usage=usage)
            if not asked.fault:
                calls_tools, more = _probe_tools(backend, site, seconds)
                return replace(result, calls_tools=calls_tools, usage=usage + more)
            if not asked.fault.startswith(_REPEATABLE):
                break
    if result is None:
        raise ValueError("there must be a way to ask a model")
    return result


_REPEATABLE: Final = (f"{FaultKind.MALFORMED}:", f"{FaultKind.REJECTED}:")
"""Faults after which another way of answering may work: a wrong form, and a request that the server does not take."""


def _ask(backend: Backend, question: Conversation, site: ExecutionContext, seconds: float) -> ProbeResult:
    began = time.monotonic()
    outcome = backend.turn(question, site, seconds)
    milliseconds = round(1000 * (time.monotonic() - began))
    spec = backend.identity.spec
    if isinstance(outcome, Fault):
        return ProbeResult(spec, f"{outcome.kind}: {outcome.why}", milliseconds=milliseconds, usage=outcome.usage)
    return ProbeResult(spec, _explain_failure(outcome), outcome.model, milliseconds, outcome.usage)


def _probe_tools(backend: ApiBackend, site: ExecutionContext, seconds: float) -> tuple[bool | None, Usage]:
    """Return whether the model calls a tool when it is told to, and what asking cost. None if it did not answer."""
    outcome = backend.turn(_build_tool_probe(), site, seconds)
    if isinstance(outcome, Fault):
        return None, outcome.usage
    return any(call.name == _TOOL.name for call in outcome.calls), outcome.usage


_TOOL: Final = ToolSpec(
    name="look_up",
    description="Look up the word.",
    parameters={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)


def _build_probe() -> Conversation:
    return Conversation(
        occasion=DispatchKey(run_id="probe", role="probe"),
        instructions="This is a test of the connection. Answer at once with the given schema. Do not use tools.",
        tools=(),
        output_schema=ProbeAnswer.model_json_schema(),
        entries=(EngineMessage(text=f"Repeat the word `{_WORD}`."),),
    )


def _build_tool_probe() -> Conversation:
    return Conversation(
        occasion=DispatchKey(run_id="probe", role="probe"),
        instructions=f"This is a test of the connection. Call the tool `{_TOOL.name}` first, then answer.",
        tools=(_TOOL,),
        output_schema=ProbeAnswer.model_json_schema(),
        entries=(EngineMessage(text=f"Which word has the number 7? Call `{_TOOL.name}` to find out."),),
    )


def _explain_failure(turn: Turn) -> str:
    if turn.calls:
        return f"malformed: it called the tool {turn.calls[0].name}, which was not offered, instead of answering"
    answer = read_answer(turn.text if turn.answer is None else turn.answer, ProbeAnswer)
    return f"malformed: {answer.why}" if isinstance(answer, MalformedAnswer) else ""
