"""The repository's own pre-commit hook, run in the sandbox on what an executor left, before anything is checked.

It runs in a work tree of its own, made from the frozen tree: nothing that the executor did to its `.git` reaches it.
What the hook edits is part of the work from then on. A hook that says no is a failed check.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofstone.adapters.executors import ShellJob
from proofstone.adapters.git.hooks import hooks_of
from proofstone.adapters.git.snapshot import Snapshot
from proofstone.adapters.git.user_hooks import persons_hook
from proofstone.adapters.git.work_tree import freeze, make_work_tree, remove_work_tree
from proofstone.adapters.sandbox.job import Bind
from proofstone.contracts.gate import Reason
from proofstone.contracts.gate_record import TaskRecord
from proofstone.contracts.verdict import Assurance, Verdict

if TYPE_CHECKING:
    from proofstone.engine.gate.executing import Execution

_BEFORE: Final = "pre-commit"


def run_hooks(
    execution: Execution, record: TaskRecord, frozen: Snapshot, scratch: Path
) -> tuple[Snapshot, Reason | None]:
    """The work as the hook left it, and why the hook refuses it, if it does."""
    world = execution.gate.world
    hooks = hooks_of(world.repository)
    program = persons_hook(hooks.folder, _BEFORE) if hooks.folder else None
    if program is None or hooks.folder is None:
        return frozen, None
    root = world.repository.root
    in_tree = program.is_relative_to(root) and not program.is_relative_to(world.repository.common_dir)
    place = make_work_tree(
        world.store,
        scratch / "hooks",
        base_commit=str(record.base_commit),
        tree=frozen.tree,
        sandboxed=world.sandbox.level is Assurance.BUBBLEWRAP,
    )
    with world.artifacts.writer(world.settings.limits.output_mb << 20) as writer:
        shell = execution.shell(record, place, scratch, writer)
        own = tuple(Bind(file, file) for file in hooks.folder.rglob("*") if file.is_file()) if in_tree else ()
        shell = replace(shell, view=replace(shell.view, includes=(*shell.view.includes, *own)))
        done = shell(_job(program, program.relative_to(root) if in_tree else None))
        output = writer.finish()
    world.ledger.append(output.row())
    after = freeze(world.store, place, frozen.base)
    remove_work_tree(place.folder)
    if done.exit_code == 0:
        return after, None
    how = f"exit code {done.exit_code}" if done.exit_code is not None else done.limit or done.setup_error or "no end"
    return frozen, _refusal(f"the repository's {_BEFORE} hook refuses it ({how})", output.hash)


def _job(program: Path, inside: Path | None) -> ShellJob:
    """The hook looks at what is staged, as it would at a commit. One that lies in the work tree is run from there, with
    the person's own files over it: it may need its neighbours, and the executor may have edited them. One in the
    person's `.git` is handed in."""
    if inside is not None:
        return ShellJob(command=f"git add --all && exec {shlex.quote(f'./{inside}')}")
    return ShellJob(command='git add --all && exec "$PROOFSTONE_HOOK"', reads={"PROOFSTONE_HOOK": program})


def _refusal(detail: str, artifact: str | None) -> Reason:
    return Reason(check=f"hook:{_BEFORE}", layer="cascade", verdict=Verdict.FAIL, detail=detail, artifact=artifact)
