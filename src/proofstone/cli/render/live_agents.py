"""Show agents while they work: a line for each event, and on a terminal a row for each agent.

There is no row while no agent works: a person may be asked then, and rows would overwrite what they type. The views of
the commands are subclasses, which print the events of their own agents.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.agents.rules.budget import summarize_spending
from proofstone.common.models import Allowance, BudgetUsage
from proofstone.common.text import escape_control
from proofstone.documents.markdown import make_visible
from proofstone.plans.fields import shorten_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


_MAX_TEXT: Final = 60
_PERSON: Final = "human"


@dataclass(eq=False)
class _ActiveAgent:
    """An agent at work."""

    agent: str
    since: float
    doing: str = ""


@dataclass
class LiveAgents:
    """A view for one console. Several threads may call it at once."""

    console: Console
    interactive: bool
    allowance: Allowance = field(default_factory=Allowance)
    """What the run may spend, as far as that is limited."""
    verbose: bool = True
    """Whether every step is printed, with the figures of the controller."""
    _spent: BudgetUsage = field(default_factory=BudgetUsage)
    _active: list[_ActiveAgent] = field(default_factory=list)
    """The agents in the order in which they began. Of agents with the same name, the first to begin is assumed to
    answer first."""
    _print_lock: threading.Lock = field(default_factory=threading.Lock)
    """Keeps lines in order, and protects showing and removing rows."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Protects what the rows show. It is never held while printing, because rows are drawn under the console's own
    lock."""
    _rows: Live | None = None

    def on_agent_started(self, agent: str, about: str = "") -> None:
        with self._print_lock:
            with self._lock:
                self._active.append(_ActiveAgent(agent, time.monotonic(), shorten_text(about, _MAX_TEXT)))
            self._show_rows()

    def on_activity(self, agent: str, line: str) -> None:
        with self._lock:
            for active in self._find_agents(agent)[-1:]:
                active.doing = line

    def on_message(self, agent: str, line: str) -> None:
        with self._print_lock:
            self._print(f"  {make_visible(agent)}: {line}", "cyan")

    def on_agent_ended(self, agent: str, said: str, *, failed: bool) -> None:
        with self._print_lock:
            with self._lock:
                for active in self._find_agents(agent)[:1]:
                    self._active.remove(active)
                is_idle = not self._active
            if is_idle:
                self._remove_rows()
            line = f"  {'✗' if failed else '✓'} {make_visible(agent)}  {make_visible(said)}"
            self._print(line.rstrip(), "red" if failed else "")

    def on_spending(self, spent: BudgetUsage) -> None:
        with self._lock:
            self._spent = spent

    @contextmanager
    def show_live(self) -> Iterator[None]:
        """Remove the rows at the end of the block, however it ends."""
        try:
            yield
        finally:
            with self._print_lock:
                self._remove_rows()

    def _note_backends(self, specs: Iterable[str]) -> None:
        """Show no rows if a person serves a role: rows would overwrite what they type."""
        if any(_PERSON in spec for spec in specs):
            self.interactive = False

    def _find_agents(self, agent: str) -> list[_ActiveAgent]:
        return [active for active in self._active if active.agent == agent]

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(escape_control(text), style=style, soft_wrap=True)

    def _show_rows(self) -> None:
        if not self.interactive or self._rows is not None:
            return
        from rich.live import Live

        self._rows = Live(get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True)
        self._rows.start()

    def _remove_rows(self) -> None:
        if self._rows is not None:
            self._rows.stop()
            self._rows = None

    def _render(self) -> RenderableType:
        from rich.text import Text

        text = Text()
        now = time.monotonic()
        with self._lock:
            for active in self._active:
                text.append(f"  {make_visible(active.agent)} ", style="cyan")
                text.append(f"{now - active.since:.0f} s  ")
                shown = make_visible(active.doing)
                text.append(f"{shown if len(shown) <= _MAX_TEXT else '…' + shown[-_MAX_TEXT:]}\n", style="dim")
            text.append(f"  {summarize_spending(self._spent, self.allowance)}", style="dim")
        return text
