"""Who executes and who reviews: agents in the engine's own loop, or programs and people that bring their own tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.adapters.architects import Architect, architect_from
from proofstone.adapters.backends import Backend
from proofstone.adapters.executors import Executor, Listen, executor_from
from proofstone.adapters.executors.site import Site
from proofstone.adapters.git.program import Git
from proofstone.config.backends import works_alone
from proofstone.contracts.agent import Dispatched, Occasion
from proofstone.contracts.reverify.judging import JudgeRequest
from proofstone.engine.agents.architect import AgentArchitect
from proofstone.engine.agents.dispatch import Dispatcher
from proofstone.engine.agents.executor import AgentExecutor
from proofstone.roles.architect import JUDGE

JudgeAt = Callable[[JudgeRequest, Occasion, Site], Dispatched]
"""Asks whoever judges, where the agent stands that is judged."""
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

    @staticmethod
    def judge(architect: Architect | None) -> JudgeAt | None:
        """Whoever reviews judges understanding, too, if it can; None: nobody does."""
        if not isinstance(architect, AgentArchitect) or not can_judge(architect.backend):
            return None

        def judge(request: JudgeRequest, occasion: Occasion, site: Site) -> Dispatched:
            return architect.dispatcher.dispatch(JUDGE, occasion, architect.errand(JUDGE, request, site))

        return judge

    def architect(self, specs: Sequence[str]) -> Architect | None:
        if not is_agent(specs[0]):
            return architect_from(specs[0], self.listen)
        return AgentArchitect(specs[0], self.backend(specs), self.dispatcher, self.git, self.secret)


def can_judge(backend: Backend) -> bool:
    """Whether whoever reviews can be asked how somebody else has understood their task."""
    return backend.identity.answers(JUDGE.name, JUDGE.foci[0])


def thinks(spec: str) -> bool:
    """Whether a model is behind it, which takes its time."""
    return spec.startswith("api:") or works_alone(spec)


def is_agent(spec: str) -> bool:
    return spec.partition(":")[0] in AGENTS
