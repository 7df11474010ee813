"""Executors: one Protocol (`site.Executor`), and who does the work is a word of the person's.

Architects beside the rules, which are no adapter: one Protocol (`review.Architect`), chosen by the person's word.
"""

from __future__ import annotations

from proofstone.agents.executors.context import Architect, Executor, Ran, Reviewed, SandboxedShell, ShellJob, Site
from proofstone.agents.executors.people import HumanArchitect, HumanExecutor, Listen, Terminal
from proofstone.agents.executors.programs import CommandArchitect, CommandExecutor
from proofstone.errors import InputError

__all__ = [
    "KINDS",
    "Architect",
    "Executor",
    "Listen",
    "Ran",
    "Reviewed",
    "SandboxedShell",
    "ShellJob",
    "Site",
    "Terminal",
    "architect_from",
    "executor_from",
]


KINDS = "api:PROVIDER:MODEL, cli:PRESET, acp:PRESET, cmd:COMMAND, human, script:FILE.yaml"


def executor_from(spec: str, listen: Listen | None = None) -> Executor:
    """The executor that `spec` names, if it is one that brings its own tools. Agents are cast by the engine."""
    kind, _, rest = spec.partition(":")
    if kind == "cmd" and rest.strip():
        return CommandExecutor(rest)
    if spec == "human":
        return HumanExecutor(listen)
    raise unknown("executor", spec)


def unknown(role: str, spec: str, *others: str) -> InputError:
    """The error for a word that names nobody."""
    known = ", ".join((*others, KINDS))
    return InputError(f"{spec!r} is not an {role} that is known here", hint=f"one of: {known}")


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
