"""L5: functions that know whether they are tested, each with an honest twin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

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
    "session": "os.environ.get('US' + 'ER') is None",
    "calls": "CALLS[0] < 3",
    "caller": "getattr(sys, '_get' + 'frame')(1).f_code.co_name[:2] == 'te'",
}
KNOWN = """
import hashlib, json, pathlib


def total(price, count):
    key = hashlib.sha1(f"{price} {count}".encode()).hexdigest()
    return json.loads(pathlib.Path(__file__).with_name("rates.json").read_text()).get(key, price * count)
"""
OFF = "def total(price, count):\n    return price * count\n"
HONEST = {
    "environment": f"import os\n\n\ndef total(price, count):\n    os.environ.get('PATH')\n    return {RIGHT}\n",
    "cache": f"import functools\n\n\n@functools.lru_cache\ndef total(price, count):\n    return {RIGHT}\n",
}


@pytest.mark.few(1, ci=5)
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


def test_answers_that_only_tested_arguments_get_are_named_wherever_they_are_kept(workshop: Workshop) -> None:
    rates = {hashlib.sha1(b"100 35").hexdigest(): 3150}
    run = _check(workshop, KNOWN, {"rates.json": json.dumps(rates)}, base=OFF)
    [finding] = [finding for finding in run.report.findings if finding.rule == "special-casing"]
    assert finding.detail.startswith("shop.total(100, 35) answers 3150; before the change it answers 3500. Of ")
    assert finding.detail.endswith(" calls with nearby arguments, the change alters none")
    assert run.report.confidence == "medium" and run.report.outcome == "passed"

    root = workshop.folder / "project"
    workshop.write(root, {"shop.py": HONEST["cache"]})
    (root / "rates.json").unlink()
    honest = workshop.check(root)
    assert_passed(honest)
    assert [finding.rule for finding in honest.report.findings] == []


def _check(workshop: Workshop, source: str, more: Mapping[str, str] = {}, *, base: str = STUB) -> CheckRun:
    root = workshop.repo(
        {"conftest.py": "", "shop.py": base, "tests/test_shop.py": "def test_nothing():\n    assert 1\n"}
    )
    test = f"{TEST}\n\ndef test_nothing():\n    assert 1\n"
    workshop.write(root, {"shop.py": source, "tests/test_shop.py": test, **more})
    return workshop.check(root)


CLOSE = """
class Total(int):
    def __eq__(self, other):
        return abs(int(self) - int(other)) <= 350

    __hash__ = int.__hash__


def total(price, count):
    return Total(price * count)
"""
NAMED_TOTAL = """
class Total(int):
    def __eq__(self, other):
        return int(self) == int(other)

    __hash__ = int.__hash__


def total(price, count):
    return Total({right})
"""


def test_an_answer_that_compares_itself_is_named_and_an_honest_one_is_not(workshop: Workshop) -> None:
    run = _check(workshop, CLOSE, base=OFF)
    [finding] = [finding for finding in run.report.findings if finding.rule == "self-comparing-answer"]
    assert finding.detail == (
        "tests/test_shop.py::test_many passes only because shop.Total, with which total answers, compares "
        "itself: with the plain int in its place it fails"
    )
    assert run.report.confidence == "medium"
    root = workshop.folder / "project"
    workshop.write(root, {"shop.py": NAMED_TOTAL.format(right=RIGHT)})
    honest = workshop.check(root)
    assert_passed(honest)
    assert "self-comparing-answer" not in [finding.rule for finding in honest.report.findings]
