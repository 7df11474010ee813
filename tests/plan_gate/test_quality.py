"""How good a plan is, how complex, and whether it is trivial: by rule."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.plan_gate_records import PlanQuality
from proofstone.plan_gate.rules.outline import outline_plan
from proofstone.plan_gate.rules.plan_rules import is_trivial_plan, rate_complexity, rate_quality
from tests.plans.reading import element, fixture
from tests.rows import each_row

RICH, ADEQUATE, THIN = PlanQuality.RICH, PlanQuality.ADEQUATE, PlanQuality.THIN
VERIFIED = "   Verify: `make check`\n"
WHOLE_STEP = "1. Write `a.py`\n   Verify: `make check`\n   Done when: `a.py` is not empty\n"


@each_row(
    ("text", "found", "why"),
    [
        (element(), RICH, "the only step has files"),
        (element() + element(name="B", files="b.py"), RICH, "all 2 steps have files"),
        (fixture("checkpoints"), RICH, "the only step has"),
        (element(files="none"), ADEQUATE, "line 1 has no files"),
        (element(done=""), ADEQUATE, "line 1 has no done criterion"),
        (element(attributes='depends_on="7"'), ADEQUATE, "line 1 has no place in the order"),
        (element() + element(name="B", files="b.py", verify=""), THIN, "only 1 of 2 steps have a verification; line 8"),
        (element() * 2 + element(verify="true"), ADEQUATE, "2 of 3 steps have a verification; line 15 has no"),
        (element(verify="echo done"), THIN, "no step has a verification; line 1 has no verification that could fail"),
        (element(verify="pytest -q tests/test_a.py | tail -5"), THIN, "could fail"),
        (WHOLE_STEP, RICH, "the only step has files"),
        (WHOLE_STEP.replace("1. ", "- [ ] "), ADEQUATE, "line 1 has no place in the order"),
        (f"1. a\n{VERIFIED}2. b\n{VERIFIED}3. c\n", ADEQUATE, "2 of 3 steps have a verification; line 1 has no files"),
        (f"1. a\n{VERIFIED}2. b\n", THIN, "only 1 of 2 steps"),
        ("1. a\n2. b\n\n## Test plan\n`make check`\n", ADEQUATE, "there is a verification of the whole"),
        ("1. a\n2. b\n\n## Test plan\n`echo ok`\n", THIN, "no step has a verification"),
        ("Make it better.\n", THIN, "no step"),
        ('<task type="checkpoint:human-verify"><what-built>It</what-built></task>', THIN, "no step"),
    ],
)  # fmt: skip
@pytest.mark.seed("plan-gate", "plan-quality")
def test_quality_by_rule_and_why(text: str, found: PlanQuality, why: str) -> None:
    said, reason = rate_quality(outline_plan(text, "PLAN.md"))
    assert (said, why in reason) == (found, True), reason


@each_row(
    ("text", "points"),
    [
        ("Nothing.\n", {}),
        ("1. a\n2. b\n", {"steps": 2}),
        ("1. a\n2. b\n3. c\n4. d\n", {"steps": 3}),
        ("The API and the database.\n", {"domains": 2}),
        ("The API, the database, the login, the docs, the UI.\n", {"domains": 3}),
        ("A webhook.\n", {"integrations": 2}),
        ("A webhook, Stripe, Kafka and Redis.\n", {"integrations": 4}),
        ("GDPR and HIPAA.\n", {"compliance": 2}),
        ("TBD\n\n???\n", {"unknowns": 2}),
        ("TBD\n\n???\n\nTODO\n\nFIXME\n", {"unknowns": 3}),
        (" ".join(f"src/f{n}.py" for n in range(9)), {}),
        (" ".join(f"src/f{n}.py" for n in range(10)), {"files": 1}),
    ],
)
def test_points_of_complexity_and_their_caps(text: str, points: dict[str, int]) -> None:
    found = rate_complexity(outline_plan(text, "x.md"))
    assert {name: value for name, value in found.model_dump().items() if value} == points
    assert found.total == sum(points.values())


def test_all_of_it_is_sixteen() -> None:
    text = "1. a\n2. b\n3. c TBD\nthe API, database, login, a webhook, Stripe, GDPR\n???\nTODO\n"
    assert rate_complexity(outline_plan(text + " ".join(f"src/f{n}.py" for n in range(10)), "x.md")).total == 16


@each_row(
    ("text", "trivial"),
    [
        ("1. Fix the typo in `README.md`.\n", True),
        ("1. Fix `README.md`.\n2. Check `README.md`.\n", True),
        (element(), True),
        ("1. Fix `README.md`.\n2. a\n3. b\n", False),
        ("1. Fix `README.md` and `setup.cfg`.\n", False),
        ("1. Fix `README.md`; Redis is used.\n", False),
        ("1. Fix `README.md`; TBD.\n", False),
        ("1. Fix everything.\n", False),
        ("`README.md`\n", False),
        (element(files="src/"), False),
        (element(files="src/*.py"), False),
        (element(files="src/auth/login.py"), False),
        (element(files="src/new.py"), True),
        (element(files="src"), False),
        (element(files="lib"), False),
        (element(files="shop.web"), False),
        (element(files="shop.web/cart.py"), True),
        (element(files=".github/workflows/ci.yml"), False),
        (element(files=".GitHub//workflows/ci.yml"), False),
        (element(files="././.github/workflows/ci.yml"), False),
        (element(files="src/conftest.py"), False),
        (element(files="tests/test_a.py"), False),
        (element(files="Makefile"), False),
        (element(files="CMakeLists.txt"), False),
        (element(files="pyproject.toml"), False),
        (element(files=".gitignore"), False),
    ],
)
def test_what_is_trivial(text: str, trivial: bool) -> None:
    tree = ("README.md", "src/a.py", "src/conftest.py", "shop.web/cart.py")
    assert is_trivial_plan(outline_plan(text, "x.md"), tree) is trivial
