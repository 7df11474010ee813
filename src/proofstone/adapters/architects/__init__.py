"""Architects beside the rules, which are no adapter: one Protocol (`review.Architect`), chosen by the person's word."""

from __future__ import annotations

from proofstone.adapters.architects.cmd import CommandArchitect
from proofstone.adapters.architects.human import HumanArchitect
from proofstone.adapters.architects.review import Architect, Reviewed
from proofstone.adapters.executors import unknown
from proofstone.adapters.executors.human import Listen

__all__ = ["Architect", "Reviewed", "architect_from"]


def architect_from(spec: str, listen: Listen | None = None) -> Architect | None:
    """The architect that `spec` names, None for `rules`, which always speak. Agents are cast by the engine."""
    kind, _, rest = spec.partition(":")
    if spec == "rules":
        return None
    if kind == "cmd" and rest.strip():
        return CommandArchitect(rest)
    if spec == "human":
        return HumanArchitect(listen)
    raise unknown("architect", spec, "rules")
