"""Choose the executor and the architect that a spec names, if they are programs or people."""

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
    """Return the program or person that `spec` names as an executor. The engine builds agents itself."""
    kind, _, rest = spec.partition(":")
    if kind == "cmd" and rest.strip():
        return CommandExecutor(rest)
    if spec == "human":
        return HumanExecutor(listen)
    raise unknown("executor", spec)


def unknown(role: str, spec: str, *others: str) -> InputError:
    """Return the error for an unknown spec."""
    kinds = ", ".join((*others, KINDS))
    return InputError(f"{spec!r} is not a known {role}", hint=f"one of: {kinds}")


def architect_from(spec: str, listen: Listen | None = None) -> Architect | None:
    """Return the program or person that `spec` names as an architect, or None for `rules`, which always apply."""
    kind, _, rest = spec.partition(":")
    if spec == "rules":
        return None
    if kind == "cmd" and rest.strip():
        return CommandArchitect(rest)
    if spec == "human":
        return HumanArchitect(listen)
    raise unknown("architect", spec, "rules")
