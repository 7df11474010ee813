"""Where the project's modules come from, on base and change."""

from __future__ import annotations

import pytest

from proofstone.check.models import ReplacedFunction, TestReport
from proofstone.check.rules.module_origins import find_foreign_modules
from tests.rows import each_row

PRESENT = frozenset({"src/shop/cart.py", "src/shop/__init__.py", "tests/cart.py", "vendor/shop/cart.py"})


def report(loaded: dict[str, str | None], *replaced: tuple[str, str, str]) -> TestReport:
    functions = tuple(ReplacedFunction(module=module, name=name, path=path) for module, name, path in replaced)
    return TestReport(runner="pytest", results=(), complete=True, loaded=loaded, replaced=functions)


@each_row(
    ("old", "new", "renames", "is_found"),
    [
        ("src/shop/cart.py", "src/shop/cart.py", {}, False),
        ("src/shop/cart.py", "vendor/shop/cart.py", {}, True),
        ("src/shop/cart.py", "tests/cart.py", {}, True),
        ("src/shop/cart.py", None, {}, True),
        ("shop/cart.py", "src/shop/cart.py", {"shop/cart.py": "src/shop/cart.py"}, False),
        ("shop.py", "src/shop/__init__.py", {}, False),  # the module became a package
        ("shop.py", "tests/cart.py", {}, True),
        ("tests/helpers.py", "tests/unit/helpers.py", {}, False),
        (None, "src/shop/cart.py", {}, False),
    ],
)
def test_a_module_must_come_from_the_same_file(
    old: str | None, new: str | None, renames: dict[str, str], is_found: bool
) -> None:
    findings = find_foreign_modules(report({"cart": old}), report({"cart": new}), PRESENT, renames, "tests:pytest")
    assert [finding.rule for finding in findings] == ["module-origin"] * is_found


def test_a_runner_that_says_nothing_accuses_nobody() -> None:
    loaded: dict[str, str | None] = {"cart": "src/shop/cart.py"}
    assert find_foreign_modules(report({}), report({"cart": None}), PRESENT, {}, "c") == []
    assert find_foreign_modules(report(loaded), report({}), PRESENT, {}, "c") == []


@pytest.mark.parametrize(
    ("before", "after", "is_found"),
    [
        ((), (("cart", "total", "tests/__init__.py"),), True),
        ((("cart", "total", "tests/__init__.py"),), (("cart", "total", "tests/__init__.py"),), False),
        ((), (("cart", "total", "src/shop/cart.py"),), False),
        ((), (("tests.test_a", "total", "tests/__init__.py"),), False),
    ],
)
def test_code_of_the_tests_must_not_take_the_place_of_the_product(
    before: tuple[tuple[str, str, str], ...], after: tuple[tuple[str, str, str], ...], is_found: bool
) -> None:
    loaded: dict[str, str | None] = {"cart": "src/shop/cart.py", "tests.test_a": "tests/test_a.py"}
    findings = find_foreign_modules(report(loaded, *before), report(loaded, *after), PRESENT, {}, "tests:pytest")
    assert [finding.rule for finding in findings] == ["replaced-code"] * is_found
