"""The export of a run to whoever collects them, at the end of every command that has agents work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from proofstone.surfaces.cli.output import Output, printable
from proofstone.telemetry_app import export_from_settings


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
