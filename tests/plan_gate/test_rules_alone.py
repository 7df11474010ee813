"""Without any model: what code alone has against a plan, in whatever form it comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan_gate.reports import matches_golden
from tests.plan_gate.stage import Stage
from tests.staging import plan, task

GOOD = task("One")
TAX = "shop/tax.py, tests/test_tax.py"
DEFECTS = {
    "missing file": (
        plan(
            task(
                "Round",
                files="shop/carts.py",
                action="Change total in shop/carts.py.",
                verify="python3 -m unittest tests.test_cart",
            )
        ),
        "shop/carts.py",
        "SIGNIFICANT",
        "<files>shop/carts.py</files>",
    ),
    "vacuous verify": (plan(GOOD, task("Two", verify="true")), "`true`", "BLOCKING", "<verify>true</verify>"),
    "cycle": (
        plan(task("One", attributes='id="a" depends_on="b"'), task("Two", attributes='id="b" depends_on="a"')),
        "wait for one another",
        "BLOCKING",
        'id="a"',
    ),
    "two tasks on one file": (
        plan(task("One", files=TAX, attributes='depends_on=""'), task("Two", files=TAX, attributes='depends_on=""')),
        "the same files",
        "SIGNIFICANT",
        "<task",
    ),
    "unverifiable done": (plan(GOOD, task("Two", done="it works")), "it works", "SIGNIFICANT", "<done>it works</done>"),
}
"""A plan with one defect; a word of what is said of it, how grave it is, and what stands on the line that is named."""
ALL_DEFECTS = plan(
    task("Round", files="shop/carts.py", action="Change total in shop/carts.py.", attributes='id="r" depends_on="t"'),
    task("Stamp", verify="true", attributes='id="t" depends_on="r"'),
    task("Tax", files=TAX, attributes='id="x" depends_on=""'),
    task("Fee", files=TAX, done="it works", attributes='id="f" depends_on=""'),
)
DESIGN = """# Rounding

Totals are rounded to cents.

## Steps

1. Change `shop/cart.py` so that `total` rounds. Verify: `python3 -m unittest tests.test_cart`
2. Create `shop/money.py` with a type for money. Verify: `python3 -m unittest tests.test_money`
   The tests are in `tests/test_money.py`, which is new.
3. Decide where carts are kept: TBD.

Done when: `total([0.1, 0.2])` is 0.3.
"""
ISSUE = """Totals are wrong for large carts

When I put a hundred things into the cart, the total is off by a few cents. It should be exact.
It would be good if it worked again.
"""
PLANS = {
    "rules-good": plan(task("One"), task("Two")),
    "rules-defects": ALL_DEFECTS,
    "rules-design": DESIGN,
    "rules-issue": ISSUE,
}
EXITS = {"rules-good": 0}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage.set_up(tmp_path_factory.mktemp("rules") / "stage")


@pytest.mark.parametrize("name", PLANS)
def test_the_report_is_the_one_that_was_reviewed(stage: Stage, name: str) -> None:
    stage.write(f"{name}.md", PLANS[name])
    came = stage.by_rules(f"{name}.md")
    assert came.exit == EXITS.get(name, 1), came.stderr
    assert {one.origin for one in came.report.challenges} <= {"rules"}
    assert came.report.dispatches == 0 and came.report.agents == {}
    matches_golden(f"{name}.md", came.masked)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_a_challenge_with_its_line(stage: Stage, name: str) -> None:
    text, word, severity, shown = DEFECTS[name]
    stage.write("DEFECT.md", text)
    came = stage.by_rules("DEFECT.md")
    assert came.exit == 1, came.stdout + came.stderr
    found = [one for one in came.report.challenges if word in one.claim and one.severity == severity]
    assert found, [one.claim for one in came.report.challenges]
    lines = text.split("\n")
    for one in found:
        number = came.report.lines[one.id]
        assert one.claim.startswith(f"line {number}: ")
        assert shown in lines[number - 1]
        assert one.mitigation and one.alternative and one.failure_scenario


def test_a_good_plan_proceeds_and_says_that_nobody_was_asked(stage: Stage) -> None:
    done = stage.proofstone("verify-plan", "PLAN.md")
    assert done.returncode == 0, done.stderr
    assert done.stdout.lstrip().splitlines()[-1] and "PROCEED" in done.stdout
    assert "no agent is configured" in done.stderr


def test_what_makes_a_plan_impossible_to_run_is_put_right_before_anybody_is_asked(stage: Stage) -> None:
    stage.write("CYCLE.md", DEFECTS["cycle"][0])
    came = stage.verify([], plan="CYCLE.md")
    assert came.exit == 1 and came.report.verdict == "RETHINK"
    assert came.report.dispatches == 0
    said = stage.by_rules("CYCLE.md", "--answer", "C1=never mind")
    assert said.exit == 1 and any("edit the plan" in text for text in said.events("refused"))


def test_a_trivial_plan_needs_nobody(stage: Stage) -> None:
    only = task("Round", files="shop/cart.py", action="Let total round.", verify="python3 -m unittest tests.test_cart")
    stage.write("SMALL.md", plan(only))
    came = stage.verify([], plan="SMALL.md")
    assert (came.exit, came.report.trivial, came.report.dispatches) == (0, True, 0)


def test_the_persons_word_settles_what_an_edit_need_not(stage: Stage) -> None:
    stage.write("VAGUE.md", DEFECTS["unverifiable done"][0])
    came = stage.by_rules("VAGUE.md", "--answer", "C1=the architect will look at it")
    assert came.exit == 0, came.stderr
    assert came.statuses["C1"] == "RESOLVED"
    assert "the architect will look at it" in came.report.challenges[0].resolution


def test_a_plan_need_not_be_in_the_repository_or_committed(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").write_text(PLANS["rules-good"])
    came = stage.by_rules(str(tmp_path / "elsewhere.md"), "--rules")
    assert came.exit == 0, came.stderr
    assert came.report.plan_path == str(tmp_path / "elsewhere.md")
