"""Runs one program of a trial and leaves nothing of it behind, whatever it starts and however the trial ends.

Not a sandbox: the supervisor that runs checks at the weakest level adopts every orphan, and ends with us.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofstone.adapters.sandbox.cgroup import make_group
from proofstone.adapters.sandbox.job import Execution, Job, Limits, Place, View
from proofstone.adapters.sandbox.process import launch

_SHELL: Final = ("/bin/sh", "-euc")
_MOST_OUTPUT: Final = 1 << 20
_MEMORY_MB, _PROCESSES = 4096, 1024


@dataclass(frozen=True)
class Done:
    code: int | None
    """None when it was ended: at its deadline, at a limit, or because the person left."""
    output: str

    @property
    def last_words(self) -> str:
        return self.output.strip().rpartition("\n")[2][:300]


@dataclass
class _Head:
    """The beginning of the output; a flood costs nothing."""

    data: bytearray = field(default_factory=bytearray)

    def write(self, data: bytes, /) -> None:
        self.data += data[: _MOST_OUTPUT - len(self.data)]


@dataclass(frozen=True)
class Errands:
    """Runs programs in one worker's folder until `stop` is set."""

    folder: Path
    stop: threading.Event

    def run(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        *,
        seconds: float,
        limited: bool = True,
        stop: threading.Event | None = None,
    ) -> Done:
        """To its end or its deadline. `limited`: with bounds on memory and processes, where there are groups."""
        folder = self.folder / f"errand-{secrets.token_hex(4)}"
        folder.mkdir(parents=True)
        group = make_group(_MEMORY_MB, _PROCESSES) if limited else None
        wanted = {
            "groups": group.procs if group else (),
            "confine": False,
            "layers": [],
            "argv": list(argv),
            "cwd": str(cwd),
            "env": dict(env),
        }
        job = Job(
            argv=tuple(argv),
            cwd=cwd,
            env=env,
            view=View(root=cwd, files=cwd),
            place=Place(root=cwd, report=folder, probes=folder, temporary=folder),
            scratch=folder,
            limits=Limits(seconds, _MEMORY_MB, _PROCESSES),
            cancel=stop or self.stop,
        )
        head = _Head()
        ended = launch(job, wanted, group, head)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        return Done(ended.exit_code, _words(ended, head))

    def shell(self, lines: str, cwd: Path, env: Mapping[str, str], *, seconds: float) -> Done:
        return self.run([*_SHELL, lines], cwd, env, seconds=seconds)

    @contextmanager
    def background(self, lines: str, cwd: Path, env: Mapping[str, str], *, seconds: float) -> Iterator[None]:
        """Lines that run until the block ends."""
        if not lines:
            yield
            return
        over = threading.Event()
        argv = [*_SHELL, lines]
        thread = threading.Thread(target=self.run, args=(argv, cwd, env), kwargs={"seconds": seconds, "stop": over})
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _words(ended: Execution, head: _Head) -> str:
    """What it said, and what ended it if it did not end by itself."""
    said = head.data.decode("utf-8", "replace")
    if ended.setup_error:
        return f"{said}\n{ended.setup_error}"
    if ended.timed_out:
        return f"{said}\nnot finished after {ended.duration_ms / 1000:.0f} s"
    return f"{said}\nended at {ended.limit}" if ended.limit else said
