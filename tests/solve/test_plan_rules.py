"""Which plans are not taken, and what the planner is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve import SolvePlanOutput, SubTaskDraft
from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionMode,
    DirectiveName,
    PlanDirective,
    Predicate,
    PredicateKind,
)
from proofstone.solve.rules.plan_rules import (
    SIMILARITY_LIMIT,
    Blocks,
    PlanConstraints,
    find_solve_plan_problems,
    is_echo,
    plan_similarity,
)
from tests.rows import each_row
from tests.solve.talk import INTENT, TOOLS, directive, draft, plan, plausible, verifiable

BREAK, APPROACH, PATH = DirectiveName.BREAK_SYMMETRY, DirectiveName.CHANGE_APPROACH, DirectiveName.CHANGE_PATH
FREE = PlanConstraints(TOOLS)
NO_RUN = directive(BREAK, blocked_tools=("run",))


def why(of: SolvePlanOutput, bounds: PlanConstraints = FREE) -> str:
    return "; ".join(find_solve_plan_problems(of, bounds, INTENT))


def test_a_plan_that_breaks_no_rule_is_taken() -> None:
    assert not find_solve_plan_problems(plan(), FREE, INTENT)


# Tools.


@each_row(
    ("tools", "told"),
    [
        (("read",), ""),
        (("run",), "subtask 1 uses run: the controller blocked it; available: read, glob, grep, write, edit"),
        (("read", "run"), "subtask 1 uses run: the controller blocked it; available: read, glob, grep, write, edit"),
        (("Run",), "subtask 1 uses Run, which does not exist; available: read, glob, grep, write, edit"),
        (("run ",), "subtask 1 uses run , which does not exist; available: read, glob, grep, write, edit"),
        ((), "subtask 1 does not name its tools, and some tools are blocked"),
    ],
)
@each_row("name", [BREAK, APPROACH])
@pytest.mark.seed("control-loop", "blocked-tools")
def test_a_blocked_tool_is_refused_by_its_exact_name(tools: tuple[str, ...], told: str, name: DirectiveName) -> None:
    assert why(plan(draft(tools=tools)), PlanConstraints(TOOLS, directive(name, blocked_tools=("run",)))) == told


def test_every_subtask_is_looked_at() -> None:
    two = plan(draft(tools=("read",)), draft(tools=("run",), sequence=2))
    assert why(two, PlanConstraints(TOOLS, NO_RUN)).startswith("subtask 2 uses run")
    unsaid = plan(draft(tools=("read",)), draft(tools=(), sequence=2))
    assert why(unsaid, PlanConstraints(TOOLS, NO_RUN)).startswith("subtask 2 does not name its tools")


def test_where_nothing_is_blocked_tools_need_not_be_named() -> None:
    assert not why(plan(draft(tools=())))


def test_a_tool_that_there_is_not_is_refused() -> None:
    assert why(plan(draft(tools=("curl",)))) == (
        "subtask 1 uses curl, which does not exist; available: read, glob, grep, run, write, edit"
    )


MEMORY = Calibration(blocked_tools=("grep",), blocked_targets=("old",))


@each_row(
    ("tools", "of", "memory", "blocked"),
    [
        (TOOLS, NO_RUN, Calibration(), {"run"}),
        (TOOLS, None, MEMORY, {"grep"}),
        (TOOLS, NO_RUN, MEMORY, {"run", "grep"}),
        (("run", "grep"), NO_RUN, MEMORY, {"run"}),
        (("grep",), None, MEMORY, set()),
        (("read", "run"), None, Calibration(blocked_tools=("run",)), set()),
        (TOOLS, None, Calibration(), set()),
    ],
)
def test_who_blocks_tools(
    tools: tuple[str, ...], of: PlanDirective | None, memory: Calibration, blocked: set[str]
) -> None:
    assert PlanConstraints(tools, of, memory).blocked_tools == blocked


def test_what_an_earlier_directive_has_blocked_is_blocked_under_one_that_blocks_nothing() -> None:
    bounds = PlanConstraints(
        TOOLS, directive(DirectiveName.REFINE), MEMORY, blocks=Blocks((("run",), ("edit",)), ("src/a.py",))
    )
    assert bounds.blocked_tools == {"run", "edit", "grep"}
    assert bounds.blocked_targets == {"src/a.py", "old"}
    assert "uses edit: the controller blocked it" in why(plan(draft(tools=("edit",))), bounds)
    resting = why(plan(draft(tools=("read",), files=("src/a.py",))), bounds)
    assert resting == "subtask 1 uses src/a.py: the controller blocked it"


@pytest.mark.seed("control-loop", "memory-must-not")
def test_what_memory_forbids_is_refused() -> None:
    bounds, forbids = (
        PlanConstraints(TOOLS, None, MEMORY),
        "memory forbids it (`proofstone memory list`, `--no-memory`)",
    )
    assert f"uses grep: {forbids}; available:" in why(plan(draft(tools=("grep",))), bounds)
    assert f"uses old/a.py: {forbids}" in why(plan(draft(files=("old/a.py",))), bounds)


def test_what_both_have_blocked_is_the_controllers() -> None:
    both = PlanConstraints(TOOLS, directive(BREAK, blocked_tools=("grep",), blocked_targets=("old/a.py",)), MEMORY)
    told = why(plan(draft(tools=("grep",), files=("old/a.py",))), both)
    assert told.count("the controller blocked it") == 2
    assert "memory" not in told


# Targets.


@each_row(
    ("blocked", "path", "refused"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "src/b.py", False),
        ("src/a.py", "src/a.pyc", False),
        ("src", "src/a.py", True),
        ("src/", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/a.py", "./src/a.py", True),
        ("src/a.py", "src//a.py", True),
        ("src/a.py", "src/x/../a.py", True),
        ("./src/a.py", "src/a.py", True),
        ("app/[id].ts", "app/[id].ts", True),
        ("app/[id].ts", "app/i.ts", False),
        ("https://example.invalid/rows", "https://example.invalid/rows", True),
    ],
)
def test_a_blocked_target_is_refused_by_its_path(blocked: str, path: str, refused: bool) -> None:
    bounds = PlanConstraints(TOOLS, directive(PATH, blocked_targets=(blocked,)))
    expected = f"subtask 1 uses {path}: the controller blocked it" if refused else ""
    assert why(plan(draft(files=(path,))), bounds) == expected


def test_targets_of_memory_and_controller_are_blocked_both() -> None:
    assert PlanConstraints(TOOLS, directive(PATH, blocked_targets=("a",)), MEMORY).blocked_targets == {"a", "old"}


# Sequence.


@each_row(
    ("numbers", "told"),
    [
        ((1,), ""),
        ((1, 1), ""),
        ((1, 2, 2, 3), ""),
        ((2, 1), ""),
        ((2,), "the sequence is 2: it must start at 1 and skip no number"),
        ((1, 3), "the sequence is 1, 3: it must start at 1 and skip no number"),
        ((2, 2, 3), "the sequence is 2, 3: it must start at 1 and skip no number"),
    ],
)
def test_a_sequence_begins_at_1_and_leaves_no_number_out(numbers: tuple[int, ...], told: str) -> None:
    assert why(plan(*(draft(sequence=number) for number in numbers))) == told


# Echoes.

EXISTS = Predicate(kind=PredicateKind.EXISTS, path="a")


@each_row(
    ("criterion", "echo"),
    [
        (plausible("Move rows, old store, new one"), True),
        (plausible("move the rows of the old store into the new one successfully"), True),
        (plausible("the task is done correctly"), True),
        (plausible("it works"), True),
        (plausible("???"), True),
        (plausible("rows old store new checksum"), True),  # four of five
        (plausible("rows old store checksum"), False),  # three of four
        (plausible("both hold equally many customers"), False),
        (verifiable(INTENT), False),
        (Criterion.model_validate({"criterion": INTENT, "mode": "verifiable", "predicate": EXISTS}), False),
        (Criterion(criterion=INTENT, command="  "), True),
    ],
)
def test_what_only_says_the_intent_again_is_an_echo(criterion: Criterion, echo: bool) -> None:
    assert is_echo(criterion, INTENT) == echo


def test_a_plan_whose_criteria_echo_is_refused() -> None:
    assert "only repeats the intent" in why(plan(criteria=(plausible(), plausible(INTENT))))
    echoing = draft(plausible("is done"), plausible("copy every row"), intent="Copy every row")
    assert why(plan(echoing)) == (
        "subtask 1: the criterion 'is done' only repeats its intent; "
        "subtask 1: the criterion 'copy every row' only repeats its intent"
    )


@each_row(
    ("text", "echo"),
    [
        ("old STORE", True),
        ("  rows of", True),
        (" ", True),
        ("four columns", True),
        ("42 rows", False),
        ("rose", False),
    ],
)
def test_words_that_one_was_told_prove_nothing_where_the_result_holds_them(text: str, echo: bool) -> None:
    predicate = Predicate(kind=PredicateKind.OUTPUT_CONTAINS, text=text)
    says = Criterion(criterion="the result says it", mode=CriterionMode.VERIFIABLE, predicate=predicate)
    assert is_echo(says, INTENT, "each has four columns") == echo
    own = draft(says, intent="Count what was moved")
    assert bool(find_solve_plan_problems(plan(own), FREE, INTENT, "each has four columns")) == echo
    assert bool(find_solve_plan_problems(plan(criteria=(says,)), FREE, INTENT, "each has four columns")) == echo


# Commands.


@each_row(
    ("command", "told"),
    [
        ("grep -qx 3 count.txt", ""),
        ("test -s out.txt && ! grep -q TODO out.txt", ""),
        ("cat out.txt | grep -q done", ""),
        ("true", "always succeeds"),
        (":", "always succeeds"),
        ("echo ok", "always succeeds"),
        ("exit 0", "always succeeds"),
        ("pytest -q || true", "always succeeds"),
        ("sh -c 'true'", "always succeeds"),
        ("pytest -q | tail -5", "is that of the last program in its pipe"),
    ],
)
def test_a_command_that_succeeds_anyway_is_refused(command: str, told: str) -> None:
    seen = Criterion(criterion="it can be seen", mode=CriterionMode.VERIFIABLE, command=command)
    for refused in (plan(draft(seen)), plan(criteria=(seen,))):
        said = why(refused)
        assert told in said
        assert bool(told) == bool(said)


# The same again.

FIRST = (draft(),)


def _again(
    changed: SubTaskDraft, name: DirectiveName | None = BREAK, earlier: tuple[tuple[SubTaskDraft, ...], ...] = (FIRST,)
) -> str:
    return why(plan(changed), PlanConstraints(TOOLS, directive(name) if name else None, Calibration(), earlier))  # type: ignore[arg-type]


@pytest.mark.seed("control-loop", "near-identical")
def test_the_plan_before_is_refused_after_break_symmetry() -> None:
    assert (
        _again(draft())
        == "the plan is almost an earlier one (similarity 1.00); break_symmetry demands another approach"
    )


OTHER = (draft(intent="Type what is missing", tools=("write",), files=("src/typed.py",)),)


@pytest.mark.parametrize("earlier", [(FIRST, OTHER), (OTHER, FIRST), (OTHER, FIRST, OTHER)])
def test_no_earlier_plan_of_the_task_may_come_again_after_break_symmetry(
    earlier: tuple[tuple[SubTaskDraft, ...], ...],
) -> None:
    assert "similarity 1.00" in _again(draft(), earlier=earlier)
    assert not _again(draft(intent="Restore from a dump", tools=("grep",), files=("src/dump.py",)), earlier=earlier)


@pytest.mark.parametrize(
    "changed",
    [
        draft(intent="With a script, copy every row"),
        draft(plausible("another criterion"), intent="copy EVERY row, script!"),
    ],
    ids=["words in another order", "other criteria"],
)
def test_other_words_for_the_same_are_refused_too(changed: SubTaskDraft) -> None:
    assert "almost an earlier one" in _again(changed)


@pytest.mark.parametrize(
    "changed",
    [
        draft(tools=("write",)),
        draft(files=("src/other.py",)),
        draft(files=()),
        draft(intent="Replicate the store by dump and restore"),
    ],
    ids=["another tool", "another file", "no file", "another intent"],
)
def test_a_plan_that_differs_in_one_of_the_three_is_taken(changed: SubTaskDraft) -> None:
    assert not _again(changed)


@each_row("name", [None, *(one for one in DirectiveName if one is not BREAK)])
def test_after_anything_else_the_same_plan_may_come_again(name: DirectiveName | None) -> None:
    assert not _again(draft(), name)


def test_where_there_is_no_plan_before_nothing_is_the_same() -> None:
    assert not _again(draft(), BREAK, ())
    assert not _again(draft(intent="the goal", tools=(), files=()), BREAK, ())


@pytest.mark.seed("control-loop", "near-identical")
def test_what_is_nearly_the_same_begins_at_the_threshold() -> None:
    """Two of five files, and all else the same: (1 + 0.4 + 1) / 3 is 0.8."""
    before = (draft(files=("a", "b", "c")),)
    at, below = draft(files=("a", "b", "d", "e")), draft(files=("a", "d", "e", "f"))
    assert plan_similarity((at,), before) == pytest.approx(SIMILARITY_LIMIT)
    assert "almost" in _again(at, earlier=(before,))
    assert not _again(below, earlier=(before,))


NAMES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(tuple)
DRAFTS = st.lists(
    st.builds(
        lambda intent, tools, files: draft(intent=intent, tools=tools, files=files),
        st.text("xyz ", min_size=1),
        NAMES,
        NAMES,
    ),
    min_size=1,
    max_size=3,
)


@given(DRAFTS, DRAFTS)
def test_similarity_is_a_share_the_same_both_ways_and_1_of_itself(
    one: list[SubTaskDraft], other: list[SubTaskDraft]
) -> None:
    assert 0 <= plan_similarity(one, other) <= 1
    assert plan_similarity(one, other) == plan_similarity(other, one)
    assert plan_similarity(one, one) == 1


def test_all_that_is_wrong_is_told_at_once_and_each_thing_once() -> None:
    bounds = PlanConstraints(TOOLS, directive(BREAK, blocked_tools=("run",), blocked_targets=("src",)))
    told = find_solve_plan_problems(
        plan(draft(tools=("run", "run"), sequence=2), criteria=(plausible("done"),)), bounds, INTENT
    )
    assert [one.split(",")[0].split(":")[0] for one in told] == [
        "subtask 1 uses run",
        "subtask 1 uses src/copy.py",
        "the sequence is 2",
        "the criterion 'done' only repeats the intent",
    ]
