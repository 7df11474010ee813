"""Who executes and who reviews: agents in the engine's own loop, or programs and people that bring their own tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from assay.adapters.architects import Architect, architect_from
from assay.adapters.backends import Backend
from assay.adapters.executors import Executor, Listen, executor_from
from assay.adapters.git.program import Git
from assay.config.backends import works_alone
from assay.engine.agents.architect import AgentArchitect
from assay.engine.agents.dispatch import Dispatcher
from assay.engine.agents.executor import AgentExecutor

AGENTS: Final = ("api", "acp", "cli", "script")
"""Kinds of specs that add turns to a conversation of the engine's."""


@dataclass(frozen=True)
class Casting:
    backend: Callable[[Sequence[str]], Backend]
    """From specs, the later ones as fallbacks."""
    dispatcher: Dispatcher
    listen: Listen | None = None
    git: Git | None = None
    secret: tuple[str, ...] = ()

    def executor(self, specs: Sequence[str]) -> Executor:
        if not is_agent(specs[0]):
            return executor_from(specs[0], self.listen)
        return AgentExecutor(specs[0], self.backend(specs), self.dispatcher, self.git, self.secret)

    def architect(self, specs: Sequence[str]) -> Architect | None:
        if not is_agent(specs[0]):
            return architect_from(specs[0], self.listen)
        return AgentArchitect(specs[0], self.backend(specs), self.dispatcher, self.git, self.secret)


def thinks(spec: str) -> bool:
    """Whether a model is behind it, which takes its time."""
    return spec.startswith("api:") or works_alone(spec)


def is_agent(spec: str) -> bool:
    return spec.partition(":")[0] in AGENTS
