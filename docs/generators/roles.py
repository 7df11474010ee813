"""The roles: how long what each is sent is, and was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from generators.page import table
from proofstone.agents.roles.gate import JUDGE
from proofstone.agents.roles.registry import LOOP_ROLES, PLAN_GATE_ROLES, ROLES
from proofstone.agents.roles.role import Role
from proofstone.agents.rules.schemas import omit_descriptions
from proofstone.agents.rules.token_count import estimate_tokens
from proofstone.agents.tools.toolbox import build_spec

_ALL: Final[Mapping[str, Role]] = {
    **ROLES,
    **PLAN_GATE_ROLES,
    **{f"solve:{purpose}": role for purpose, role in LOOP_ROLES.items()},
    "architect:understanding": JUDGE,
}
_SAME: Final = frozenset({"solve:perceive", "solve:judge", "solve:merge"})
"""Roles that are in the table under their own names."""
_BEFORE: Final[Mapping[str, tuple[int, int, int]]] = {
    "executor": (1321, 596, 2308),
    "architect": (1089, 309, 1687),
    "researcher": (969, 840, 1550),
    "specifier": (1018, 1064, 1550),
    "designer": (1016, 1203, 1550),
    "planner": (1080, 1305, 1550),
    "reviewer": (1272, 1172, 1550),
    "knowledge": (930, 929, 1550),
    "challenger": (1531, 1541, 1550),
    "domain_expert": (1474, 1541, 1550),
    "devils_advocate": (1410, 1541, 1550),
    "synthesizer": (1577, 1946, 1),
    "perceiver": (1002, 595, 1),
    "agent_validator": (1080, 691, 1550),
    "meta_validator": (1252, 800, 1550),
    "researcher:resolve": (1330, 1362, 1423),
    "researcher:surface": (1547, 1643, 1693),
    "researcher:probe": (1542, 1610, 1306),
    "challenger:audit": (1002, 768, 1),
    "solve:perceive": (1002, 595, 1),
    "solve:plan": (1598, 1146, 1550),
    "solve:execute": (1152, 447, 1141),
    "solve:judge": (1080, 691, 1550),
    "solve:merge": (1252, 800, 1550),
    "solve:fail": (980, 529, 1),
    "architect:understanding": (801, 269, 1550),
}
"""Prompt, schema and tools before the prompts were written anew (decision 0082), counted in the same way."""


def token_table() -> str:
    """Return the lengths of what is sent before the request of each role, now and before."""
    rows = list(_rows())
    return table(("role", "prompt", "schema", "tools", "together", "before", "now / before"), rows)


def count_parts(role: Role) -> tuple[int, int, int]:
    """Return the tokens of the prompt, of the schema of the answer, and of the tools, as a model is sent them."""
    tools = [build_spec(tool).model_dump(mode="json") for tool in sorted(role.tools)]
    schema = omit_descriptions(role.output_schema)
    return (
        estimate_tokens(role.instructions),
        estimate_tokens(json.dumps(schema, ensure_ascii=False)),
        estimate_tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0,
    )


def _rows() -> Iterator[tuple[str, ...]]:
    now_sum = before_sum = 0
    for name, role in _ALL.items():
        if name in _SAME:
            continue
        parts, before = count_parts(role), sum(_BEFORE[name])
        now_sum, before_sum = now_sum + sum(parts), before_sum + before
        yield (f"`{name}`", *map(str, parts), str(sum(parts)), str(before), f"{sum(parts) / before:.2f}")
    yield ("all", "", "", "", str(now_sum), str(before_sum), f"{now_sum / before_sum:.2f}")
