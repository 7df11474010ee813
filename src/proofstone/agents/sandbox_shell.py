"""Shells inside the sandbox: one in a tree to read, whose writes are thrown away, and one in a private work tree, whose
writes are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.agents.executors.context import SandboxedShell
from proofstone.check.context import CheckRequest, RunContext, TreeUnderCheck
from proofstone.check.environment import CheckEnvironment
from proofstone.check.subject import CheckSubject
from proofstone.common.models import Phase
from proofstone.common.secrets import is_secret_path
from proofstone.git.objects import list_tree
from proofstone.git.snapshot import Snapshot, snapshot_of_tree
from proofstone.git.work_tree import WorkTree
from proofstone.ledger.artifacts import ArtifactWriter
from proofstone.ledger.connection import external_folders
from proofstone.sandbox.job import JobLimits, SandboxView


@dataclass(frozen=True)
class ReadOnlyView:
    """The tree that a read-only shell shows, and the limits of the shell."""

    tree: str
    commit: str
    """The base that the tree is compared with."""
    seconds: float
    """The time limit of one command."""
    network: bool = False
    pass_through: tuple[str, ...] = ()
    """Environment variables that commands get in addition to those of checks."""
    hide_secrets: bool = False
    """Whether files that are likely to hold secrets are shown empty, as they must be for agents."""


def build_read_only_shell(world: RunContext, sight: ReadOnlyView, sink: ArtifactWriter) -> SandboxedShell:
    """Return a shell in a tree, whose writes are thrown away. `view.files` is the tree on the machine."""
    frozen = snapshot_of_tree(world.store, world.base_tree, sight.tree)
    environment = CheckSubject(world, CheckRequest(tree=frozen)).environment
    tree = TreeUnderCheck(
        phase=Phase.REVIEW,
        tree=sight.tree,
        commit=sight.commit,
        folder=world.scratch / f"tree-{sight.tree[:12]}",
        store=world.store,
        environment=environment,
        state=world.home,
        held_out=world.held_out,
    )
    hidden = find_secret_files(world, sight.tree) if sight.hide_secrets else ()
    return SandboxedShell(
        sandbox=world.sandbox,
        view=replace(tree.view(), network=sight.network, hidden=hidden),
        # The current folder is the candidate: its files must not be imported into the programs of a reviewer.
        variables=environment.check_variables(".")
        | environment.select_variables(sight.pass_through)
        | {"PYTHONSAFEPATH": "1", "PATH": environment.path},
        limits=world.job_limits(sight.seconds),
        scratch=world.scratch,
        sink=sink,
        cancel=world.cancel,
        guards=world.home / "guards",
        mask=world.secrets,
    )


@dataclass(frozen=True)
class WorkShellSetup:
    """The work tree of a shell, and the limits of the shell."""

    work_tree: WorkTree
    base_commit: str
    """The commit whose dependencies are available."""
    scratch: Path
    limits: JobLimits
    keeps_writes: bool = True
    """Whether writes are kept."""
    hidden: tuple[str, ...] = ()
    """Files that are shown empty."""
    on_output: Callable[[bytes], None] | None = None


def build_work_shell(world: RunContext, at: WorkShellSetup, sink: ArtifactWriter) -> SandboxedShell:
    """Return a shell in a private work tree with the project's dependencies but without credentials."""
    tree = world.store.git().find_tree(at.base_commit)
    environment = CheckSubject(world, CheckRequest(tree=Snapshot(tree, tree, (), ()))).environment
    gate = world.settings.gate
    variables = environment.check_variables(".") | environment.select_variables(gate.pass_through)
    return SandboxedShell(
        sandbox=world.sandbox,
        view=SandboxView(
            root=world.repository.root,
            files=at.work_tree.files,
            work_tree=at.work_tree.files if at.keeps_writes else None,
            objects=at.work_tree.objects,
            home=environment.home,
            dependencies=environment.dependencies,
            includes=environment.includes,
            masked=(world.home, *external_folders(world.home), *environment.masked_paths, *world.held_out),
            visible=environment.visible_folders,
            sockets=tuple(Path(path) for path in environment.settings.sockets),
            network=gate.network,
            hidden=at.hidden,
        ),
        variables=variables | {"PATH": _put_machine_first(variables["PATH"], environment)},
        limits=at.limits,
        scratch=at.scratch,
        sink=sink,
        cancel=world.cancel,
        on_output=at.on_output,
        guards=world.home / "guards",
        mask=world.secrets,
    )


def _put_machine_first(path: str, environment: CheckEnvironment) -> str:
    """Move folders of the work tree to the end of PATH, unless they are dependencies. The agent controls their content,
    and no program in them may replace one of the machine."""

    def is_controlled_by_agent(folder: str) -> bool:
        is_inside = Path(folder).is_relative_to(environment.root)
        return is_inside and not any(Path(folder).is_relative_to(place) for place in environment.dependencies)

    return os.pathsep.join(sorted(path.split(os.pathsep), key=is_controlled_by_agent))


def find_sandbox_root(shell: SandboxedShell) -> Path:
    """Return where programs in the shell find the tree."""
    return shell.root


def find_secret_files(world: RunContext, tree: str) -> tuple[str, ...]:
    """Return the files of a tree whose content no agent may see."""
    names = (
        file.path.decode("utf-8", "surrogateescape") for file in list_tree(world.store.git(), tree) if file.is_file
    )
    return tuple(name for name in names if is_secret_path(name, world.settings.tools.secret))
