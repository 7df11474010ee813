"""Check each case, and count what the gate said by what is true. Results are kept one by one, so that a run goes on."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import proofstone
from benchmarks.gate_quality.cases import Case
from proofstone.common.models import Outcome, Severity

_Z = 1.96
"""For intervals of 95 %."""
_SUSPICION = re.compile(
    r"special-casing|the tests notice \d+ of \d+ mistakes|shared-comparison|weakened", re.IGNORECASE
)
"""What names a suspicion or a survivor, among the rules of findings and the reasons of a confidence."""
EXPECTATION_RULES = frozenset({"edited-expectation"})
ALARM_RULES = frozenset({"special-casing"})


@dataclass(frozen=True)
class CaseResult:
    """What the gate said about a case."""

    name: str
    kind: str
    right: bool
    outcome: str
    confidence: str = ""
    rules: tuple[str, ...] = ()
    """The rules of its findings that refuse."""
    concerns: tuple[str, ...] = ()
    """The rules of its other findings."""
    reasons: tuple[str, ...] = ()
    """Why the confidence is not high."""
    detail: str = ""
    seconds: float = 0.0
    version: str = field(default="")
    """The commit of Proofstone that was measured."""

    @property
    def is_refused(self) -> bool:
        return self.outcome == Outcome.FAILED

    @property
    def is_high(self) -> bool:
        return self.outcome == Outcome.PASSED and self.confidence == "high"

    @property
    def is_named(self) -> bool:
        """Whether it is refused, or a survivor or suspicion is named."""
        return self.is_refused or any(_SUSPICION.search(text) for text in (*self.concerns, *self.reasons))

    @property
    def is_suspected(self) -> bool:
        return not ALARM_RULES.isdisjoint((*self.rules, *self.concerns))

    @property
    def is_false_alarm(self) -> bool:
        return self.is_refused and EXPECTATION_RULES.isdisjoint(self.rules)


def measure(
    cases: Sequence[Case], results: Path, *, jobs: int, version: str, on_result: Callable[[CaseResult], object]
) -> list[CaseResult]:
    """Check every case that `results` does not hold yet, in random order, so that a part is a sample of the whole."""
    done = {result.name: result for result in read_results(results)} if results.exists() else {}
    left = [case for case in cases if case.name not in done]
    random.Random(1).shuffle(left)
    with tempfile.TemporaryDirectory(prefix="proofstone-quality-") as place, ThreadPoolExecutor(jobs) as pool:
        folder = Path(place)
        futures = [pool.submit(_check, case, folder, version) for case in left]
        for future in futures:
            result = future.result()
            with results.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
            done[result.name] = result
            on_result(result)
    return [done[case.name] for case in cases]


def read_results(file: Path) -> list[CaseResult]:
    return [_read_result(json.loads(line)) for line in file.read_text().splitlines()]


def _read_result(fields: Mapping[str, Any]) -> CaseResult:
    lists = {name: tuple(fields[name]) for name in ("rules", "concerns", "reasons")}
    return CaseResult(**{**fields, **lists})


def _check(case: Case, folder: Path, version: str) -> CaseResult:
    began = time.monotonic()
    root = folder / case.name / "project"
    root.parent.mkdir()
    try:
        case.lay_out(root)
        report = proofstone.check_change(root, base="HEAD", home=folder / "state")
    finally:
        shutil.rmtree(root.parent, ignore_errors=True)
    serious = [finding for finding in report.findings if finding.severity is not Severity.MINOR]
    return CaseResult(
        name=case.name,
        kind=case.kind,
        right=case.right,
        outcome=report.outcome.value,
        confidence=report.confidence.value if report.confidence else "",
        rules=tuple(dict.fromkeys(finding.rule for finding in serious)),
        concerns=tuple(dict.fromkeys(finding.rule for finding in report.findings if finding not in serious)),
        reasons=tuple(reason.reason for reason in report.reasons),
        detail=report.reason or "; ".join(finding.headline for finding in serious)[:300],
        seconds=round(time.monotonic() - began, 1),
        version=version,
    )


def wilson(count: int, total: int) -> tuple[float, float]:
    """Return the interval in which the true share lies with 95 % confidence, by Wilson's score."""
    if total == 0:
        return 0.0, 1.0
    share, square = count / total, _Z * _Z
    centre = (share + square / (2 * total)) / (1 + square / total)
    spread = _Z * math.sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, centre - spread), min(1.0, centre + spread)


def describe_share(count: int, total: int) -> str:
    low, high = wilson(count, total)
    share = f"{100 * count / total:.1f} %" if total else "–"
    return f"{share} ({count} of {total}; {100 * low:.1f}–{100 * high:.1f} %)"


def count(results: Iterable[CaseResult], holds: Callable[[CaseResult], bool]) -> str:
    """Return for how many results something holds, with its interval."""
    listed = list(results)
    return describe_share(sum(map(holds, listed)), len(listed))
