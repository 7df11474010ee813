"""Which check shows that a done criterion is met. By words, and only where they leave no doubt; all else is prose.

| the criterion                                             | is shown by                         |
|-----------------------------------------------------------|-------------------------------------|
| quotes a verify command in backticks                      | that command's check                |
| names a repaired test, by id or by function               | the check that ran it               |
| says no more than that tests pass                         | a check that executed tests         |
| says no more than that build, types or lint pass          | the check of that kind              |
| is nothing but that a declared file exists                | the frozen tree                     |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from proofstone.contracts.check import CheckKind
from proofstone.contracts.gate_record import CriterionLink
from proofstone.contracts.plan import PlanTask
from proofstone.contracts.report import CheckLine, CheckReport
from proofstone.contracts.verdict import Verdict

_PASSES: Final = r"(?:still\s+)?(?:pass|passes|passing|succeeds?|are green|is green|is clean)\.?"
_WORDS: Final[tuple[tuple[re.Pattern[str], tuple[CheckKind, ...]], ...]] = tuple(
    (re.compile(rf"^(?:(?:all|the|every|existing|new|old|unit|both|its|\d+)\s+)*{words}$", re.IGNORECASE), kinds)
    for words, kinds in (
        (rf"tests?(?:\s+suite)?\s+{_PASSES}", (CheckKind.TESTS,)),
        (rf"(?:build|compilation)\s+{_PASSES}", (CheckKind.BUILD,)),
        (r"(?:project|code|app|package)\s+(?:builds|compiles)\.?", (CheckKind.BUILD,)),
        (rf"(?:type[- ]?checks?|types|mypy|tsc)\s+{_PASSES}", (CheckKind.TYPES,)),
        (rf"(?:lint|linter|linting|ruff|eslint|flake8)\s+{_PASSES}", (CheckKind.LINT,)),
        (rf"(?:verify command|verification)\s+(?:{_PASSES}|exits 0\.?)", (CheckKind.VERIFY,)),
    )
)
_EXISTS: Final = re.compile(r"^`?(?P<path>[\w./-]+)`?\s+(exists?|is there|is created|was created)\.?$", re.IGNORECASE)
TREE: Final = "frozen-tree"
"""Stands for the tree itself: a file is in it or is not."""


def link(task: PlanTask, report: CheckReport, present: Sequence[str]) -> tuple[CriterionLink, ...]:
    """Every criterion with what shows it. `present`: the files of the tree that the task changed and that are there."""
    passed = [line for line in report.checks if line.verdict is Verdict.PASS]
    return tuple(CriterionLink(criterion=text, check=_shown_by(text, passed, report, present)) for text in task.done)


def _shown_by(text: str, passed: Sequence[CheckLine], report: CheckReport, present: Sequence[str]) -> str | None:
    for line in passed:
        if line.kind is CheckKind.VERIFY and f"`{line.command.strip()}`" in text:
            return line.name
    found = _EXISTS.match(text.strip())
    if found and found["path"].removeprefix("./") in present:
        return TREE
    tests = [line for line in passed if line.tests]
    named = [test for test in (*report.fixed, *report.sensitive) if _names(text, test)]
    if named and tests:
        return tests[0].name
    for words, kinds in _WORDS:
        if words.match(text.strip()):
            wanted = [line for line in passed if line.kind in kinds] or (tests if CheckKind.TESTS in kinds else [])
            return wanted[0].name if wanted else None
    return None


def _names(text: str, test: str) -> bool:
    function = re.split(r"::|\.|/", test.partition("[")[0])[-1]
    return test in text or (len(function) > 5 and re.search(rf"\b{re.escape(function)}\b", text) is not None)
