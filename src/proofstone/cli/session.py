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
from proofstone.agents.executors.people import ReadLine, Terminal
from proofstone.app.telemetry import configure_export
from proofstone.cli.output import Output
from proofstone.cli.process import unmask_interrupts
from proofstone.cli.render.live_agents import LiveAgents
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.runtime.context import OutOfBudgetError

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def export_on_exit(output: Output) -> Iterator[Callable[[str], None]]:
    """Export a run when the block ends, however it ended, if the person has set that up. The block passes the id of the
    run to the yielded function. If the export cannot work, warn before the run begins."""
    loud = replace(output, quiet=False)  # a warning is not progress

    def complain(text: str) -> None:
        loud.progress_console().print(escape_control(text), style="yellow", soft_wrap=True)

    export = configure_export(complain)
    run_ids: list[str] = []
    try:
        yield run_ids.append
    finally:
        if export is not None and run_ids:
            sys.stdout.flush()  # print the result first: a collector may be slow
            export.send_run(run_ids[-1])


EXIT_OUT_OF_BUDGET: Final = 4


class _Agents(Protocol):
    @property
    def dispatcher(self) -> Dispatcher: ...


class AgentRun(Protocol):
    """The part of a run that a session needs."""

    @property
    def agents(self) -> _Agents: ...


RunT = TypeVar("RunT", bound=AgentRun)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class AgentRunSession:
    """A session that follows a run of agents to its end."""

    output: Output
    command: str
    """The command, such as `verify-plan`."""
    resume_prefix: str = ""
    """The command that resumes a run, if it is not `--resume` of the command itself: `proofstone resume`."""
    is_exported: bool = True
    """Whether the run is exported to the person's collector."""

    @property
    def can_ask(self) -> bool:
        """Whether the person can be asked at this terminal."""
        return sys.stdin.isatty() and not self.output.json

    @property
    def listen(self) -> ReadLine | None:
        return Terminal() if self.can_ask else None

    def question_console(self) -> Console:
        """Return a console that prints even with `--quiet`, for questions and warnings."""
        return replace(self.output, quiet=False).progress_console()

    def warn(self, text: str) -> None:
        self.question_console().print(escape_control(text), style="yellow", soft_wrap=True)

    def follow(
        self,
        begun: AbstractContextManager[RunT],
        live: LiveAgents,
        run_id: Callable[[RunT], str],
        through: Callable[[RunT], ResultT],
        tell: Callable[[ResultT], int],
    ) -> int:
        """Follow the run to its end, or until the person leaves it. Show its result and return the exit code."""
        # The export comes last: a person who waits for a slow collector has read the result by then.
        with export_on_exit(self.output) if self.is_exported else nullcontext(_ignore_run) as ran:
            return self._follow_run(begun, live, run_id, through, tell, ran)

    def _follow_run(
        self,
        opening: AbstractContextManager[RunT],
        live: LiveAgents,
        run_id: Callable[[RunT], str],
        through: Callable[[RunT], ResultT],
        tell: Callable[[ResultT], int],
        note_run: Callable[[str], None],
    ) -> int:
        run: RunT | None = None
        try:
            with unmask_interrupts(), opening as run, live.show_live():
                note_run(run_id(run))
                live.allowance = run.agents.dispatcher.meter.budget.run
                result = through(run)
        except OutOfBudgetError as error:
            return self._out_of_budget(str(error), run_id(run) if run else "")
        except InputError:  # for instance a provider that denies access: the run can be resumed once that is fixed
            if run is not None:
                self.warn(f"nothing is lost; fix this, then resume with: {self._resume_command(run_id(run))}")
            raise
        except KeyboardInterrupt:
            if run is not None:
                sys.stderr.write(f"\nnothing is lost; resume with: {self._resume_command(run_id(run))}\n")
            raise
        return tell(result)

    def _out_of_budget(self, why: str, run_id: str) -> int:
        again = f"{self._resume_command(run_id)} --budget …" if run_id else ""
        self.warn(f"{why}; nothing is lost, resume with a larger budget: {again}")
        if self.output.json and run_id:
            self.output.print_document({"run_id": run_id, "outcome": "budget_exhausted", "reason": why})
        return EXIT_OUT_OF_BUDGET

    def _resume_command(self, run_id: str) -> str:
        return f"{self.resume_prefix or f'proofstone {self.command} --resume'} {run_id}"


def _ignore_run(run_id: str) -> None:
    """Do nothing: the run is not exported."""


def refuse_missing_folder(option: str, file: Path) -> None:
    """Refuse a file in a missing folder before the run begins, so that its output is not lost at the end."""
    if not file.absolute().parent.is_dir():
        raise InputError(f"{option} {file}: there is no folder {file.parent}", hint="create it, or name another")
