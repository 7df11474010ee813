"""One agent, asked once, outside of any pipeline. It can look at the repository and change nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import JsonValue

from proofstone.adapters.backends import Backend
from proofstone.adapters.bus import Bus
from proofstone.adapters.executors.site import Site
from proofstone.adapters.tools import Ground, Toolbox
from proofstone.contracts.agent import Dispatched, Occasion
from proofstone.contracts.base import Contract
from proofstone.contracts.budget import Budget, Spent
from proofstone.contracts.rows import EventRow
from proofstone.engine.agents.dispatch import Dispatcher, Errand
from proofstone.engine.agents.meter import Meter
from proofstone.engine.viewing import Sight, seen_at, shell_at
from proofstone.engine.world import World
from proofstone.roles.asking import request_text
from proofstone.roles.role import Role


@dataclass(frozen=True)
class Asking:
    """What an agent is asked, and how."""

    role: Role
    focus: str | None
    request: Contract
    backend: Backend
    budget: Budget
    seconds: float | None


@dataclass(frozen=True)
class Asked:
    dispatched: Dispatched
    spent: Spent


def ask(world: World, asking: Asking, site: Site) -> Asked:
    """The answer, or the fault. `site` says how whoever answers is heard; it is given the tree to look at."""
    world.ledger.append(
        EventRow(
            run_id=world.run_id,
            type="run.started",
            payload={
                "command": "ask",
                "repository": str(world.repository.root),
                "role": asking.role.name,
                "backend": asking.backend.identity.spec,
            },
        )
    )
    meter = Meter(asking.budget)
    dispatcher = Dispatcher(Bus(world.ledger, world.run_id), meter)
    with world.artifacts.writer(world.settings.limits.output_mb << 20) as sink:
        gate = world.settings.gate
        sight = Sight(
            world.base_tree,
            world.base_commit,
            gate.architect_seconds,
            gate.network,
            gate.pass_through,
            hide_secrets=True,
        )
        shell = shell_at(world, sight, sink)
        ground = Ground(
            files=shell.view.files,
            run=shell,
            git=world.store.git(),
            commit=world.base_commit,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
            mask=world.secrets,
        )
        placed = replace(
            site,
            work_tree=shell.view.files,
            scratch=world.scratch,
            run=shell,
            seen_at=seen_at(shell),
            level=world.sandbox.level,
            secret=world.settings.tools.secret,
            cancel=world.cancel,
        )
        occasion = Occasion(run_id=world.run_id, role=asking.role.name, step="ask", focus=asking.focus)
        text = request_text(asking.role, asking.request)
        errand = Errand(text, asking.backend, Toolbox(ground, asking.role.tools), placed, asking.seconds)
        try:
            dispatched = dispatcher.dispatch(asking.role, occasion, errand)
        except BaseException as error:
            payload: dict[str, JsonValue] = {"reason": str(error) or "interrupted"}
            world.ledger.append(EventRow(run_id=world.run_id, type="run.interrupted", payload=payload))
            raise
        world.ledger.append(sink.finish().row())
    outcome = "failed" if dispatched.fault else "passed"
    reason = dispatched.completion.summary if dispatched.fault else ""
    world.ledger.append(
        EventRow(run_id=world.run_id, type="run.finished", payload={"outcome": outcome, "reason": reason})
    )
    return Asked(dispatched, meter.spent())
