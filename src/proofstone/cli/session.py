"""The export of a run to whoever collects them, at the end of every command that has agents work.

One sitting with agents who answer: `proofstone verify-plan`, `proofstone solve` and `proofstone run` watch a run to
its end, and
ask where they may. Whatever breaks it off, the person is told how to go on.
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
    """Around a run: it is named once it has begun, and exported when it is over, however it ended, if the person has
    set that up. That it cannot be is said before anything begins."""
    loud = replace(output, quiet=False)  # a complaint is no progress

    def complain(text: str) -> None:
        loud.progress().print(printable(text), style="yellow", soft_wrap=True)

    export = export_from_settings(complain)
    begun: list[str] = []
    try:
        yield begun.append
    finally:
        if export is not None and begun:
            sys.stdout.flush()  # the result first: a collector may take its time
            export.over(begun[-1])


OUT_OF_BUDGET: Final = 4


class _Agents(Protocol):
    @property
    def dispatcher(self) -> Dispatcher: ...


class Run(Protocol):
    """As much of an engine's run as every sitting needs."""

    @property
    def agents(self) -> _Agents: ...


Driven = TypeVar("Driven", bound=Run)
Came = TypeVar("Came")


@dataclass(frozen=True)
class AgentSitting:
    output: Output
    command: str
    """`verify-plan`."""
    resumes: str = ""
    """The command that goes on with a run, if it is not an option of its own: `proofstone resume`."""
    exports: bool = True
    """Whether the run goes to whoever collects the person's runs."""

    @property
    def asks(self) -> bool:
        """Whether a person can be asked here and now."""
        return sys.stdin.isatty() and not self.output.json

    @property
    def listen(self) -> Listen | None:
        return Terminal() if self.asks else None

    def loud(self) -> Console:
        """Also with `--quiet`: neither a question nor a complaint is progress."""
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
        """See the run through to its end, or to where the person leaves it, and tell what came of it; its exit code."""
        # Around all of it: whoever waits for a slow collector has read by then what came of the run.
        with exported(self.output) if self.exports else nullcontext(_unheard) as ran:
            return self._followed(begun, live, run_id, through, tell, ran)

    def _followed(
        self,
        begun: AbstractContextManager[Driven],
        live: AgentsAtWork,
        run_id: Callable[[Driven], str],
        through: Callable[[Driven], Came],
        tell: Callable[[Came], int],
        ran: Callable[[str], None],
    ) -> int:
        run: Driven | None = None
        try:
            with interruptions(), begun as run, live.showing():
                ran(run_id(run))
                live.allowance = run.agents.dispatcher.meter.budget.run
                came = through(run)
        except OutOfBudgetError as error:
            return self._out_of_budget(str(error), run_id(run) if run else "")
        except InputError:  # a provider that denies us, and the like: put right, it goes on
            if run is not None:
                self.complain(f"everything is kept; when that is put right, go on with: {self._go_on(run_id(run))}")
            raise
        except KeyboardInterrupt:
            if run is not None:
                sys.stderr.write(f"\neverything is kept; go on with: {self._go_on(run_id(run))}\n")
            raise
        return tell(came)

    def _out_of_budget(self, why: str, run_id: str) -> int:
        again = f"{self._go_on(run_id)} --budget …" if run_id else ""
        self.complain(f"{why}; everything is kept, go on with more: {again}")
        if self.output.json and run_id:
            self.output.document({"run_id": run_id, "outcome": "budget_exhausted", "reason": why})
        return OUT_OF_BUDGET

    def _go_on(self, run_id: str) -> str:
        return f"{self.resumes or f'proofstone {self.command} --resume'} {run_id}"


def _unheard(run_id: str) -> None:
    """Nobody collects it."""


def refuse_no_folder(option: str, file: Path) -> None:
    """Before anything begins: whoever waits for a run wants what it writes."""
    if not file.absolute().parent.is_dir():
        raise InputError(f"{option} {file}: there is no folder {file.parent}", hint="make it, or name another")
