"""High confidence needs tests that notice mistakes in the changed lines, and the report names those they do not."""

from __future__ import annotations

import json

import pytest

from tests.needs import needs
from tests.workshop import CheckRun, Workshop, assert_passed

CALC = "def add(a, b):\n    return a + b\n"
PRICE = CALC + "\n\ndef price(units):\n    if units >= 10:\n        return units * 9\n    return units * 10\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
STRONG = TEST.replace("import add", "import add, price") + (
    "\n\ndef test_price():\n    assert [price(units) for units in (1, 9, 10, 11)] == [10, 90, 90, 99]\n"
)
WEAK = STRONG.replace("(1, 9, 10, 11)] == [10, 90, 90, 99]", "(1, 20)] == [10, 180]")
EMPTY = STRONG.replace("== [10, 90, 90, 99]", "")
FILES = {"pytest.ini": "[pytest]\n", "calc.py": CALC, "tests/test_calc.py": TEST}


def outcomes(run: CheckRun) -> list[tuple[int, str, str]]:
    assert run.report.strength is not None
    return [(mutant.line, mutant.after, mutant.status.value) for mutant in run.report.strength.mutants]


def test_the_tests_of_a_change_must_notice_mistakes_in_it(workshop: Workshop) -> None:
    root = workshop.repo(FILES)
    workshop.write(root, {"calc.py": PRICE, "tests/test_calc.py": STRONG})
    strong = workshop.check(root)
    assert_passed(strong)
    assert (strong.report.confidence, strong.report.reasons) == ("high", ())
    assert {line for line, _, _ in outcomes(strong)} == {6, 7, 8}
    assert {status for _, _, status in outcomes(strong)} == {"killed"}

    off = workshop.check(root, "--strength", "off")
    assert (off.report.confidence, off.report.strength) == ("medium", None)
    assert "switched off" in off.report.reasons[0].reason

    workshop.write(root, {"tests/test_calc.py": EMPTY})
    empty = workshop.check(root)
    assert_passed(empty)
    assert empty.report.confidence == "medium"
    assert any("no test notices a mistake in price, which is new" in str(reason) for reason in empty.report.reasons)


@pytest.mark.ci
def test_what_is_not_noticed_is_named_in_every_report(workshop: Workshop) -> None:
    root = workshop.repo(FILES)
    workshop.write(root, {"calc.py": PRICE, "tests/test_calc.py": WEAK})
    file = workshop.folder / "page.md"
    first = workshop.check(root, "--md", str(file))
    assert_passed(first)
    survived = [(6, "if units > 10:", "survived"), (6, "if units >= 11:", "survived")]
    assert [outcome for outcome in outcomes(first) if outcome[2] != "killed"] == survived
    page = file.read_text()
    assert "Not noticed: `calc.py:6`, boundary" in page
    assert "- if units >= 10:\n+ if units > 10:" in page

    again = workshop.check(root, "--no-cache")
    assert outcomes(again) == outcomes(first)

    text = workshop.proofstone(root, "check", "--strength", "full")
    assert "the tests notice 7 of 9 mistakes in the changed lines (77 %)" in text.stdout
    assert "not noticed: calc.py:6 in price: boundary\n      - if units >= 10:\n      + if units > 10:" in text.stdout


@pytest.mark.ci
def test_the_threshold_is_a_setting_of_the_base(workshop: Workshop) -> None:
    root = workshop.repo({**FILES, "proofstone.toml": "[check]\nstrength_threshold = 90\n"})
    lowered = "[check]\nstrength_threshold = 10\n"
    workshop.write(root, {"calc.py": PRICE, "tests/test_calc.py": WEAK})
    below = workshop.check(root)
    assert_passed(below)
    assert below.report.confidence == "medium"
    assert "77 %, and 90 % are needed" in below.report.reasons[0].reason
    assert "calc.py:6 `>=` → `>`; calc.py:6 `10:` → `11:`" in below.report.reasons[0].reason

    workshop.write(root, {"proofstone.toml": lowered})
    refused = workshop.check(root)
    assert refused.exit == 1
    assert [finding.rule for finding in refused.report.findings] == ["weakened-settings"]


@needs("node")
def test_other_runners_get_a_run_for_each_mutant(workshop: Workshop) -> None:
    package = json.dumps({"name": "calc", "scripts": {"test": "node --test"}})
    test = (
        'const test = require("node:test");\nconst assert = require("node:assert");\n'
        'const { price } = require("./calc.js");\n'
        'test("a price", () => { assert.strictEqual(price(1), 10); assert.strictEqual(price(20), 180); });\n'
    )
    calc = "exports.price = (units) => 10 * units;\n"
    changed = "exports.price = (units) => {\n  if (units >= 10) return units * 9;\n  return units * 10;\n};\n"
    root = workshop.repo({"package.json": package, "calc.js": calc, "calc.test.js": test.replace("180", "200")})
    workshop.write(root, {"calc.js": changed, "calc.test.js": test})
    run = workshop.check(root, "--accept", "edited-expectation=a rebate", "--accepted-by", "ann@example.org")
    assert_passed(run)
    by_mutant = {after: status for _, after, status in outcomes(run)}
    assert by_mutant["if (units < 10) return units * 9;"] == "killed"
    assert by_mutant["if (units > 10) return units * 9;"] == "survived"
