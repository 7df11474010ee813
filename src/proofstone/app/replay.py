"""Build a `proofstone replay`: choose its commits, its settings and its services."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proofstone.app.check_base import read_settings_at
from proofstone.app.context import new_run_id, open_run_context, require_outside_home
from proofstone.check.context import CheckRequest, NullProgress
from proofstone.config.loader import load_settings
from proofstone.errors import InputError
from proofstone.git.repository import open_repository
from proofstone.machine.locks import lock_run
from proofstone.replay.history import HistorySelection, list_history, resolve_revision
from proofstone.replay.run import Replay, ReplayObserver


@dataclass(frozen=True)
class ReplayRequest:
    """What the user asked to replay."""

    selection: HistorySelection
    verify: tuple[str, ...] = ()
    settings_at: str | None = None
    """The revision whose settings decide; None for HEAD."""
    use_worktree_config: bool = False
    """Use the settings of the work tree, which may not be committed yet."""
    jobs: int | None = None
    """How many commits are checked at the same time; None for one per core."""
    no_cache: bool = False
    require_sandbox: bool = False


@contextmanager
def build_replay(
    directory: Path, request: ReplayRequest, observer: ReplayObserver, *, home: Path | None = None
) -> Iterator[Replay]:
    """Build the replay of commits of the repository that contains `directory`."""
    repository = open_repository(directory)
    if request.use_worktree_config and request.settings_at is not None:
        raise InputError("--use-worktree-config and --settings-at: choose one")
    revision = request.settings_at or "HEAD"
    if request.settings_at is not None:
        resolve_revision(repository, f"--settings-at {request.settings_at}", request.settings_at)
    commit, tree = repository.resolve_base(revision)
    own = request.use_worktree_config
    settings = load_settings(repository.root) if own else read_settings_at(repository, commit)
    commits = list_history(repository, request.selection)
    if not commits:
        raise InputError(
            f"there is no commit to replay: {request.selection}",
            hint="a commit is compared with its parent; `git log --oneline --first-parent` lists what there is",
        )
    home, run_id = require_outside_home(repository, home), new_run_id()
    with (
        lock_run(home, run_id, keep=False),
        open_run_context(
            repository,
            (commit, tree),
            settings,
            NullProgress(),
            home=home,
            run_id=run_id,
            require_sandbox=request.require_sandbox,
            own_settings=own,
        ) as context,
    ):
        yield Replay(
            context=context,
            commits=commits,
            selection=str(request.selection),
            settings="the settings of the work tree" if own else f"the settings of {revision} ({commit[:12]})",
            request=CheckRequest(verify=request.verify, no_cache=request.no_cache, use_worktree_config=own),
            jobs=request.jobs or os.cpu_count() or 1,
            observer=observer,
            is_fresh=request.no_cache,
        )
