"""A tree to look at: a shell in it, inside the sandbox, whose writes are thrown away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from assay.adapters.executors import SandboxedShell
from assay.adapters.git.listing import in_tree
from assay.adapters.git.snapshot import of_tree
from assay.adapters.ledger.artifacts import ArtifactWriter
from assay.adapters.sandbox.job import Limits
from assay.contracts.verdict import Phase
from assay.core.agent.secret_files import is_secret
from assay.engine.subject import Subject
from assay.engine.trees import TreeUnderCheck
from assay.engine.world import CheckRequest, World


@dataclass(frozen=True)
class Sight:
    """What is looked at, and how."""

    tree: str
    commit: str
    """The base that the tree is compared with."""
    seconds: float
    """The longest that one command may take."""
    network: bool = False
    passed: tuple[str, ...] = ()
    """Environment variables that commands get beside those that checks get."""
    hide_secrets: bool = False
    """Files that are likely to hold secrets are shown empty: for agents."""


def shell_at(world: World, sight: Sight, sink: ArtifactWriter) -> SandboxedShell:
    """The shell; its `view.files` is the tree, on the machine."""
    frozen = of_tree(world.store, world.base_tree, sight.tree)
    environment = Subject(world, CheckRequest(tree=frozen)).environment
    tree = TreeUnderCheck(
        phase=Phase.REVIEW,
        tree=sight.tree,
        commit=sight.commit,
        folder=world.scratch / "tree",
        store=world.store,
        environment=environment,
        state=world.home,
    )
    limits = world.settings.sandbox
    hidden = secret_files(world, sight.tree) if sight.hide_secrets else ()
    return SandboxedShell(
        sandbox=world.sandbox,
        view=replace(tree.view(), network=sight.network, hidden=hidden),
        # Whoever looks stands in the candidate: what lies there must not become part of their program.
        variables=environment.check_variables(".")
        | environment.passed(sight.passed)
        | {"PYTHONSAFEPATH": "1", "PATH": environment.path},
        limits=Limits(sight.seconds, limits.memory_mb, limits.processes),
        scratch=world.scratch,
        sink=sink,
        cancel=world.cancel,
        guards=world.home / "guards",
    )


def seen_at(shell: SandboxedShell) -> Path:
    """Where what runs there finds its tree."""
    return shell.root


def secret_files(world: World, tree: str) -> tuple[str, ...]:
    """Files of a tree whose content no agent is shown."""
    names = (one.path.decode("utf-8", "surrogateescape") for one in in_tree(world.store.git(), tree) if one.is_file)
    return tuple(name for name in names if is_secret(name, world.settings.tools.secret))
