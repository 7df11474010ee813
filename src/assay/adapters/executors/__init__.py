"""Executors: one Protocol (`site.Executor`), and who does the work is a word of the person's."""

from __future__ import annotations

from assay.adapters.executors.cmd import CommandExecutor
from assay.adapters.executors.human import HumanExecutor, Listen, Terminal
from assay.adapters.executors.site import Executor, Ran, SandboxedShell, ShellJob, Site
from assay.errors import InputError

__all__ = ["Executor", "Listen", "Ran", "SandboxedShell", "ShellJob", "Site", "Terminal", "executor_from"]

_NOT_YET = ("acp", "cli")


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
    kind = spec.partition(":")[0]
    later = f"; `{kind}:` is not there yet" if kind in _NOT_YET else ""
    known = ", ".join((*others, "api:PROVIDER:MODEL", "cmd:COMMAND", "human", "script:FILE.yaml"))
    return InputError(f"{spec!r} is not an {role} that is known here{later}", hint=f"one of: {known}")
