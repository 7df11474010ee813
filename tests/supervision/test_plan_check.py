"""Plans of agents, against their tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.models import SignatureChange, WorkFile
from proofstone.common.models import ChangeKind
from proofstone.common.risk import Risk
from proofstone.supervision.models.messages import WorkPlan
from proofstone.supervision.rules.mentions import PlanExpectations, check_plan, compute_plan_risk
from tests.rows import each_row
from tests.supervision.watching import ANSWER, HANDLER, LIMITER

SHOP = "src/shop/cart.py"
CHANGED = SignatureChange(path=SHOP, symbol="Cart.add", public=True, planned=False)


def plan(*files: str, changes: str = "sum it up", risk: str = "🟡", impact: str = "none") -> WorkPlan:
    told = {"phase": 6, "files": files, "changes": changes, "risk": risk, "interface_impact": impact}
    return WorkPlan.model_validate(told)


@each_row(
    ("submitted", "against", "reason"),
    [
        (plan(SHOP), PlanExpectations((SHOP,)), ""),
        (plan("./" + SHOP), PlanExpectations(("src/**",)), ""),
        (plan(SHOP, "src/shop/__init__.py"), PlanExpectations((SHOP,)), ""),
        (plan("package.json", "package-lock.json"), PlanExpectations(("package.json",)), ""),
        (plan(SHOP, "src/shop/tax.py"), PlanExpectations((SHOP,)), "src/shop/tax.py is not a file of the task"),
        (
            plan(SHOP),
            PlanExpectations((SHOP, LIMITER), announced=(LIMITER,)),
            f"it omits {LIMITER}, which was announced",
        ),
        (
            plan(SHOP),
            PlanExpectations(("src/**",), observe_changes=(WorkFile(path="src/x.py"),)),
            "src/x.py, which has already changed",
        ),
        (plan(SHOP, risk="🟢"), PlanExpectations((SHOP,)), "its risk is 🟡, not 🟢"),
        (plan(SHOP, risk="🟢"), PlanExpectations((SHOP,), absent=frozenset({SHOP})), ""),
        (plan(SHOP, risk="🔴"), PlanExpectations((SHOP,)), ""),
        (plan(HANDLER, risk="🟡"), PlanExpectations((HANDLER,)), "its risk is 🔴, not 🟡"),
        (plan(SHOP), PlanExpectations((SHOP,), minimum_risk=Risk.RED), "its risk is 🔴, not 🟡"),
        (
            plan(SHOP),
            PlanExpectations((SHOP,), observe_changes=(WorkFile(path=SHOP, added=("import hashlib",)),)),
            "its risk is 🔴, not 🟡",
        ),
        (plan(SHOP), PlanExpectations((SHOP,), signatures=(CHANGED,)), "the signature of Cart.add has changed"),
        (
            plan(SHOP, impact="a parameter more"),
            PlanExpectations((SHOP,), signatures=(CHANGED,)),
            "Cart.add has changed",
        ),
        (
            plan(SHOP, impact="Cart.add is unchanged"),
            PlanExpectations((SHOP,), signatures=(CHANGED,)),
            "Cart.add has changed",
        ),
        (plan(SHOP, impact="`add` takes a tax"), PlanExpectations((SHOP,), signatures=(CHANGED,)), ""),
        (plan(SHOP), PlanExpectations((SHOP,), signatures=(CHANGED.model_copy(update={"public": False}),)), ""),
        (
            plan(SHOP, changes="add a parameter to Cart.add"),
            PlanExpectations((SHOP,)),
            "its interface impact is `none`",
        ),
        (plan(SHOP), PlanExpectations((SHOP,), last_answer=ANSWER), "handler signature adds rate_config parameter"),
        (plan(SHOP, impact="handler takes rate_config"), PlanExpectations((SHOP,), last_answer=ANSWER), ""),
    ],
)
@pytest.mark.seed("continuity", "two-gates")
def test_a_plan_is_approved_or_sent_back_with_the_reason(
    submitted: WorkPlan, against: PlanExpectations, reason: str
) -> None:
    reasons = check_plan(submitted, against)
    assert bool(reasons) is bool(reason)
    assert reason in "; ".join(reasons)


def test_the_revised_plan_of_the_seed_is_approved_when_its_files_were_given_to_it() -> None:
    revised = plan(HANDLER, LIMITER, changes="limit first", risk="🔴", impact="handler signature adds rate_config")
    given = PlanExpectations((HANDLER, LIMITER), absent=frozenset({LIMITER}), announced=(LIMITER,), last_answer=ANSWER)
    assert check_plan(revised, given) == ()
    assert check_plan(revised, PlanExpectations((HANDLER,))) == (f"{LIMITER} is not a file of the task",)


def test_a_plan_may_name_files_that_a_rule_grants() -> None:
    assert check_plan(plan("go.mod", "go.sum"), PlanExpectations(("go.mod",))) == ()


paths = st.sampled_from([SHOP, HANDLER, "docs/a.md", "tests/test_a.py", "src/migrations/1.sql", "x.toml"])


@given(st.lists(paths, min_size=1, unique=True), st.lists(paths, unique=True), st.sampled_from("🟢🟡🔴"))
def test_no_plan_with_a_strange_file_or_too_low_a_risk_is_approved(
    files: list[str], declared: list[str], risk: str
) -> None:
    against = PlanExpectations(tuple(declared), observe_changes=(WorkFile(path=files[0], kind=ChangeKind.MODIFIED),))
    reasons = check_plan(plan(*files, risk=risk), against)
    low = "🟢🟡🔴".index(risk) < "🟢🟡🔴".index(compute_plan_risk(tuple(files), against).mark)
    assert (not reasons) is (set(files) <= set(declared) and not low)
