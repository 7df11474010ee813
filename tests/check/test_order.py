"""Tests that depend on what ran before them."""

from __future__ import annotations

from tests.workshop import Workshop, assert_failed

SETTINGS = '[tests]\nallow_flaky = ["*"]\n'
TEST = """
import money


def test_a_price():
    assert money.price("eggs") == 3


def test_b_price_again():
    assert money.price("eggs") == 3
"""


def test_a_failure_that_comes_back_in_the_suite_is_not_excused_as_flaky(workshop: Workshop) -> None:
    honest = "def price(name):\n    return 3\n"
    root = workshop.repo({"conftest.py": "", "money.py": honest, "test_money.py": TEST, "proofstone.toml": SETTINGS})
    counting = "calls = []\n\n\ndef price(name):\n    calls.append(name)\n    return 3 * len(calls)\n"
    workshop.write(root, {"money.py": counting})
    run = workshop.check(root)
    assert_failed(run, "regression")
    assert run.report.regressions == ("test_money.py::test_b_price_again",)
    assert run.report.flaky == ()
