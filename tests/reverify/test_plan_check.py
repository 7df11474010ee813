"""Plans of agents, against their tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.models import ChangedSignature, WorkedFile
from proofstone.common.models import ChangeKind
from proofstone.common.risk import Risk
from proofstone.supervision.models.messages import PlanApproved, Rejected, WorkPlan
from proofstone.supervision.rules.mentions import Planned, check_plan, engine_risk
from tests.reverify.scene import ANSWER, HANDLER, LIMITER

SHOP = "src/shop/cart.py"
CHANGED = ChangedSignature(path=SHOP, symbol="Cart.add", public=True, planned=False)


def plan(*files: str, changes: str = "sum it up", risk: str = "🟡", impact: str = "none") -> WorkPlan:
    told = {"phase": 6, "files": files, "changes": changes, "risk": risk, "interface_impact": impact}
    return WorkPlan.model_validate(told)


@pytest.mark.parametrize(
    ("submitted", "against", "reason"),
    [
        (plan(SHOP), Planned((SHOP,)), ""),
        (plan("./" + SHOP), Planned(("src/**",)), ""),
        (plan(SHOP, "src/shop/__init__.py"), Planned((SHOP,)), ""),
        (plan("package.json", "package-lock.json"), Planned(("package.json",)), ""),
        (plan(SHOP, "src/shop/tax.py"), Planned((SHOP,)), "src/shop/tax.py is not a file of the task"),
        (plan(SHOP), Planned((SHOP, LIMITER), announced=(LIMITER,)), f"it omits {LIMITER}, which was announced"),
        (
            plan(SHOP),
            Planned(("src/**",), worked=(WorkedFile(path="src/x.py"),)),
            "src/x.py, which has already changed",
        ),
        (plan(SHOP, risk="🟢"), Planned((SHOP,)), "its risk is 🟡, not 🟢"),
        (plan(SHOP, risk="🟢"), Planned((SHOP,), absent=frozenset({SHOP})), ""),
        (plan(SHOP, risk="🔴"), Planned((SHOP,)), ""),
        (plan(HANDLER, risk="🟡"), Planned((HANDLER,)), "its risk is 🔴, not 🟡"),
        (plan(SHOP), Planned((SHOP,), floor=Risk.RED), "its risk is 🔴, not 🟡"),
        (
            plan(SHOP),
            Planned((SHOP,), worked=(WorkedFile(path=SHOP, added=("import hashlib",)),)),
            "its risk is 🔴, not 🟡",
        ),
        (plan(SHOP), Planned((SHOP,), signatures=(CHANGED,)), "the signature of Cart.add has changed"),
        (plan(SHOP, impact="a parameter more"), Planned((SHOP,), signatures=(CHANGED,)), "Cart.add has changed"),
        (plan(SHOP, impact="Cart.add is unchanged"), Planned((SHOP,), signatures=(CHANGED,)), "Cart.add has changed"),
        (plan(SHOP, impact="`add` takes a tax"), Planned((SHOP,), signatures=(CHANGED,)), ""),
        (plan(SHOP), Planned((SHOP,), signatures=(CHANGED.model_copy(update={"public": False}),)), ""),
        (plan(SHOP, changes="add a parameter to Cart.add"), Planned((SHOP,)), "its interface impact is `none`"),
        (plan(SHOP), Planned((SHOP,), said=ANSWER), "handler signature adds rate_config parameter"),
        (plan(SHOP, impact="handler takes rate_config"), Planned((SHOP,), said=ANSWER), ""),
    ],
)
def test_a_plan_is_approved_or_sent_back_with_the_reason(submitted: WorkPlan, against: Planned, reason: str) -> None:
    checked = check_plan(submitted, against)
    assert checked.approved is not bool(reason)
    if reason:
        assert isinstance(checked.answer, Rejected) and reason in (checked.answer.reason or "")
    else:
        assert checked.answer == PlanApproved(phase=6)


def test_the_revised_plan_of_the_seed_is_approved_when_its_files_were_given_to_it() -> None:
    revised = plan(HANDLER, LIMITER, changes="limit first", risk="🔴", impact="handler signature adds rate_config")
    given = Planned((HANDLER, LIMITER), absent=frozenset({LIMITER}), announced=(LIMITER,), said=ANSWER)
    assert check_plan(revised, given).approved
    assert check_plan(revised, Planned((HANDLER,))).reasons == (f"{LIMITER} is not a file of the task",)


def test_files_that_a_rule_grants_are_told() -> None:
    assert check_plan(plan("go.mod", "go.sum"), Planned(("go.mod",))).granted == ("go.sum",)


paths = st.sampled_from([SHOP, HANDLER, "docs/a.md", "tests/test_a.py", "src/migrations/1.sql", "x.toml"])


@given(st.lists(paths, min_size=1, unique=True), st.lists(paths, unique=True), st.sampled_from("🟢🟡🔴"))
def test_no_plan_with_a_strange_file_or_too_low_a_risk_is_approved(
    files: list[str], declared: list[str], risk: str
) -> None:
    against = Planned(tuple(declared), worked=(WorkedFile(path=files[0], kind=ChangeKind.MODIFIED),))
    checked = check_plan(plan(*files, risk=risk), against)
    low = "🟢🟡🔴".index(risk) < "🟢🟡🔴".index(engine_risk(tuple(files), against).mark)
    assert checked.approved is (set(files) <= set(declared) and not low)
