"""A run that was begun before, opened again: whichever command has begun it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from assay import __version__
from assay.adapters.git.repository import open_repository, repository_around
from assay.adapters.ledger.runs import KnownRun, meant
from assay.adapters.run_lock import held
from assay.app import opened_world, settings_at
from assay.engine.progress import Silent
from assay.engine.world import World
from assay.errors import InputError


class Begun(Protocol):
    """What a run was started with, as far as every command says it."""

    @property
    def command(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def repository(self) -> str: ...

    @property
    def base_commit(self) -> str: ...

    @property
    def settings_commit(self) -> str:
        """Whose settings decide, if it is not the base."""
        ...

    @property
    def plan_path(self) -> str: ...


@contextmanager
def reopened(run_id: str, setup: Begun, home: Path, *, require_sandbox: bool = False) -> Iterator[World]:
    """The world of the run, as it was when it began; nobody else drives it meanwhile."""
    if setup.version != __version__:
        again = f"assay {setup.command} {setup.plan_path}"
        raise InputError(
            f"{run_id} was started by Assay {setup.version}; this is {__version__}, which may decide otherwise",
            hint=f"use Assay {setup.version} for it, or start anew with `{again}`",
        )
    repository = open_repository(Path(setup.repository))
    settings = settings_at(repository, setup.settings_commit or setup.base_commit)
    tree = repository.git.line("rev-parse", f"{setup.base_commit}^{{tree}}")
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
            )
        )


class Part(Begun, Protocol):
    @property
    def parent(self) -> str: ...


_Part = TypeVar("_Part", bound=Part)


def on_their_own(text: str, runs: Mapping[str, _Part]) -> Mapping[str, _Part]:
    """The runs among which `last` is looked for: none that is a part of another. By its id any can be named."""
    return {id: setup for id, setup in runs.items() if not setup.parent} if text == "last" else runs


def run_of(command: str, text: str, runs: Mapping[str, Begun]) -> str:
    """The id of the run that is meant: whole, its beginning or its end if that is unique, or `last`: of the repository
    that one stands in, or of all if one stands in none. The newest come first."""
    if not runs:
        what = {"solve": '"GOAL"', "run": '"REQUEST"'}.get(command, "PLAN.md")
        raise InputError(f"there is no run of `assay {command}` yet", hint=f"`assay {command} {what}` starts one")
    known = [KnownRun(id, setup.repository) for id, setup in runs.items()]
    otherwise = f"the last one is {known[0].run_id}; `assay runs` lists them"
    return meant(text, known, repository_around(Path.cwd()), f"run of `assay {command}`", otherwise)
