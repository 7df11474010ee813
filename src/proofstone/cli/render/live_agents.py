"""Agents while they work: a line for whatever they come to, and on a terminal a row for each of them.

There is no row while nobody works: a person may be asked then, and rows would wipe away what is being typed. What the
agents of one command come to is told by its own view, which is one of these.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.agents.rules.budget import summary
from proofstone.common.models import Allowance, Spent
from proofstone.common.text import printable
from proofstone.documents.markdown import visible
from proofstone.plans.fields import shortened

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


_SHOWN: Final = 60
_PERSON: Final = "human"


@dataclass(eq=False)
class _Working:
    """An agent at work."""

    agent: str
    since: float
    doing: str = ""


@dataclass
class AgentsAtWork:
    """For one console. May be told from several threads at once."""

    console: Console
    interactive: bool
    allowance: Allowance = field(default_factory=Allowance)
    """What the run may spend, as far as that is limited."""
    _spent: Spent = field(default_factory=Spent)
    _working: list[_Working] = field(default_factory=list)
    """In the order in which they began. Of those of one name, whoever began first is taken to answer first."""
    _telling: threading.Lock = field(default_factory=threading.Lock)
    """Lines appear in order, and rows are shown and put away one at a time."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Of what the rows show. Never held while printing: rows are drawn under the console's own lock."""
    _rows: Live | None = None

    def asked(self, agent: str, about: str = "") -> None:
        with self._telling:
            with self._lock:
                self._working.append(_Working(agent, time.monotonic(), shortened(about, _SHOWN)))
            self._show()

    def doing(self, agent: str, line: str) -> None:
        with self._lock:
            for working in self._of(agent)[-1:]:
                working.doing = line

    def said(self, agent: str, line: str) -> None:
        with self._telling:
            self._print(f"  {visible(agent)}: {line}", "cyan")

    def answered(self, agent: str, said: str, *, failed: bool) -> None:
        with self._telling:
            with self._lock:
                for working in self._of(agent)[:1]:
                    self._working.remove(working)
                nobody = not self._working
            if nobody:
                self._put_away()
            line = f"  {'✗' if failed else '✓'} {visible(agent)}  {visible(said)}"
            self._print(line.rstrip(), "red" if failed else "")

    def spending(self, spent: Spent) -> None:
        with self._lock:
            self._spent = spent

    @contextmanager
    def showing(self) -> Iterator[None]:
        """However this ends, no row is left behind."""
        try:
            yield
        finally:
            with self._telling:
                self._put_away()

    def _served(self, by: Iterable[str]) -> None:
        """Who serves them. A person types here, and rows would wipe it away."""
        if any(_PERSON in item for item in by):
            self.interactive = False

    def _of(self, agent: str) -> list[_Working]:
        return [item for item in self._working if item.agent == agent]

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(printable(text), style=style, soft_wrap=True)

    def _show(self) -> None:
        if not self.interactive or self._rows is not None:
            return
        from rich.live import Live

        self._rows = Live(get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True)
        self._rows.start()

    def _put_away(self) -> None:
        if self._rows is not None:
            self._rows.stop()
            self._rows = None

    def _render(self) -> RenderableType:
        from rich.text import Text

        text = Text()
        now = time.monotonic()
        with self._lock:
            for working in self._working:
                text.append(f"  {visible(working.agent)} ", style="cyan")
                text.append(f"{now - working.since:.0f} s  ")
                shown = visible(working.doing)
                text.append(f"{shown if len(shown) <= _SHOWN else '…' + shown[-_SHOWN:]}\n", style="dim")
            text.append(f"  {summary(self._spent, self.allowance)}", style="dim")
        return text
