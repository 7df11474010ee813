"""Find runs of any command in the ledger, and reopen them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from proofstone import __version__
from proofstone.app.context import opened_world, private_home, settings_at
from proofstone.check.context import Silent, World
from proofstone.errors import InputError
from proofstone.git.repository import open_repository, repository_around
from proofstone.ledger import Ledger
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import BegunSetup
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.query import KnownRun, meant, named, started_runs
from proofstone.machine.locks import held, is_held
from proofstone.runtime.run_index import BegunRun, Report, Setup, in_brief, setup_of_run


@contextmanager
def reopened(run_id: str, setup: BegunSetup, home: Path, *, require_sandbox: bool = False) -> Iterator[World]:
    """Open the context of a run as it was when it began, and lock the run meanwhile."""
    if setup.version != __version__:
        again = f"proofstone {setup.command} {setup.about}"
        raise InputError(
            f"{run_id} was started by Proofstone {setup.version}; this is {__version__}, which may decide differently",
            hint=f"use Proofstone {setup.version}, or start a new run with `{again}`",
        )
    repository = open_repository(Path(setup.repository))
    settings = settings_at(repository, setup.settings_commit or setup.base_commit)
    tree = repository.git.tree_of(setup.base_commit)
    with ExitStack() as stack:
        stack.enter_context(held(home, run_id))
        yield stack.enter_context(
            opened_world(
                repository,
                (setup.base_commit, tree),
                settings,
                Silent(),
                home=home,
                run_id=run_id,
                require_sandbox=require_sandbox,
                settings_commit=setup.settings_commit,
            )
        )


@dataclass(frozen=True)
class Runs(Generic[Setup, Report]):
    """The runs of one command: how to find them and show their results."""

    contract: type[Setup]
    last_report: Callable[[Ledger, str], Report | None]
    """Returns the newest report of a run, if there is one."""
    in_a_word: Callable[[Report], str]

    @property
    def command(self) -> str:
        return str(self.contract.model_fields["command"].default)

    def known(self, home: Path | None = None) -> tuple[KnownRun, ...]:
        """Return every run of the command, newest first."""
        path = ledger_path(private_home(home))
        return started_runs(path, self.command) if path.is_file() else ()

    def setup(self, run_id: str, home: Path | None = None) -> Setup:
        """Return what a run was started with."""
        with closing(open_ledger(private_home(home), "read")) as ledger:
            setup = setup_of_run(ledger, self.contract, run_id)
        if setup is None:
            raise InputError(
                f"{run_id}: is not a run of `proofstone {self.command}`", hint="`proofstone runs` lists them"
            )
        return setup

    def find(self, text: str, home: Path | None = None) -> str:
        """Return the id of the run that `text` means: a whole id, a unique beginning or end of one, or `last`. `last`
        is the last run of the current repository, or of all if there is none."""
        return run_of(self.command, text, on_their_own(text, self.known(home)))

    def named(self, text: str, home: Path | None = None) -> str | None:
        """Return the run that `text` names, by its whole id or a unique part of it; None if there is none."""
        matches = named(text, [run.run_id for run in self.known(home)])
        return matches[0] if len(matches) == 1 else None

    def views(self, home: Path | None = None, *, limit: int | None = None) -> list[BegunRun[Setup]]:
        """Return all runs that are not parts of others, newest first, at most `limit`."""
        run_ids = [run.run_id for run in self.known(home) if not run.parent][:limit]
        return [self.view(run_id, home) for run_id in run_ids]

    def view(self, run_id: str, home: Path | None = None) -> BegunRun[Setup]:
        home = private_home(home)
        setup = self.setup(run_id, home)
        with closing(open_ledger(home, "read")) as ledger:
            return in_brief(ledger, run_id, setup, running=is_held(home, run_id), came=self._describe_outcome)

    def report(self, run_id: str, home: Path | None = None) -> Report | None:
        """Return the newest report of a run; None if there is none yet."""
        with closing(open_ledger(private_home(home), "read")) as ledger:
            return self.last_report(ledger, run_id)

    def _describe_outcome(self, ledger: Ledger, run_id: str) -> str:
        report = self.last_report(ledger, run_id)
        return "" if report is None else self.in_a_word(report)


def on_their_own(text: str, runs: Sequence[KnownRun]) -> Sequence[KnownRun]:
    """Return the runs among which `text` is looked up. `last` never means a part of another run; an id may name any
    run."""
    return [run for run in runs if not run.parent] if text == "last" else runs


def run_of(command: str, text: str, runs: Sequence[KnownRun]) -> str:
    """Return the id of the run that `text` means. `runs` are sorted, newest first."""
    if not runs:
        argument = {"solve": '"GOAL"', "run": '"REQUEST"'}.get(command, "PLAN.md")
        raise InputError(
            f"there is no run of `proofstone {command}` yet", hint=f"`proofstone {command} {argument}` starts one"
        )
    hint = f"the last one is {runs[0].run_id}; `proofstone runs` lists them"
    return meant(text, runs, repository_around(Path.cwd()), f"run of `proofstone {command}`", hint)
