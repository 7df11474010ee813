"""A run that was begun before, opened again: whichever command has begun it."""

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
    """The world of the run, as it was when it began; nobody else drives it meanwhile."""
    if setup.version != __version__:
        again = f"proofstone {setup.command} {setup.about}"
        raise InputError(
            f"{run_id} was started by Proofstone {setup.version}; this is {__version__}, which may decide otherwise",
            hint=f"use Proofstone {setup.version} for it, or start anew with `{again}`",
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
    """The runs of one command, wherever they stand: how they are found, told and shown."""

    contract: type[Setup]
    last_report: Callable[[Ledger, str], Report | None]
    """What came of a run, as far as it came to that."""
    in_a_word: Callable[[Report], str]

    @property
    def command(self) -> str:
        return str(self.contract.model_fields["command"].default)

    def known(self, home: Path | None = None) -> tuple[KnownRun, ...]:
        """Each of them, newest first."""
        path = ledger_path(private_home(home))
        return started_runs(path, self.command) if path.is_file() else ()

    def setup(self, run_id: str, home: Path | None = None) -> Setup:
        """What it was started with."""
        with closing(open_ledger(private_home(home), "read")) as ledger:
            found = setup_of_run(ledger, self.contract, run_id)
        if found is None:
            raise InputError(f"{run_id}: is no run of `proofstone {self.command}`", hint="`proofstone runs` lists them")
        return found

    def find(self, text: str, home: Path | None = None) -> str:
        """The id of the run that is meant: whole, its beginning or its end if that is unique, or `last`: of the
        repository that one stands in, or of all if one stands in none."""
        return run_of(self.command, text, on_their_own(text, self.known(home)))

    def named(self, text: str, home: Path | None = None) -> str | None:
        """The run that is named, whole or by a part that no other has; None: none is."""
        found = named(text, [run.run_id for run in self.known(home)])
        return found[0] if len(found) == 1 else None

    def views(self, home: Path | None = None, *, limit: int | None = None) -> list[BegunRun[Setup]]:
        """All but those that are parts of others, newest first; so many at most."""
        own = [run.run_id for run in self.known(home) if not run.parent][:limit]
        return [self.view(run_id, home) for run_id in own]

    def view(self, run_id: str, home: Path | None = None) -> BegunRun[Setup]:
        home = private_home(home)
        setup = self.setup(run_id, home)
        with closing(open_ledger(home, "read")) as ledger:
            return in_brief(ledger, run_id, setup, running=is_held(home, run_id), came=self._came)

    def report(self, run_id: str, home: Path | None = None) -> Report | None:
        """What came of a run; None: nothing yet."""
        with closing(open_ledger(private_home(home), "read")) as ledger:
            return self.last_report(ledger, run_id)

    def _came(self, ledger: Ledger, run_id: str) -> str:
        report = self.last_report(ledger, run_id)
        return "" if report is None else self.in_a_word(report)


def on_their_own(text: str, runs: Sequence[KnownRun]) -> Sequence[KnownRun]:
    """The runs among which `last` is looked for: none that is a part of another. By its id any can be named."""
    return [run for run in runs if not run.parent] if text == "last" else runs


def run_of(command: str, text: str, runs: Sequence[KnownRun]) -> str:
    """The newest come first."""
    if not runs:
        what = {"solve": '"GOAL"', "run": '"REQUEST"'}.get(command, "PLAN.md")
        raise InputError(
            f"there is no run of `proofstone {command}` yet", hint=f"`proofstone {command} {what}` starts one"
        )
    otherwise = f"the last one is {runs[0].run_id}; `proofstone runs` lists them"
    return meant(text, runs, repository_around(Path.cwd()), f"run of `proofstone {command}`", otherwise)
