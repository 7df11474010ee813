"""A planner's tasks, held against the rules."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import PlanOutput
from proofstone.pipeline.rules.planning import find_plan_problems, raise_plan_risks
from tests.pipeline.talk import design, plan, spec, task
from tests.rows import each_row


@each_row(
    ("path", "said", "risk"),
    [
        ("shop/cart.py", "🟢", "🟢"),
        ("shop/cart.py", "🟡", "🟡"),
        ("shop/cart.py", "🔴", "🔴"),
        ("shop/auth.py", "🟢", "🔴"),
        ("shop/auth/**", "🟡", "🔴"),
        ("tests/test_auth.py", "🟢", "🟢"),
        ("tests/test_auth.py", "🔴", "🔴"),
        ("db/migrations/1.sql", "🟢", "🔴"),
    ],
)
@pytest.mark.seed("pipeline", "risk-per-file")
def test_a_risk_is_only_ever_raised(path: str, said: RiskMark, risk: RiskMark) -> None:
    (found,) = raise_plan_risks(plan(task(files=(path,), risk=said))).tasks
    assert (found.files[0].risk, found.risk) == (risk, risk)
    assert found.size == ("Large" if risk == "🔴" else "Standard")


def test_one_red_file_among_green_ones_makes_the_task_large() -> None:
    (found,) = raise_plan_risks(plan(task(files=("docs/a.md", "shop/auth.py"), risk="🟢"))).tasks
    assert ([file.risk for file in found.files], found.risk, found.size) == (["🟢", "🔴"], "🔴", "Large")


@pytest.mark.seed("pipeline", "plan-rules")
def test_waves_follow_from_who_waits_for_whom() -> None:
    found = raise_plan_risks(plan(task("a"), task("b", after=("a",)), task("c")))
    assert found.waves == (("a", "c"), ("b",))
    assert found.dependency_graph == {"a": (), "b": ("a",), "c": ()}


def test_a_task_that_waits_for_three_others_is_refused_by_the_contract() -> None:
    with pytest.raises(ValidationError, match="at most 2 items"):
        task("d", after=("a", "b", "c"))


FOUR = ("a.py", "b.py", "c.py", "d.py")


@each_row(
    ("of", "why"),
    [
        (plan(task(files=FOUR)), "task T1 changes 4 production files; at most 3 may: split it"),
        (
            plan(task("a", files=("x.py",)), task("b", files=("x.py", "y.py"))),
            "tasks a and b may run together, and both may change x.py: "
            "let one depend on the other, or separate their files",
        ),
        (
            plan(task("a", files=("src/",)), task("b", files=("src/x.py",))),
            "tasks a and b may run together, and both may change src/: "
            "let one depend on the other, or separate their files",
        ),
        (
            plan(task(criteria=("AC-1", "AC-2", "AC-7"))),
            "task T1 names the criterion AC-7, which does not exist; known: AC-1, AC-2",
        ),
        (plan(task(criteria=("AC-2",))), "no task covers AC-1"),
        *(
            (
                plan(task(context=(pointer,))),
                f"task T1 points to {pointer!r}: it is neither the id of a requirement, a criterion or a decision, "
                "nor a path in the repository",
            )
            for pointer in ("D-9", "the design", "/etc/passwd", "../secrets.txt", "src/../../a.py")
        ),
        (plan(task(verify=("true",))), "`true` passes whatever was changed"),
        (plan(task(verify=("pytest -q | tail -1",))), "`pytest -q | tail -1` passes whatever was changed"),
        (plan(task(verify=("Check that the page looks right.",))), "<verify> is not a command"),
        (plan(task(verify=("grep -q '</verify>' a.xml",))), "would not run as written: write a plain command"),
        (
            plan(task(files=("a.py, b.py",))),
            "task T1: 'a.py, b.py' is not a plain path: name one file or glob per entry",
        ),
        (plan(task(files=("src/{a,b}.py",))), "is not a plain path"),
        (plan(task(files=("/etc/passwd",))), "task T1: '/etc/passwd' is absolute"),
        (plan(task(files=(".git/config",))), "task T1: '.git/config' belongs to git"),
        (plan(task(title="  ")), "this task has no <name>"),
        (plan(task("a", title="task-02"), task("b"), task("c", after=("b",))), "reads like an id: rename it"),
    ],
)
@pytest.mark.seed("pipeline", "plan-rules")
def test_what_is_not_taken_and_why(of: PlanOutput, why: str) -> None:
    assert any(why in one for one in find_plan_problems(raise_plan_risks(of), spec(), design()))


@each_row(
    "of",
    [
        plan(),
        plan(task(files=(*FOUR[:3], "tests/test_a.py", "docs/a.md"))),
        plan(task("a", files=("x.py",)), task("b", files=("x.py",), after=("a",))),
        plan(task("a", criteria=("AC-1",)), task("b", criteria=("AC-2",))),
        plan(task(context=("R-1", "AC-2", "D-2", "shop/old.py", "README.md", "./Makefile", "src/a.py:12"))),
        plan(task(files=("Makefile",), context=("Makefile",))),
        plan(task(verify=("ls", "pytest -q tests/test_a.py"))),
        plan(task(verify=("`pytest -q tests/test_a.py`",))),
        plan(task(verify=("$ pytest -q tests/test_a.py",))),
        plan(task(verify=("cd web && npm test -- cart", "mypy shop"))),
        plan(task(files=("./shop/cart.py", "src/**/*.py"))),
    ],
)
def test_what_is_taken(of: PlanOutput) -> None:
    assert find_plan_problems(raise_plan_risks(of), spec(), design()) == ()


def test_what_is_met_already_need_not_be_planned_again() -> None:
    assert find_plan_problems(plan(task(criteria=("AC-2",))), spec(), design(), met={"AC-1"}) == ()


def test_without_a_specification_nothing_can_be_held_against_criteria() -> None:
    assert find_plan_problems(plan(task(criteria=("anything",))), None) == ()


def test_a_plan_must_not_be_nearly_one_that_failed() -> None:
    assert find_plan_problems(plan(), spec(), design(), unlike=(plan(),)) == (
        "the plan is almost an earlier one (similarity 1.00), and another approach is required",
    )
    other = plan(task("x", title="Ask the bank", description="Something quite new."))
    assert find_plan_problems(other, spec(), design(), unlike=(plan(),)) == ()


def test_the_longest_texts_are_compared_too() -> None:
    long = plan(task(title="t" * 300, description="d " * 4000, files=tuple(f"tests/test_{n}.py" for n in range(60))))
    assert any("almost an earlier one" in one for one in find_plan_problems(long, spec(), design(), unlike=(long,)))
