"""What a role is: what it is given, what it must answer, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from pydantic import JsonValue

from proofstone.contracts.agent import Completion, Output
from proofstone.contracts.base import Contract
from proofstone.contracts.tools import Tool
from proofstone.core.agent.tiers import Demand
from proofstone.errors import InternalError

MOST_SUMMARY: Final = 200
_COMMON: Final = "common.md"


def stated(output: Contract) -> Completion:
    """Of an answer that says itself how it ended, as all of the pipeline's do."""
    if not isinstance(output, Output):
        raise InternalError(f"{type(output).__name__} does not say how it ended")
    return output.completion


@dataclass(frozen=True)
class Role:
    name: str
    title: str
    """In one line."""
    input: type[Contract]
    output: type[Contract]
    tools: frozenset[Tool]
    prompt: str
    """The file in `prompts/`."""
    tier: int
    """Of the least capable model that should serve it: 1 small, 2 standard, 3 strong."""
    completion: Callable[[Contract], Completion] = stated
    """How its answer says that it ended."""
    schema_version: str = "1"
    tool_calls: int = 40
    """That one dispatch may make."""
    validates: tuple[str, ...] = ()
    """Roles whose work it judges: its model must be at least as capable as theirs."""
    strict: bool = False
    """A weaker model is refused, not only recorded."""
    foci: tuple[str, ...] = ()
    """There is one agent of the role for each of these."""
    shared: tuple[str, ...] = ()
    """Files in `prompts/` with what it must know as others must, but not all."""

    @property
    def instructions(self) -> str:
        """The same text for every dispatch, so that providers can cache it."""
        return _prompt((self.prompt, *self.shared, _COMMON))

    @property
    def output_schema(self) -> Mapping[str, JsonValue]:
        """Of its answer."""
        return _schema(self.output)

    @property
    def agents(self) -> tuple[str, ...]:
        """How those that serve it are called: `reviewer:security`."""
        return tuple(f"{self.name}:{focus}" for focus in self.foci) or (self.name,)

    @property
    def demand(self) -> Demand:
        return Demand(self.tier, self.validates, self.strict)


@cache
def _schema(output: type[Contract]) -> Mapping[str, JsonValue]:
    """Made once: it takes longer than everything else that the engine does for a dispatch."""
    return output.model_json_schema()


@cache
def _prompt(names: tuple[str, ...]) -> str:
    folder = files("proofstone.roles") / "prompts"
    return "\n\n".join((folder / name).read_text(encoding="utf-8").rstrip() for name in names) + "\n"
