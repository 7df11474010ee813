"""Follow a run of agents at the terminal: show progress, ask questions, handle interruptions, and export the run.

`proofstone verify-plan`, `proofstone solve` and `proofstone run` use it. Whatever interrupts a run, the person is told
how to resume it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from proofstone.agents.dispatch import Dispatcher
from proofstone.agents.executors.people import Listen, Terminal
from proofstone.app.telemetry import export_from_settings
from proofstone.cli.output import Output
from proofstone.cli.process import interruptions
from proofstone.cli.render.live_agents import AgentsAtWork
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.runtime.context import OutOfBudgetError

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def exported(output: Output) -> Iterator[Callable[[str], None]]:
    """Export a run when the block ends, however it ended, if the person has set that up. The block passes the id of the
    run to the yielded function. If the export cannot work, warn before the run begins."""
    loud = replace(output, quiet=False)  # a warning is not progress

    def complain(text: str) -> None:
        loud.progress().print(printable(text), style="yellow", soft_wrap=True)

    export = export_from_settings(complain)
    run_ids: list[str] = []
    try:
        yield run_ids.append
    finally:
        if export is not None and run_ids:
            sys.stdout.flush()  # print the result first: a collector may be slow
            export.over(run_ids[-1])


OUT_OF_BUDGET: Final = 4


class _Agents(Protocol):
    @property
    def dispatcher(self) -> Dispatcher: ...


class Run(Protocol):
    """The part of a run that a session needs."""

    @property
    def agents(self) -> _Agents: ...


Driven = TypeVar("Driven", bound=Run)
Came = TypeVar("Came")


@dataclass(frozen=True)
class AgentSitting:
    """A session that follows a run of agents to its end."""

    output: Output
    command: str
    """The command, such as `verify-plan`."""
    resumes: str = ""
    """The command that resumes a run, if it is not `--resume` of the command itself: `proofstone resume`."""
    exports: bool = True
    """Whether the run is exported to the person's collector."""

    @property
    def asks(self) -> bool:
        """Whether the person can be asked at this terminal."""
        return sys.stdin.isatty() and not self.output.json

    @property
    def listen(self) -> Listen | None:
        return Terminal() if self.asks else None

    def loud(self) -> Console:
        """Return a console that prints even with `--quiet`, for questions and warnings."""
        return replace(self.output, quiet=False).progress()

    def complain(self, text: str) -> None:
        self.loud().print(printable(text), style="yellow", soft_wrap=True)

    def follow(
        self,
        begun: AbstractContextManager[Driven],
        live: AgentsAtWork,
        run_id: Callable[[Driven], str],
        through: Callable[[Driven], Came],
        tell: Callable[[Came], int],
    ) -> int:
        """Follow the run to its end, or until the person leaves it. Show its result and return the exit code."""
        # The export comes last: a person who waits for a slow collector has read the result by then.
        with exported(self.output) if self.exports else nullcontext(_ignore_run) as ran:
            return self._follow_run(begun, live, run_id, through, tell, ran)

    def _follow_run(
        self,
        opening: AbstractContextManager[Driven],
        live: AgentsAtWork,
        run_id: Callable[[Driven], str],
        through: Callable[[Driven], Came],
        tell: Callable[[Came], int],
        note_run: Callable[[str], None],
    ) -> int:
        run: Driven | None = None
        try:
            with interruptions(), opening as run, live.showing():
                note_run(run_id(run))
                live.allowance = run.agents.dispatcher.meter.budget.run
                result = through(run)
        except OutOfBudgetError as error:
            return self._out_of_budget(str(error), run_id(run) if run else "")
        except InputError:  # for instance a provider that denies access: the run can be resumed once that is fixed
            if run is not None:
                self.complain(f"nothing is lost; fix this, then resume with: {self._resume_command(run_id(run))}")
            raise
        except KeyboardInterrupt:
            if run is not None:
                sys.stderr.write(f"\nnothing is lost; resume with: {self._resume_command(run_id(run))}\n")
            raise
        return tell(result)

    def _out_of_budget(self, why: str, run_id: str) -> int:
        again = f"{self._resume_command(run_id)} --budget …" if run_id else ""
        self.complain(f"{why}; nothing is lost, resume with a larger budget: {again}")
        if self.output.json and run_id:
            self.output.document({"run_id": run_id, "outcome": "budget_exhausted", "reason": why})
        return OUT_OF_BUDGET

    def _resume_command(self, run_id: str) -> str:
        return f"{self.resumes or f'proofstone {self.command} --resume'} {run_id}"


def _ignore_run(run_id: str) -> None:
    """Do nothing: the run is not exported."""


def refuse_no_folder(option: str, file: Path) -> None:
    """Refuse a file in a missing folder before the run begins, so that its output is not lost at the end."""
    if not file.absolute().parent.is_dir():
        raise InputError(f"{option} {file}: there is no folder {file.parent}", hint="create it, or name another")
