"""What a run of the gate was started with. It is the first row of the run, and a resumed run takes it from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from assay.contracts.base import Contract
from assay.contracts.budget import Budget

Hooks = Literal["refuse", "run", "skip"]


class GateSetup(Contract):
    command: Literal["gate"] = "gate"
    version: str
    """Of the engine: another one may decide otherwise, so it does not go on with this run."""
    repository: str
    plan_path: str
    plan_artifact: str
    """The plan's own bytes: editing the file does not change a run that is under way."""
    base_commit: str
    branch: str
    executor: str
    architect: str
    fallbacks: Mapping[str, tuple[str, ...]] = {}
    """By role: who is asked where the first does not answer."""
    budget: Budget = Budget()
    """What agents may spend."""
    slots: int
    minutes: float
    hooks: Hooks
    skipped_hooks: tuple[str, ...] = ()
    sign: bool
    author_name: str
    author_email: str
    require_sandbox: bool = False
    heldout_files: str | None = None
    sandbox: str
    notes: tuple[str, ...] = ()
    parent: str = ""
    """The run that it is a part of, if it is one."""
    settings_commit: str = ""
    """Whose settings decide, if it is not the base: what earlier parts of the run have committed cannot loosen them."""
