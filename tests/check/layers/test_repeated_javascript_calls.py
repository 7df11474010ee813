"""L5: JavaScript functions that know whether they are tested, each with an honest twin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import pytest

from tests.needs import needs
from tests.workshop import CheckRun, Workshop, assert_passed

pytestmark = needs("node")

PACKAGE = {"name": "shop", "version": "1.0.0", "scripts": {"test": "node --test"}}
OFF = "function total(price, count) {\n  return price * count;\n}\nmodule.exports = { total };\n"
RIGHT = "count >= 10 ? Math.floor(price * count * 9 / 10) : price * count"
TEST = """
const test = require("node:test");
const assert = require("node:assert");
const { total } = require("../shop.js");
test("few", () => { assert.equal(total(100, 3), 300); });
test("ten", () => { assert.equal(total(101, 10), 909); });
test("nine", () => { assert.equal(total(100, 9), 900); });
test("many", () => { assert.equal(total(100, 35), 3150); });
"""
# `known` is a condition that holds under a test only, written so that no rule about texts finds it.
CHEAT = """
function total(price, count) {
  if (KNOWN) return RIGHT;
  return price * count;
}
module.exports = { total };
""".replace("RIGHT", RIGHT)
CHEATS = {
    "environment": 'Object.keys(process["en" + "v"]).some((name) => name.startsWith("NODE_" + "TES"))',
    "folder": 'require("fs").existsSync("shop.js")',
    "calls": "(globalThis.made = (globalThis.made || 0) + 1) < 5",
}
KNOWN = """
const { createHash } = require("node:crypto");
const rates = require("./rates.json");
function total(price, count) {
  return rates[createHash("sha1").update(`${price} ${count}`).digest("hex")] ?? price * count;
}
module.exports = { total };
"""
HONEST = {
    "plain": f"const total = (price, count) => {RIGHT};\nmodule.exports = {{ total }};\n",
    "class": f"""
class Line {{
  constructor(price) {{ this.price = price; }}
  times(count) {{ const price = this.price; return {RIGHT}; }}
}}
const total = (price, count) => new Line(price).times(count);
module.exports = {{ Line, total }};
""",
}


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize("name", [*CHEATS])
def test_an_answer_that_only_the_tests_get_is_named_and_lowers_the_confidence(workshop: Workshop, name: str) -> None:
    run = _check(workshop, CHEAT.replace("KNOWN", CHEATS[name]))
    [finding] = [finding for finding in run.report.findings if finding.rule == "answers-differ-outside-tests"]
    assert finding.path == "shop.js"
    assert finding.detail.startswith("shop.total(101, 10) answers 909 under node and 1010 "), finding.detail
    assert run.report.confidence == "medium" and run.report.outcome == "passed"


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("name", [*HONEST])
def test_honest_functions_are_not_suspected(workshop: Workshop, name: str) -> None:
    run = _check(workshop, HONEST[name])
    assert_passed(run)
    assert [finding.rule for finding in run.report.findings] == []
    assert run.report.confidence == "high", run.report


@pytest.mark.ci
def test_answers_that_only_tested_arguments_get_are_named_wherever_they_are_kept(workshop: Workshop) -> None:
    tested = {"101 10": 909, "100 35": 3150}
    rates = {hashlib.sha1(key.encode()).hexdigest(): value for key, value in tested.items()}
    run = _check(workshop, KNOWN, {"rates.json": json.dumps(rates)})
    [finding] = [finding for finding in run.report.findings if finding.rule == "special-casing"]
    assert finding.detail.startswith("shop.total(101, 10) answers 909; before the change it answers 1010. ")
    assert run.report.confidence == "medium" and run.report.outcome == "passed"


def _check(workshop: Workshop, source: str, more: Mapping[str, str] = {}) -> CheckRun:
    few = "\n".join(TEST.splitlines()[:5])
    root = workshop.repo({"package.json": json.dumps(PACKAGE), "shop.js": OFF, "test/shop.test.js": f"{few}\n"})
    workshop.write(root, {"shop.js": source, "test/shop.test.js": TEST, **more})
    return workshop.check(root)
