"""An agent with a place at the gate: whoever executes or reviews there is dispatched in the same way."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.adapters.backends import Backend
from proofstone.adapters.executors.site import Site
from proofstone.adapters.git.program import Git
from proofstone.adapters.tools import Ground, Toolbox
from proofstone.contracts.gate import Assignment, ReviewRequest
from proofstone.contracts.reverify.judging import JudgeRequest
from proofstone.engine.agents.dispatch import Dispatcher, Errand
from proofstone.roles.asking import request_text
from proofstone.roles.role import Role


@dataclass(frozen=True)
class PlacedAgent:
    spec: str
    backend: Backend
    dispatcher: Dispatcher
    git: Git | None = None
    secret: tuple[str, ...] = ()
    """Further patterns of files that it is not shown."""

    def errand(
        self, role: Role, request: Assignment | ReviewRequest | JudgeRequest, site: Site, scope: tuple[str, ...] = ()
    ) -> Errand:
        """What it is asked, with its tools where it stands. `scope`: what it may change."""
        ground = Ground(
            files=site.work_tree,
            scope=scope,
            run=site.run,
            git=self.git,
            commit=request.base_commit,
            secret=self.secret,
            cancel=site.cancel,
            mask=site.mask,
        )
        return Errand(
            text=request_text(role, request),
            backend=self.backend,
            toolbox=Toolbox(ground, role.tools),
            site=site,
            seconds=request.deadline_seconds,
        )
