"""Put the cases to a backend, one dispatch each, and measure the answers.

A dispatch is that of the product: its prompts, tools, repairs and mending, with a ledger in a temporary folder. The
tools see the project of the situation; there is no shell and no history.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.roles.cases import Case
from proofstone.agents.backends import Backend
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import Dispatcher, DispatchRequest
from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.models import DispatchKey, DispatchResult
from proofstone.agents.roles.role import format_request
from proofstone.agents.spending import SpendingMeter
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox
from proofstone.common.models import Budget
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.sandbox.job import SandboxResult


@dataclass(frozen=True)
class CaseResult:
    """The result of one case."""

    role: str
    case: str
    is_valid_first: bool
    """Whether the first answer was usable, mended or not."""
    is_valid: bool
    """Whether an answer was usable, after repairs or not."""
    is_mended: bool
    is_right: bool
    tokens: int
    seconds: float
    fault: str = ""


@dataclass(frozen=True)
class RoleFigures:
    """The sums over the cases of one role, or of one quality."""

    name: str
    cases: int
    valid_first: int
    valid: int
    mended: int
    right: int
    tokens: int
    """In the mean."""
    seconds: float
    """In the mean."""


def measure(cases: Iterable[Case], build: Callable[[Case], Backend], seconds: float) -> Iterator[CaseResult]:
    """Yield the result of each case. `build` makes the backend of a case; it is closed afterwards."""
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="proofstone-roles-") as folder:
            backend = build(case)
            try:
                yield _measure_case(case, backend, Path(folder), seconds)
            finally:
                backend.close()


def _measure_case(case: Case, backend: Backend, folder: Path, seconds: float) -> CaseResult:
    root, scratch = folder / "project", folder / "scratch"
    scratch.mkdir()
    for path, text in case.situation.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    role = case.cases.role
    scope = (case.situation.path, case.situation.test_path) if role.name == "executor" else ()
    site = ExecutionContext(root, scratch, _refuse_to_run, scope=scope, cancel=threading.Event())
    tools = Toolbox(ToolContext(files=root, scope=scope, run=None, cancel=site.cancel), role.tools)
    request = DispatchRequest(format_request(role, case.request), backend, tools, site, seconds)
    began = time.monotonic()
    with SqliteLedger(folder / "ledger.sqlite") as ledger:
        dispatcher = Dispatcher(MessageBus(ledger, "bench"), SpendingMeter(Budget()))
        key = DispatchKey(run_id="bench", role=role.name, step=case.name, task_name=case.name)
        dispatched = dispatcher.dispatch_once(role, key, request)
    return _to_result(case, dispatched, root, time.monotonic() - began)


def _to_result(case: Case, dispatched: DispatchResult, root: Path, seconds: float) -> CaseResult:
    is_valid = dispatched.output is not None
    return CaseResult(
        role=case.cases.role.name,
        case=case.name,
        is_valid_first=is_valid and dispatched.repairs == 0,
        is_valid=is_valid,
        is_mended=bool(dispatched.mended),
        is_right=is_valid and case.cases.check(dispatched.output, case.situation, root),
        tokens=dispatched.usage.tokens,
        seconds=seconds,
        fault=f"{dispatched.fault.kind}: {dispatched.fault.why}" if dispatched.fault else "",
    )


def _refuse_to_run(job: ShellCommand) -> SandboxResult:
    raise AssertionError(f"the benchmark runs nothing: {job.command}")


def summarize(results: Iterable[tuple[str, CaseResult]]) -> list[RoleFigures]:
    """Return the figures of each name, in the order in which the names first occur."""
    groups: dict[str, list[CaseResult]] = {}
    for name, result in results:
        groups.setdefault(name, []).append(result)
    return [_sum_up(name, group) for name, group in groups.items()]


def _sum_up(name: str, group: list[CaseResult]) -> RoleFigures:
    return RoleFigures(
        name=name,
        cases=len(group),
        valid_first=sum(result.is_valid_first for result in group),
        valid=sum(result.is_valid for result in group),
        mended=sum(result.is_mended for result in group),
        right=sum(result.is_right for result in group),
        tokens=round(sum(result.tokens for result in group) / len(group)),
        seconds=round(sum(result.seconds for result in group) / len(group), 2),
    )


def render_table(head: str, figures: Iterable[RoleFigures]) -> str:
    """Return the figures as a table of Markdown."""
    lines = [
        f"| {head} | cases | valid at first | mended | valid after repair | right | tokens | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in figures:
        lines.append(
            f"| {row.name} | {row.cases} | {row.valid_first} | {row.mended} | {row.valid} | {row.right} | {row.tokens} "
            f"| {row.seconds:g} |"
        )
    return "\n".join(lines) + "\n"
