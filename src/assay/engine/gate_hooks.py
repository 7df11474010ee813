"""The repository's own commit hooks, run in the sandbox in the task's work tree before anything is frozen.

What a hook edits is part of the work from then on. A hook that says no is a failed check.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.adapters.executors import ShellJob
from assay.adapters.git.hooks import hooks_of
from assay.adapters.git.work_tree import WorkTree
from assay.contracts.gate import Reason
from assay.contracts.gate_record import TaskRecord
from assay.contracts.verdict import Verdict

if TYPE_CHECKING:
    from assay.engine.gate_execute import Execution

_BEFORE: Final = "pre-commit"


def run_hooks(execution: Execution, record: TaskRecord, place: WorkTree, scratch: Path) -> Reason | None:
    """Why a hook refuses the work, if one does."""
    world = execution.gate.world
    hooks = hooks_of(world.repository)
    if _BEFORE not in hooks.runnable or hooks.folder is None:
        return None
    program = hooks.folder / _BEFORE
    with world.artifacts.writer(world.settings.limits.output_mb << 20) as writer:
        shell = execution.shell(record, place, scratch, writer)
        done = shell(_job(program, world.repository.root, world.repository.common_dir))
        output = writer.finish()
    if done.exit_code == 0:
        return None
    how = f"exit code {done.exit_code}" if done.exit_code is not None else done.limit or done.setup_error or "no end"
    return Reason(
        check=f"hook:{_BEFORE}",
        layer="cascade",
        verdict=Verdict.FAIL,
        detail=f"the repository's {_BEFORE} hook refuses it ({how})",
        artifact=output.hash,
    )


def _job(program: Path, root: Path, git_dir: Path) -> ShellJob:
    """The hook looks at what is staged, as it would at a commit. One that lies in the work tree is run from there, for
    it may need its neighbours; one in the person's `.git` is handed in."""
    if program.is_relative_to(root) and not program.is_relative_to(git_dir):
        return ShellJob(command=f"git add --all && exec {shlex.quote(f'./{program.relative_to(root)}')}")
    return ShellJob(command='git add --all && exec "$ASSAY_HOOK"', reads={"ASSAY_HOOK": program})
