"""The table of routes: every pair of roles and every type is decided, and the memory's rules follow from it."""

from __future__ import annotations

from itertools import product

import pytest

from proofstone.agents.rules.routes import AGENT_ROLES, BUS_ROLES, ROUTES, explain_refusal, is_allowed
from tests.rows import each_row

LOOP = {
    ("perceiver", "planner", "TaskSpec"),
    ("planner", "executor", "SubTask"),
    ("planner", "meta_validator", "DispatchManifest"),
    ("executor", "agent_validator", "ExecutionResult"),
    ("agent_validator", "executor", "CorrectionSignal"),
    ("agent_validator", "meta_validator", "SubTaskOutcome"),
    ("meta_validator", "controller", "ReplanRequest"),
    ("meta_validator", "controller", "OutcomeSummary"),
    ("controller", "planner", "PlanDirective"),
    ("controller", "executor", "PlanDirective"),
    ("controller", "person", "FinalResult"),
    ("planner", "memory", "MemoryEntry"),
    ("meta_validator", "memory", "MemoryEntry"),
    ("knowledge", "memory", "MemoryEntry"),
    ("planner", "memory", "MemoryQuery"),
    ("memory", "planner", "MemoryEntries"),
    ("researcher", "memory", "MemoryQuery"),
    ("memory", "researcher", "MemoryEntries"),
    ("auditor", "person", "AuditReport"),
    ("engine", "person", "Question"),
    ("engine", "person", "Notice"),
    ("person", "engine", "Answer"),
}
TYPES = sorted({route.type for route in ROUTES})


def deserved(sender: str, recipient: str, type: str) -> bool:
    if sender == "engine" and recipient in AGENT_ROLES:
        return type in ("Dispatch", "ToolResult", "Repair", "Attended", "Aloud")
    if sender in AGENT_ROLES and recipient == "engine":
        return type in ("Turn", "Output", "Fault", "Activity")
    return (sender, recipient, type) in LOOP


@pytest.mark.seed("control-loop", "bus")
def test_every_combination_of_roles_and_types_is_as_the_rules_say() -> None:
    wrong = [
        route
        for route in product(sorted(BUS_ROLES), sorted(BUS_ROLES), [*TYPES, "Whisper"])
        if is_allowed(*route) != deserved(*route)
    ]
    assert wrong == []


@each_row("role", sorted(BUS_ROLES))
@pytest.mark.seed("control-loop", "auditor-reads")
def test_nothing_is_said_to_the_auditor_and_it_says_nothing_but_its_report(role: str) -> None:
    assert not any(is_allowed(role, "auditor", type) for type in TYPES)
    heard = [type for type in TYPES if is_allowed("auditor", role, type)]
    assert heard == (["AuditReport"] if role == "person" else [])


def test_a_focus_belongs_to_its_role() -> None:
    assert is_allowed("engine", "reviewer:security", "Dispatch")
    assert is_allowed("reviewer:security", "engine", "Output")
    assert not is_allowed("reviewer:security", "person", "FinalResult")
    assert not is_allowed("engine", "wizard:reviewer", "Dispatch")


@each_row(
    ("route", "words"),
    [
        (("engine", "planner", "Dispatch"), ""),
        (("engine", "wizard", "Dispatch"), "nobody is called 'wizard'"),
        (("", "engine", "Output"), "nobody is called ''"),
        (("executor", "planner", "Output"), "executor may say nothing to planner"),
        (
            ("engine", "reviewer:security", "Output"),
            "engine may not say Output to reviewer:security, only Aloud, Attended, Dispatch, Repair, ToolResult",
        ),
    ],
)
def test_why_a_message_may_not_be_sent_is_said_in_words(route: tuple[str, str, str], words: str) -> None:
    assert explain_refusal(*route) == words


@each_row(
    ("role", "searches", "writes"),
    [
        ("planner", True, True),
        ("meta_validator", False, True),
        ("knowledge", False, True),
        ("researcher", True, False),
        ("researcher:surface", True, False),
        ("perceiver", False, False),
        ("executor", False, False),
        ("agent_validator", False, False),
        ("controller", False, False),
        ("auditor", False, False),
        ("nobody", False, False),
    ],
)
@pytest.mark.seed("control-loop", "memory-access")
def test_who_may_use_the_memory(role: str, searches: bool, writes: bool) -> None:
    assert is_allowed(role, "memory", "MemoryQuery") is searches
    assert is_allowed(role, "memory", "MemoryEntry") is writes
