"""What a program is seen doing is bounded, and nothing of it is lost, whichever thread sees it."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from proofstone.agents.backends.programs.activity import ActivityLog, KeyMask
from proofstone.agents.backends.programs.cli import CliBackend
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.known.claude import PRESET
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.models import Activity, ActivityKind
from proofstone.config.user import ProgramSettings
from proofstone.sandbox.job import SandboxResult
from tests.agents.backends.conversations import talk

REFUSED, TOOL, NOTE = ActivityKind.REFUSED, ActivityKind.TOOL, ActivityKind.NOTE
BACKEND = CliBackend(InstalledProgram("cli:claude", "claude", ("./program",), PRESET, ProgramSettings()))


def refusing(job: ShellCommand) -> SandboxResult:
    """A run in which the gateway keeps the program from a host."""
    thread = threading.Thread(target=job.on_refused, args=("evil.example:443",))
    thread.start()
    thread.join()
    if job.on_output:
        job.on_output(b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "hm"}]}}\n')
    return SandboxResult(1, 1)


def site(folder: Path, noted: list[Activity]) -> ExecutionContext:
    return ExecutionContext(folder, folder, refusing, on_activity=noted.append)


def test_everything_is_bounded_refusals_too(tmp_path: Path) -> None:
    noted: list[Activity] = []
    notes = ActivityLog(site(tmp_path, noted), KeyMask())
    for _ in range(600):
        notes.add(Activity(kind=TOOL, name="t"))
        notes.add(Activity(kind=REFUSED, name="r"))
    kinds = [one.kind for one in noted]
    assert (kinds.count(TOOL), kinds.count(REFUSED)) == (500, 500)
    assert [one.text for one in noted if one.kind is NOTE] == [
        "more than 500: only refusals from here on",
        "more than 500 refusals: no further ones from here on",
    ]


def test_what_other_threads_see_goes_on_record_in_the_thread_of_the_turn(tmp_path: Path) -> None:
    noted: list[Activity] = []
    threads: set[int] = set()

    def note(activity: Activity) -> None:
        threads.add(threading.get_ident())
        noted.append(activity)

    BACKEND.turn(talk(), replace(site(tmp_path, []), on_activity=note), 60)
    assert [(one.kind, one.text) for one in noted] == [
        (REFUSED, "a connection to evil.example:443, which is not allowed"),
        (ActivityKind.SAID, "hm"),
    ]
    assert threads == {threading.get_ident()}


def test_an_error_of_the_record_is_not_lost_in_another_thread(tmp_path: Path) -> None:
    def full(activity: Activity) -> None:
        if activity.kind is REFUSED:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        BACKEND.turn(talk(), replace(site(tmp_path, []), on_activity=full), 60)


def test_what_was_seen_last_is_noted_too(tmp_path: Path) -> None:
    noted: list[Activity] = []

    def run(job: ShellCommand) -> SandboxResult:
        job.on_refused("late.example:443")
        return SandboxResult(0, 1)

    BACKEND.turn(talk(), replace(site(tmp_path, noted), run=run), 60)
    assert [one.kind for one in noted] == [REFUSED]
