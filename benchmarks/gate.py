"""What the gate costs beside the work itself, and whether tasks run as side by side as their plan allows.

`python -m benchmarks.gate [--quick]`
"""

from __future__ import annotations

import heapq
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import NO_AIM, Measurement, show
from benchmarks.check import Place
from proofstone.app.gate import build_gate_run
from proofstone.check.context import NullProgress, Progress
from proofstone.common.models import BudgetUsage
from proofstone.gate.models import RunOutcome, RunView
from proofstone.gate.request import GateRequest

SLOTS = 4
EXECUTOR = 'sleep {pause}; n=${{PROOFSTONE_TASK_ID#task-}}; echo "number = \'$n\'" > "part_$n.py"'
VERIFY = "grep -q \"'{number}'\" part_{number}.py"
TASK = """<task type="auto" depends_on="">
<name>Part {number}</name>
<files>part_{number}.py</files>
<action>Write the part.</action>
<verify>{verify}</verify>
<done>part_{number}.py exists</done>
</task>
"""


class Nobody:
    """Nobody watches."""

    def on_run_started(self, view: RunView) -> None:
        return None

    def on_task_changed(self, view: RunView, task: str) -> None:
        return None

    def on_message(self, task: str, line: str) -> None:
        return None

    def on_output(self, task: str, data: bytes) -> None:
        return None

    def on_checks_started(self, task: str) -> Progress:
        return NullProgress()

    def on_activity(self, task: str, line: str) -> None:
        return None

    def on_spending(self, spent: BudgetUsage) -> None:
        return None


def run(quick: bool = False) -> list[Measurement]:
    with tempfile.TemporaryDirectory(prefix="proofstone-bench-") as folder:
        return [*_trivial(Path(folder) / "trivial", 10 if quick else 100), *_sleeping(Path(folder) / "sleeping", quick)]


def _trivial(folder: Path, count: int) -> list[Measurement]:
    """Tasks that do next to nothing: all that is left is what the gate itself takes."""
    wall = _gated(folder, count, 0)
    bare = _bare(folder / "bare", count)
    each = (wall - bare) / count
    return [
        Measurement(f"{count} trivial tasks: overhead of the gate, seconds a task", each, "s", "≤ 3", each <= 3),
        Measurement(f"{count} trivial tasks: the whole run against the bare commands", wall / bare, "×", NO_AIM, True),
    ]


def _sleeping(folder: Path, quick: bool) -> list[Measurement]:
    count, pause = (8, 15.0) if quick else (16, 30.0)
    wall = _gated(folder, count, pause)
    ideal = critical([pause] * count, SLOTS)
    name = f"{count} tasks that wait {pause:g} s, {SLOTS} at once: the whole run against the critical path"
    return [Measurement(name, wall / ideal, "×", "≤ 1.10", wall / ideal <= 1.1)]


def critical(durations: Sequence[float], slots: int) -> float:
    """When the last of these, none depending on another, can be finished at best."""
    ends = [0.0] * slots
    for duration in durations:
        heapq.heappush(ends, heapq.heappop(ends) + duration)
    return max(ends)


def _gated(folder: Path, count: int, pause: float) -> float:
    folder.mkdir()
    root = Place(folder).repository({"start.py": "ready = True\n"})
    plan = folder / "PLAN.md"
    tasks = (_task(number) for number in range(1, count + 1))
    plan.write_text(f"# Parts\n\n{''.join(tasks)}")
    request = GateRequest(executor=f"cmd:{EXECUTOR.format(pause=pause)}", slots=SLOTS)
    started = time.perf_counter()
    with build_gate_run(root, plan, request, Nobody(), home=folder / "state") as gate:
        report = gate.run()
    if report.outcome is not RunOutcome.PASSED:
        raise RuntimeError(f"the benchmark's own plan does not pass: {report.reason}")
    return time.perf_counter() - started


def _task(number: int) -> str:
    return TASK.format(number=f"{number:02}", verify=VERIFY.format(number=f"{number:02}"))


def _bare(folder: Path, count: int) -> float:
    """The same commands, one after the other, with nobody looking."""
    folder.mkdir()
    started = time.perf_counter()
    for number in range(1, count + 1):
        environment = {"PROOFSTONE_TASK_ID": f"task-{number:02}", "PATH": "/usr/bin:/bin"}
        for command in (EXECUTOR.format(pause=0), VERIFY.format(number=f"{number:02}")):
            subprocess.run(["/bin/sh", "-c", command], cwd=folder, env=environment, check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    show(run)
