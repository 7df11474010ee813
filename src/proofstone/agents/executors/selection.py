"""Choose the executor and the architect that a spec names, if they are programs or people."""

from __future__ import annotations

from proofstone.agents.executors.context import (
    Architect,
    ExecutionContext,
    ExecutionOutcome,
    Executor,
    ReviewOutcome,
    SandboxedShell,
    ShellCommand,
)
from proofstone.agents.executors.people import HumanArchitect, HumanExecutor, ReadLine, Terminal
from proofstone.agents.executors.programs import CommandArchitect, CommandExecutor
from proofstone.errors import InputError

__all__ = [
    "SPEC_KINDS",
    "Architect",
    "ExecutionContext",
    "ExecutionOutcome",
    "Executor",
    "ReadLine",
    "ReviewOutcome",
    "SandboxedShell",
    "ShellCommand",
    "Terminal",
    "build_architect",
    "build_executor",
]


SPEC_KINDS = "api:PROVIDER:MODEL, cli:PRESET, acp:PRESET, cmd:COMMAND, human, script:FILE.yaml"


def build_executor(spec: str, listen: ReadLine | None = None) -> Executor:
    """Return the program or person that `spec` names as an executor. The engine builds agents itself."""
    kind, _, rest = spec.partition(":")
    if kind == "cmd" and rest.strip():
        return CommandExecutor(rest)
    if spec == "human":
        return HumanExecutor(listen)
    raise unknown_spec_error("executor", spec)


def unknown_spec_error(role: str, spec: str, *others: str) -> InputError:
    """Return the error for an unknown spec."""
    kinds = ", ".join((*others, SPEC_KINDS))
    return InputError(f"{spec!r} is not a known {role}", hint=f"one of: {kinds}")


def build_architect(spec: str, listen: ReadLine | None = None) -> Architect | None:
    """Return the program or person that `spec` names as an architect, or None for `rules`, which always apply."""
    kind, _, rest = spec.partition(":")
    if spec == "rules":
        return None
    if kind == "cmd" and rest.strip():
        return CommandArchitect(rest)
    if spec == "human":
        return HumanArchitect(listen)
    raise unknown_spec_error("architect", spec, "rules")
