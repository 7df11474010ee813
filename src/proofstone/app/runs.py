"""Find runs of any command in the ledger, and reopen them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic

from pydantic import ValidationError

from proofstone import __version__
from proofstone.app.check_base import read_settings_at
from proofstone.app.context import ensure_private_home, open_run_context, open_writable_ledger
from proofstone.check.context import NullProgress, RunContext
from proofstone.errors import InputError, LedgerCorruptError
from proofstone.git.repository import find_repository_root, open_repository
from proofstone.ledger import Ledger
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow, RunConfig
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.query import RunReference, list_started_runs, match_ids, resolve_run
from proofstone.machine.locks import find_lock_holder, is_run_locked, lock_run
from proofstone.runtime.run_index import (
    CANCELLED_OUTCOME,
    Report,
    RunConfigT,
    RunSummary,
    read_run_config,
    read_run_end,
    summarize_run,
)

_LAST: Final = "last"
_FINAL_OUTCOMES: Final = ("passed", "failed", "unverifiable", CANCELLED_OUTCOME)
"""The outcomes of runs that nobody can resume."""
_HOW_TO_START: Final = (
    "start one: `proofstone check`, `proofstone gate PLAN.md`, `proofstone verify-plan PLAN.md`, "
    '`proofstone solve "GOAL"` or `proofstone run "REQUEST"`'
)
_HOW_TO_START_RESUMABLE: Final = _HOW_TO_START.replace("`proofstone check`, ", "")
_STOP_SECONDS: Final = 60.0
_STOP_PAUSE: Final = 0.1


@contextmanager
def reopen_run(run_id: str, setup: RunConfig, home: Path, *, require_sandbox: bool = False) -> Iterator[RunContext]:
    """Open the context of a run as it was when it began, and lock the run meanwhile."""
    if setup.version != __version__:
        again = f"proofstone {setup.command} {setup.subject}"
        raise InputError(
            f"{run_id} was started by Proofstone {setup.version}; this is {__version__}, which may decide differently",
            hint=f"use Proofstone {setup.version}, or start a new run with `{again}`",
        )
    refuse_cancelled(run_id, home)
    repository = open_repository(Path(setup.repository))
    settings = read_settings_at(repository, setup.settings_commit or setup.base_commit)
    tree = repository.git.find_tree(setup.base_commit)
    with ExitStack() as stack:
        stack.enter_context(lock_run(home, run_id))
        yield stack.enter_context(
            open_run_context(
                repository,
                (setup.base_commit, tree),
                settings,
                NullProgress(),
                home=home,
                run_id=run_id,
                require_sandbox=require_sandbox,
                settings_commit=setup.settings_commit,
            )
        )


@contextmanager
def name_unreadable_run(run_id: str) -> Iterator[None]:
    """Raise a LedgerCorruptError that names the run if one of its rows has not the form that it should have."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LedgerCorruptError(
            f"{run_id}: a row of this run cannot be read ({error.title}, {where}: {first['msg']}); "
            "another version of Proofstone wrote it, or it was changed",
            hint="`proofstone ledger verify --full` finds rows that were changed",
        ) from error


@dataclass(frozen=True)
class RunCatalog(Generic[RunConfigT, Report]):
    """The runs of one command: how to find them and show their results."""

    setup_model: type[RunConfigT]
    last_report: Callable[[Ledger, str], Report | None]
    """Returns the newest report of a run, if there is one."""
    describe_outcome: Callable[[Report], str]

    @property
    def command(self) -> str:
        return str(self.setup_model.model_fields["command"].default)

    def list_started(self, home: Path | None = None) -> tuple[RunReference, ...]:
        """Return every run of the command, newest first."""
        path = ledger_path(ensure_private_home(home))
        return list_started_runs(path, (self.command,)) if path.is_file() else ()

    def read_setup(self, run_id: str, home: Path | None = None) -> RunConfigT:
        """Return what a run was started with."""
        with name_unreadable_run(run_id), closing(open_ledger(ensure_private_home(home), "read")) as ledger:
            setup = read_run_config(ledger, self.setup_model, run_id)
        if setup is None:
            raise InputError(
                f"{run_id}: is not a run of `proofstone {self.command}`", hint="`proofstone runs` lists them"
            )
        return setup

    def find(self, text: str, home: Path | None = None) -> str:
        """Return the id of the run that `text` means: a whole id, a unique beginning or end of one, or `last`. `last`
        is the last run of the current repository, or of all if there is none."""
        return resolve_run_id(self.command, text, select_runs(text, self.list_started(home)))

    def find_named(self, text: str, home: Path | None = None) -> str | None:
        """Return the run that `text` names, by its whole id or a unique part of it; None if there is none."""
        matches = match_ids(text, [run.run_id for run in self.list_started(home)])
        return matches[0] if len(matches) == 1 else None

    def list_views(self, home: Path | None = None, *, limit: int | None = None) -> list[RunSummary[RunConfigT]]:
        """Return all runs that are not parts of others, newest first, at most `limit`."""
        run_ids = [run.run_id for run in self.list_started(home) if not run.parent][:limit]
        return [self.read_view(run_id, home) for run_id in run_ids]

    def read_view(self, run_id: str, home: Path | None = None) -> RunSummary[RunConfigT]:
        """Return a summary of a run."""
        with name_unreadable_run(run_id):
            return self._load_view(run_id, ensure_private_home(home))

    def read_report(self, run_id: str, home: Path | None = None) -> Report | None:
        """Return the newest report of a run; None if there is none yet."""
        with name_unreadable_run(run_id):
            return self._load_report(run_id, ensure_private_home(home))

    def _load_view(self, run_id: str, home: Path) -> RunSummary[RunConfigT]:
        setup = self.read_setup(run_id, home)
        with closing(open_ledger(home, "read")) as ledger:
            return summarize_run(
                ledger, run_id, setup, running=is_run_locked(home, run_id), read_outcome=self._describe_outcome
            )

    def _load_report(self, run_id: str, home: Path) -> Report | None:
        with closing(open_ledger(home, "read")) as ledger:
            return self.last_report(ledger, run_id)

    def _describe_outcome(self, ledger: Ledger, run_id: str) -> str:
        report = self.last_report(ledger, run_id)
        return "" if report is None else self.describe_outcome(report)


def list_recent_runs(
    commands: Collection[str], limit: int, repository: Path | None = None, home: Path | None = None
) -> list[RunReference]:
    """Return the newest runs of these commands that are not parts of others, at most `limit`."""
    path = ledger_path(ensure_private_home(home))
    where = None if repository is None else str(repository)
    return list(list_started_runs(path, commands, whole=True, repository=where, limit=limit)) if path.is_file() else []


def find_started_run(text: str, commands: Collection[str], home: Path | None = None) -> RunReference:
    """Return the run of one of these commands that `text` means: a whole id, a unique beginning or end of one, or
    `last`. `last` is the last run of the current repository, and never a part of another run."""
    path = ledger_path(ensure_private_home(home))
    here = find_repository_root(Path.cwd())
    runs: Sequence[RunReference] = (
        list_started_runs(path, commands, whole=text == _LAST, limit=1) if path.is_file() else ()
    )
    if not runs:
        if "check" in commands:
            raise InputError("there is no run yet", hint=_HOW_TO_START)
        raise InputError("there is no run that can be continued yet", hint=_HOW_TO_START_RESUMABLE)
    if text != _LAST:
        runs = list_started_runs(path, commands, matching=text)
    elif here is not None:
        runs = (*runs, *list_started_runs(path, commands, whole=True, repository=str(here), limit=1))
    by_id = {run.run_id: run for run in runs}
    if text != _LAST:
        matches = match_ids(text, by_id)
        wholes = [run_id for run_id in matches if by_id[run_id].parent not in matches]
        runs = [by_id[run_id] for run_id in wholes]
    return by_id[resolve_run(text, runs, here, "run", "`proofstone runs` lists them")]


def select_runs(text: str, runs: Sequence[RunReference]) -> Sequence[RunReference]:
    """Return the runs among which `text` is looked up. `last` never means a part of another run; an id may name any
    run."""
    return [run for run in runs if not run.parent] if text == _LAST else runs


def resolve_run_id(command: str, text: str, runs: Sequence[RunReference]) -> str:
    """Return the id of the run that `text` means. `runs` are sorted, newest first."""
    if not runs:
        argument = {"solve": '"GOAL"', "run": '"REQUEST"'}.get(command, "PLAN.md")
        raise InputError(
            f"there is no run of `proofstone {command}` yet", hint=f"`proofstone {command} {argument}` starts one"
        )
    hint = f"the last one is {runs[0].run_id}; `proofstone runs` lists them"
    return resolve_run(text, runs, find_repository_root(Path.cwd()), f"run of `proofstone {command}`", hint)


def refuse_cancelled(run_id: str, home: Path) -> None:
    """Refuse to go on with a run that a person has cancelled."""
    with closing(open_ledger(home, "read")) as ledger:
        outcome, reason = read_run_end(ledger, run_id)
    if outcome == CANCELLED_OUTCOME:
        raise InputError(f"{run_id} was {reason}", hint="start a new run; the ledger keeps the record of this one")


def cancel_run(run: RunReference, by: str, reason: str, home: Path | None = None) -> str:
    """Cancel a run: stop the process that works on it, if there is one, and record that it ends here. Return what was
    done. Work that was committed stays."""
    home = ensure_private_home(home)
    if run.parent:
        raise InputError(f"{run.run_id} is a part of {run.parent}", hint=f"proofstone cancel {run.parent}")
    holder = find_lock_holder(home, run.run_id)
    if holder is not None:
        _stop_process(holder, run.run_id, home)
    with open_writable_ledger(home) as ledger, lock_run(home, run.run_id, keep=False):
        outcome, _ = read_run_end(ledger, run.run_id)
        if outcome in _FINAL_OUTCOMES:
            raise InputError(f"{run.run_id} has ended already: {outcome}", hint=f"see `proofstone status {run.run_id}`")
        why = f"cancelled by {by}" + (f": {reason}" if reason else "")
        ledger.append(
            EventRow(run_id=run.run_id, type="run.finished", payload={"outcome": CANCELLED_OUTCOME, "reason": why})
        )
    return "stopped and cancelled" if holder is not None else CANCELLED_OUTCOME


def _stop_process(process: int, run_id: str, home: Path) -> None:
    """Ask a process to stop, and wait until it has saved its work and released the run."""
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise InputError(
            f"{run_id}: process {process} works on it, and it is not yours", hint="ask its owner to cancel the run"
        ) from error
    deadline = time.monotonic() + _STOP_SECONDS
    while is_run_locked(home, run_id):
        if time.monotonic() > deadline:
            raise InputError(
                f"{run_id}: process {process} has not stopped after {_STOP_SECONDS:g} s",
                hint="try again; the run can be cancelled as soon as that process has ended",
            )
        time.sleep(_STOP_PAUSE)
