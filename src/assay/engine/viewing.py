"""A tree to look at: a shell in it, inside the sandbox, whose writes are thrown away."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.adapters.executors import SandboxedShell
from assay.adapters.git.snapshot import of_tree
from assay.adapters.ledger.artifacts import ArtifactWriter
from assay.adapters.sandbox.job import Limits
from assay.contracts.verdict import Phase
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
    return SandboxedShell(
        sandbox=world.sandbox,
        view=replace(tree.view(), network=sight.network),
        # Whoever looks stands in the candidate: what lies there must not become part of their program.
        variables=environment.check_variables(".")
        | environment.passed(sight.passed)
        | {"PYTHONSAFEPATH": "1", "PATH": environment.path},
        limits=Limits(sight.seconds, limits.memory_mb, limits.processes),
        scratch=world.scratch,
        sink=sink,
        cancel=world.cancel,
    )
