"""The routes of the bus: a literal table of (from, to, type). A message without a route is refused.

Roles answer only the engine; in the control loop they pass messages to each other along the routes of the loop. The
auditor receives no messages and sends only a report to the person, so it can instruct nobody. The table also decides
who may use the memory.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

SERVED_ROLES: Final = (
    "executor",
    "architect",
    "researcher",
    "specifier",
    "designer",
    "planner",
    "reviewer",
    "knowledge",
    "challenger",
    "domain_expert",
    "devils_advocate",
    "synthesizer",
    "perceiver",
    "agent_validator",
    "meta_validator",
)
"""Roles that a backend serves. The controller is code and not among them."""

AGENT_ROLES: Final = frozenset((*SERVED_ROLES, "controller"))
"""Roles that the engine dispatches."""

BUS_ROLES: Final = AGENT_ROLES | {"engine", "person", "memory", "auditor"}

REFUSED_EVENT: Final = "bus.refused"
"""The type of the event that records a message without a route, for the auditor."""


class Route(NamedTuple):
    sender: str
    recipient: str
    type: str


_FROM_ENGINE: Final = ("Dispatch", "ToolResult", "Repair", "Attended", "Aloud")
_TO_ENGINE: Final = ("Turn", "Output", "Fault", "Activity")

_PERSON: Final = (
    Route("engine", "person", "Question"),
    Route("engine", "person", "Notice"),
    Route("person", "engine", "Answer"),
)

_LOOP: Final = (
    Route("perceiver", "planner", "TaskSpec"),
    Route("planner", "executor", "SubTask"),
    Route("planner", "meta_validator", "DispatchManifest"),
    Route("executor", "agent_validator", "ExecutionResult"),
    Route("agent_validator", "executor", "CorrectionSignal"),
    Route("agent_validator", "meta_validator", "SubTaskOutcome"),
    Route("meta_validator", "controller", "ReplanRequest"),
    Route("meta_validator", "controller", "OutcomeSummary"),
    Route("controller", "planner", "PlanDirective"),
    Route("controller", "executor", "PlanDirective"),
    Route("controller", "person", "FinalResult"),
)

_MEMORY: Final = (
    Route("planner", "memory", "MemoryQuery"),
    Route("memory", "planner", "MemoryEntries"),
    Route("planner", "memory", "MemoryEntry"),
    Route("meta_validator", "memory", "MemoryEntry"),
    Route("knowledge", "memory", "MemoryEntry"),
    Route("researcher", "memory", "MemoryQuery"),
    Route("memory", "researcher", "MemoryEntries"),
)

ROUTES: Final[frozenset[Route]] = frozenset(
    (
        *(Route("engine", role, type) for role, type in product(AGENT_ROLES, _FROM_ENGINE)),
        *(Route(role, "engine", type) for role, type in product(AGENT_ROLES, _TO_ENGINE)),
        *_PERSON,
        *_LOOP,
        *_MEMORY,
        Route("auditor", "person", "AuditReport"),
    )
)


def get_role(name: str) -> str:
    """Return the role of a name on the bus: `reviewer:security` is a reviewer."""
    return name.partition(":")[0]


def is_allowed(sender: str, recipient: str, type: str) -> bool:
    return Route(get_role(sender), get_role(recipient), type) in ROUTES


def explain_refusal(sender: str, recipient: str, type: str) -> str:
    """Return why the message may not be sent, in words; empty if it may."""
    if is_allowed(sender, recipient, type):
        return ""
    for name in (sender, recipient):
        if get_role(name) not in BUS_ROLES:
            return f"nobody is called {name!r}"
    types = sorted(route.type for route in ROUTES if route[:2] == (get_role(sender), get_role(recipient)))
    if not types:
        return f"{sender} may say nothing to {recipient}"
    return f"{sender} may not say {type} to {recipient}, only {', '.join(types)}"
