"""Who may say what to whom: a literal table of (from, to, type), and nothing that is not in it is said.

Roles answer the engine and nobody else; in the control loop they hand each other contracts, along the arrows of the
loop. Nothing leads to the auditor, and from it nothing but a report to the person: it can instruct nobody. Who may use
the memory follows from here too.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

SERVED: Final = (
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
"""Roles that a backend serves. The controller is code."""

AGENTS: Final = frozenset((*SERVED, "controller"))
"""Roles that the engine dispatches."""

ROLES: Final = AGENTS | {"engine", "person", "memory", "auditor"}

REFUSED: Final = "bus.refused"
"""Type of the event that records a message off the routes, for the auditor to see."""


class Route(NamedTuple):
    sender: str
    recipient: str
    type: str


_ASKED: Final = ("Dispatch", "ToolResult", "Repair", "Attended", "Aloud")
_ANSWERED: Final = ("Turn", "Output", "Fault", "Activity")

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
        *(Route("engine", role, type) for role, type in product(AGENTS, _ASKED)),
        *(Route(role, "engine", type) for role, type in product(AGENTS, _ANSWERED)),
        *_PERSON,
        *_LOOP,
        *_MEMORY,
        Route("auditor", "person", "AuditReport"),
    )
)


def role_of(name: str) -> str:
    """The role behind a name on the bus: `reviewer:security` is a reviewer."""
    return name.partition(":")[0]


def allowed(sender: str, recipient: str, type: str) -> bool:
    return Route(role_of(sender), role_of(recipient), type) in ROUTES


def why_not(sender: str, recipient: str, type: str) -> str:
    """Why the message may not be sent, in words; empty if it may."""
    if allowed(sender, recipient, type):
        return ""
    for name in (sender, recipient):
        if role_of(name) not in ROLES:
            return f"nobody is called {name!r}"
    between = sorted(route.type for route in ROUTES if route[:2] == (role_of(sender), role_of(recipient)))
    if not between:
        return f"{sender} may say nothing to {recipient}"
    return f"{sender} may not say {type} to {recipient}, only {', '.join(between)}"
