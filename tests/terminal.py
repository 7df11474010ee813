"""A terminal for a program under test: a pseudo-terminal at which a person answers."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import PATIENCE
from tests.workshop import START, Workshop, command

_CONTROLLED = "import os; os.close(os.open(os.ttyname(0), os.O_RDWR)); "
"""The first terminal that the leader of a session opens is the one whose Ctrl-C reaches it."""


@dataclass(frozen=True)
class Session:
    """What came of a program in a terminal."""

    exit: int
    screen: str
    """Everything that the terminal showed, with what was typed."""


def run_in_terminal(
    workshop: Workshop,
    root: Path,
    *args: str,
    typed: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    program: Path | None = None,
) -> Session:
    """Run `proofstone` with these arguments in a terminal, by default that of this checkout. Each text is typed when
    what it answers has been shown since the last one."""
    person, other = pty.openpty()
    try:
        process = subprocess.Popen(
            [str(program), *args] if program else command(*args, start=_CONTROLLED + START),
            cwd=root,
            env={**workshop.environment, "TERM": "dumb", "COLUMNS": "200", **(env or {})},
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        screen, pending, seen = "", list((typed or {}).items()), 0
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = _read(person)
            if text is None:
                break
            screen += text
            if pending and pending[0][0] in screen[seen:]:
                seen = len(screen)
                os.write(person, pending.pop(0)[1].encode())
        else:
            process.kill()
        exit_code = process.wait(timeout=PATIENCE)
    finally:
        os.close(person)
    assert not pending, f"it never asked {pending[0][0]!r}:\n{screen}"
    return Session(exit_code, screen.replace("\r\n", "\n"))


def _read(terminal: int) -> str | None:
    """Return what the terminal shows next; None when the program has closed it."""
    ready, _, _ = select.select([terminal], [], [], 0.2)
    if not ready:
        return ""
    try:
        return os.read(terminal, 65536).decode("utf-8", "replace") or None
    except OSError:  # the last process that had the terminal open has ended
        return None
