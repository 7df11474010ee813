"""Checks while they run: a line each on a terminal, a line at the end of each elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofstone.contracts.report import CheckLine
from proofstone.contracts.verdict import Phase
from proofstone.surfaces.cli.text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_MARKS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "unverifiable": ("?", "yellow")}


@dataclass
class _Running:
    since: float
    said: str = ""


@dataclass
class LiveChecks:
    """Implements `engine.progress.Progress` for one console."""

    console: Console
    interactive: bool
    _running: dict[tuple[str, Phase], _Running] = field(default_factory=dict)
    _stage: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def step(self, text: str) -> None:
        self._stage = text
        if not self.interactive:
            self.console.print(f"{text} …")

    def started(self, check: str, phase: Phase) -> None:
        with self._lock:
            self._running[check, phase] = _Running(time.monotonic())

    def output(self, check: str, phase: Phase, data: bytes) -> None:
        if not self.interactive:
            return
        line = data[-500:].decode("utf-8", "replace").strip().rpartition("\n")[2]
        running = self._running.get((check, phase))
        if running is not None and line:
            running.said = printable(line).strip()

    def ended(self, check: str, phase: Phase, *, reused: bool) -> None:
        with self._lock:
            self._running.pop((check, phase), None)

    def judged(self, line: CheckLine) -> None:
        mark, style = _MARKS[line.verdict]
        told = f"{mark} {line.name}  {duration(line)}" + (f"  {line.reason}" if line.reason else "")
        self.console.print(printable(told), style=style, soft_wrap=True)

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Keep the lines of what runs at the bottom of the terminal."""
        if not self.interactive:
            yield
            return
        from rich.live import Live

        with Live(get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True):
            yield

    def _render(self) -> RenderableType:
        from rich.text import Text

        now = time.monotonic()
        with self._lock:
            running = sorted(self._running.items(), key=lambda item: item[1].since)
        text = Text(f"{self._stage} …\n" if self._stage and not running else "", style="dim")
        for (check, phase), state in running:
            on = "base" if phase is Phase.BASELINE else "change"
            text.append(f"  … {check} on the {on}  {now - state.since:.0f} s  ", style="cyan")
            text.append(f"{state.said[:60]}\n", style="dim")
        return text


def duration(line: CheckLine) -> str:
    """How long it took, or that it was known already."""
    if line.reused:
        return "known"
    return f"{line.duration_ms / 1000:.1f} s" if line.duration_ms else ""
