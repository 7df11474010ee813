"""What agents may spend: for a whole run, for one task and for one role. On unless a person says otherwise.

How long a run may take is `gate.run_minutes`. The minutes here are of agents at work, one beside the other added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from proofstone.config.backends import RoleName
from proofstone.config.component import Component
from proofstone.contracts.budget import Allowance, Budget

Tokens = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000_000)]
Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
Amount = Annotated[float, Field(strict=True, ge=0, le=1_000_000)]

_MINUTES = "Minutes that agents are at work, one beside the other added up."


class TaskBudget(Component):
    """What all the work on one task may use."""

    tokens: Tokens = Field(default=1_500_000, description="Tokens, read and written. 0: no limit.")
    usd: Amount = Field(default=8.0, description="US dollars, as far as prices are known. 0: no limit.")
    requests: Count = Field(default=400, description="Calls of a model. 0: no limit.")
    tool_calls: Count = Field(default=1_000, description="Calls of tools. 0: no limit.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit.")


class RoleBudget(Component):
    """What all the agents of one role may use in a run."""

    tokens: Tokens = Field(default=0, description="Tokens, read and written. 0: no limit of its own.")
    usd: Amount = Field(default=0.0, description="US dollars, as far as prices are known. 0: no limit of its own.")
    requests: Count = Field(default=0, description="Calls of a model. 0: no limit of its own.")
    tool_calls: Count = Field(default=0, description="Calls of tools. 0: no limit of its own.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit of its own.")


class BudgetSettings(Component):
    """What the agents of a run may use. Reaching a limit stops the work, and everything is kept. How long a whole
    run may take is `gate.run_minutes`."""

    tokens: Tokens = Field(default=5_000_000, description="Tokens, read and written. 0: no limit.")
    usd: Amount = Field(default=20.0, description="US dollars, as far as prices are known. 0: no limit.")
    requests: Count = Field(default=2_000, description="Calls of a model. 0: no limit.")
    tool_calls: Count = Field(default=10_000, description="Calls of tools. 0: no limit.")
    minutes: Amount = Field(default=0.0, description=f"{_MINUTES} 0: no limit.")
    task: TaskBudget = Field(
        default=TaskBudget(), description="What all the work on one task may use: `[budget.task]`."
    )
    roles: Mapping[RoleName, RoleBudget] = Field(
        default={}, description="What all the agents of one role may use: `[budget.roles.planner]`."
    )


def limits(settings: BudgetSettings) -> Budget:
    """The settings as limits: what is 0 there is none here."""
    return Budget(
        run=_allowance(settings),
        task=_allowance(settings.task),
        roles={name: _allowance(own) for name, own in settings.roles.items()},
    )


def _allowance(own: BudgetSettings | TaskBudget | RoleBudget) -> Allowance:
    return Allowance(
        tokens=own.tokens or None,
        usd=own.usd or None,
        requests=own.requests or None,
        tool_calls=own.tool_calls or None,
        minutes=own.minutes or None,
    )
