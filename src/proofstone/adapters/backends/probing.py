"""One short question to a backend, to see whether it answers as it should. It costs what it costs: a few tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from pydantic import Field

from proofstone.adapters.backends import Backend
from proofstone.adapters.executors.site import Site
from proofstone.contracts.agent import Conversation, Fault, Occasion, Told, Turn
from proofstone.contracts.base import Contract
from proofstone.contracts.budget import Usage
from proofstone.core.agent.answer import Malformed, parse, validated

SECONDS: Final = 60.0


class Echo(Contract):
    """The answer to a probe."""

    word: str = Field(description="The word that you were asked to repeat.")


@dataclass(frozen=True)
class Probed:
    spec: str
    fault: str = ""
    """Why it is of no use, in words; empty: it answered."""
    model: str = ""
    """Who answered, as they call themselves."""
    milliseconds: int = 0
    usage: Usage = field(default_factory=Usage)


def probe(backend: Backend, site: Site, seconds: float = SECONDS) -> Probed:
    began = time.monotonic()
    outcome = backend.turn(_question(), site, seconds)
    took = round(1000 * (time.monotonic() - began))
    spec = backend.identity.spec
    if isinstance(outcome, Fault):
        return Probed(spec, f"{outcome.kind}: {outcome.why}", milliseconds=took)
    return Probed(spec, _wrong(outcome), outcome.model, took, outcome.usage)


def _question() -> Conversation:
    return Conversation(
        occasion=Occasion(run_id="probe", role="probe"),
        instructions="This is a test of the connection. Answer at once, by the schema, and use no tools.",
        tools=(),
        output_schema=Echo.model_json_schema(),
        entries=(Told(text="Repeat the word `proofstone`."),),
    )


def _wrong(turn: Turn) -> str:
    if turn.calls:
        return f"malformed: it called the tool {turn.calls[0].name}, which it does not have, instead of answering"
    said = validated(turn.answer, Echo) if turn.answer is not None else parse(turn.text.encode(), Echo)
    return f"malformed: {said.why}" if isinstance(said, Malformed) else ""
