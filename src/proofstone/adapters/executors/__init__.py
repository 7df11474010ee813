"""Executors: one Protocol (`site.Executor`), and who does the work is a word of the person's."""

from __future__ import annotations

from proofstone.adapters.executors.cmd import CommandExecutor
from proofstone.adapters.executors.human import HumanExecutor, Listen, Terminal
from proofstone.adapters.executors.site import Executor, Ran, SandboxedShell, ShellJob, Site
from proofstone.errors import InputError

KINDS = "api:PROVIDER:MODEL, cli:PRESET, acp:PRESET, cmd:COMMAND, human, script:FILE.yaml"

__all__ = ["KINDS", "Executor", "Listen", "Ran", "SandboxedShell", "ShellJob", "Site", "Terminal", "executor_from"]


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
