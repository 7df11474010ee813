"""Run one process to its end, its deadline or its limit, and leave nothing behind.

Output goes to the sink as it arrives; nothing is collected here, so a flood of output costs no memory. The process
leads its own session. Ending it ends everything that it started: through its pid namespace, its control group, or
(without either) the supervisor in `launcher.py`, which adopts every orphan.
"""

from __future__ import annotations

import marshal
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from proofstone.sandbox.job import OutputSink, SandboxJob, SandboxResult
from proofstone.sandbox.limits import ControlGroup, LimitWatch

_LAUNCHER = "import sys; sys.path.append(sys.argv.pop(1)); import launcher; launcher."
SETUP_FAILED_CODE = 125
"""The exit code of the launcher when the sandbox could not be set up; its last line says why."""
_CHUNK = 1 << 20
_TICK = 0.1
_PIPE_SECONDS = 0.3
"""Seconds to wait for output that is still in the pipe after the process has ended."""


def build_launcher_command(function: str) -> list[str]:
    """Return the command that calls this function of `launcher.py`.

    The module is imported, because Python would compile a script in every run.
    """
    return [sys.executable, "-I", "-S", "-c", f"{_LAUNCHER}{function}()", str(Path(__file__).parent)]


def run_launcher(
    job: SandboxJob, launcher_spec: dict[str, Any], group: ControlGroup | None, sink: OutputSink
) -> SandboxResult:
    """Run the launcher with this spec until the job ends."""
    started = time.monotonic()
    spec_file, setup_log = job.scratch / "spec", job.scratch / "setup.log"
    spec_file.write_bytes(marshal.dumps(launcher_spec))
    with setup_log.open("wb") as log:
        process = subprocess.Popen(
            [*build_launcher_command("main"), str(spec_file), str(log.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL if job.stdin is None else job.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_launcher_environment(job.env),
            start_new_session=True,
            pass_fds=(log.fileno(),),
        )
    ended_by = exceeded = ""
    output = _Output(job, sink)
    try:
        ended_by = _drain(process, job, output, started, group)
        exceeded = group.describe_exceeded() if group else ""
    finally:
        _end_process(process, group)
        output.end()
    duration = round((time.monotonic() - started) * 1000)
    if ended_by == "deadline":
        return SandboxResult(None, duration, timed_out=True)
    if ended_by == "silence":
        return SandboxResult(None, duration, timed_out=True, limit=f"{job.limits.idle_seconds:g} s without any output")
    if ended_by == "cancel":
        return SandboxResult(None, duration, cancelled=True)
    if ended_by == "enough":
        return SandboxResult(None, duration, was_stopped=True)
    limit = ended_by or exceeded
    setup_output = setup_log.read_text("utf-8", "replace").strip()
    if process.returncode == SETUP_FAILED_CODE and setup_output:
        return SandboxResult(None, duration, setup_error=setup_output.splitlines()[-1])
    return SandboxResult(None if limit else process.returncode, duration, limit=limit)


def _launcher_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the launcher's environment. The launcher is our own program; only the check gets the check's variables."""
    return {"PATH": env.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}


class _Output:
    """Passes output on, with the job's secrets masked: nothing unmasked leaves this module."""

    def __init__(self, job: SandboxJob, sink: OutputSink) -> None:
        self._job = job
        self._sink = sink
        self._stream = job.mask.open_stream()

    def add(self, data: bytes) -> None:
        self._pass_on(self._stream.add(data))

    def end(self) -> None:
        self._pass_on(self._stream.end())

    def _pass_on(self, data: bytes) -> None:
        if not data:
            return
        self._sink.write(data)
        if self._job.on_output:
            self._job.on_output(data)


def _drain(
    process: subprocess.Popen[bytes], job: SandboxJob, output: _Output, started: float, group: ControlGroup | None
) -> str:
    """Pass output on until the process has ended. Return what ended it, if the engine did."""
    if process.stdout is None:
        raise AssertionError("the launcher is always started with a pipe")
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    folders = [job.scratch, *([job.view.work_tree] if job.view.work_tree else [])]
    watch = LimitWatch(job.limits, process.pid, folders, has_group=group is not None)
    pipe_deadline: float | None = None
    last_output = started
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if selector.select(_TICK):
                data = os.read(pipe, _CHUNK)
                last_output = time.monotonic()
                if not data:
                    return _await_end(process, job, started, last_output, watch)
                output.add(data)
            now = time.monotonic()
            if reason := _find_stop_reason(job, now - started, now - last_output):
                return reason
            if exceeded := watch.describe_exceeded(now):
                return exceeded
            if process.poll() is not None:
                pipe_deadline = pipe_deadline or now + _PIPE_SECONDS
                if now > pipe_deadline:
                    return ""


def _find_stop_reason(job: SandboxJob, seconds: float, silent: float) -> str:
    """Return why the job must end now, or an empty string."""
    if job.cancel.is_set():
        return "cancel"
    if job.stop and job.stop.is_set():
        return "enough"
    if seconds > job.limits.seconds:
        return "deadline"
    return "silence" if job.limits.idle_seconds is not None and silent > job.limits.idle_seconds else ""


def _await_end(
    process: subprocess.Popen[bytes], job: SandboxJob, started: float, last_output: float, watch: LimitWatch
) -> str:
    """Wait for a process that has closed its output, within its deadline and its limits."""
    while process.poll() is None:
        now = time.monotonic()
        if reason := _find_stop_reason(job, now - started, now - last_output) or watch.describe_exceeded(now):
            return reason
        try:
            process.wait(_TICK)
        except subprocess.TimeoutExpired:
            continue
    return ""


def _end_process(process: subprocess.Popen[bytes], group: ControlGroup | None) -> None:
    """End the process and everything that it started. Signal the supervisor first, because it knows its orphans."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
    if group:
        group.close()
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def _signal_group(leader: int, number: signal.Signals) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return
