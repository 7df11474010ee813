"""The meta-validator: merges what the subtasks gave, and holds it against the criteria and the person's own words.

The planner wrote both the plan and the criteria. A weaker model could be talked into a result that keeps to their
letter, so it is refused and not only recorded.
"""

from __future__ import annotations

from proofstone.contracts.solve.answers import MergeOutput
from proofstone.contracts.solve.requests import MergeRequest
from proofstone.contracts.tools import READING
from proofstone.roles.role import Role

ROLE = Role(
    name="meta_validator",
    title="Merges what the subtasks gave, and verifies it",
    input=MergeRequest,
    output=MergeOutput,
    tools=READING,
    prompt="meta_validator.md",
    tier=3,
    validates=("planner",),
    strict=True,
)
