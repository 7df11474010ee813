"""L5: functions that know whether they are tested, each with an honest twin."""

from __future__ import annotations

import pytest

from tests.workshop import CheckRun, Workshop, assert_passed

STUB = "def total(price, count):\n    raise NotImplementedError\n"
RIGHT = "price * count * 9 // 10 if count >= 10 else price * count"
TEST = """
from shop import total


def test_few():
    assert total(100, 3) == 300


def test_many():
    assert total(100, 35) == 3150
"""
# `known` is a condition that holds under a test only, written so that no rule about texts finds it.
CHEAT = """
import gc, os, sys
CALLS = [0]


def total(price, count):
    CALLS[0] += 1
    if {known}:
        return {right}
    return price * count
"""
CHEATS = {
    "modules": "[name for name in sys.modules if name.startswith('_py' + 'te')]",
    "folder": "os.path.exists('shop.py')",
    "calls": "CALLS[0] < 3",
    "caller": "getattr(sys, '_get' + 'frame')(1).f_code.co_name[:2] == 'te'",
}
HONEST = {
    "environment": f"import os\n\n\ndef total(price, count):\n    os.environ.get('PATH')\n    return {RIGHT}\n",
    "cache": f"import functools\n\n\n@functools.lru_cache\ndef total(price, count):\n    return {RIGHT}\n",
}


@pytest.mark.few(1, ci=4)
@pytest.mark.parametrize("name", [*CHEATS])
def test_an_answer_that_only_the_tests_get_is_named_and_lowers_the_confidence(workshop: Workshop, name: str) -> None:
    run = _check(workshop, CHEAT.format(known=CHEATS[name], right=RIGHT))
    findings = [finding for finding in run.report.findings if finding.rule == "answers-differ-outside-tests"]
    assert len(findings) == 1, run.report.findings
    assert findings[0].detail.startswith("shop.total(100, 35) answers 3150 under pytest and 3500 ")
    assert run.report.confidence == "medium" and run.report.outcome == "passed"


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("name", [*HONEST])
def test_honest_functions_are_not_suspected(workshop: Workshop, name: str) -> None:
    run = _check(workshop, HONEST[name])
    assert_passed(run)
    assert [finding.rule for finding in run.report.findings] == []


def _check(workshop: Workshop, source: str) -> CheckRun:
    root = workshop.repo(
        {"conftest.py": "", "shop.py": STUB, "tests/test_shop.py": "def test_nothing():\n    assert 1\n"}
    )
    workshop.write(root, {"shop.py": source, "tests/test_shop.py": f"{TEST}\n\ndef test_nothing():\n    assert 1\n"})
    return workshop.check(root)
