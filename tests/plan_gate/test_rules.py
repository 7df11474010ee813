"""What code alone has against a plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proofstone.plans
from proofstone.agents.roles.models.plan_gate_records import ChallengeConfidence, PlanSeverity
from proofstone.common.globs import matches
from proofstone.plan_gate.rules.freeform import MAX_COMMANDS, MAX_CRITERIA
from proofstone.plan_gate.rules.objections import RULES
from proofstone.plan_gate.rules.outline import FileIntent, find_intent, outline_plan
from proofstone.plan_gate.rules.plan_rules import MAX_MINOR, MAX_PER_RULE, RuleFinding, find_rule_findings
from proofstone.plan_gate.rules.tree import MAX_COMPARED_NAMES, MAX_PATTERN_TRIES, BaseTree, PatternSet, find_uncovered
from tests.plans.reading import element, fixture
from tests.rows import each_row

BLOCKING, SIGNIFICANT, MINOR = PlanSeverity.BLOCKING, PlanSeverity.SIGNIFICANT, PlanSeverity.MINOR
TREE = ("README.md", "src/a.py", "src/parse.py", "shop/cart.py", "docs/ids.md", "tests/test_a.py", "db/0001_users.sql")
GOOD = """\
---
phase: 01
plan: 02
files_modified: [src/ids.py, tests/test_ids.py, src/parse.py, tests/test_parse.py]
must_haves:
  artifacts:
    - path: src/ids.py
---
# Ids

<context>
@docs/ids.md
@src/a.py
</context>

<task type="auto">
  <name>Make the id</name>
  <files>src/ids.py, tests/test_ids.py</files>
  <action>Write `Id`; it refuses the empty text.</action>
  <verify>pytest -q tests/test_ids.py</verify>
  <done>`Id("")` raises ValueError; all 4 tests of test_ids.py pass</done>
</task>

<task type="auto">
  <name>Use it</name>
  <files>src/parse.py, src/ids.py, tests/test_parse.py</files>
  <action>Return an `Id` from `parse` in `src/parse.py`.</action>
  <verify>pytest -q tests/test_parse.py tests/test_ids.py</verify>
  <done>`parse("a")` returns `Id("a")`</done>
</task>
"""


def findings(text: str, tree: tuple[str, ...] = TREE) -> tuple[RuleFinding, ...]:
    return find_rule_findings(outline_plan(text, "PLAN.md"), tree)


def told(text: str, tree: tuple[str, ...] = TREE) -> list[tuple[str, int, PlanSeverity]]:
    return [(one.rule, one.line, one.draft.severity) for one in findings(text, tree)]


def test_nothing_is_said_of_a_good_plan() -> None:
    assert findings(GOOD) == ()


def test_what_the_plan_itself_says_is_no_guess() -> None:
    (one,) = findings(GOOD.replace("[src/ids.py, tests/test_ids.py,", "[src/ids.py,"))
    assert (one.rule, one.draft.confidence) == ("files-modified", ChallengeConfidence.HIGH)


@each_row("name", ["plain", "waves", "graph", "pasted", "checkpoints"])
@each_row("tree", [(), ("README.md",), TREE])
def test_sound_plans_have_nothing_grave(name: str, tree: tuple[str, ...]) -> None:
    assert [one for one in told(fixture(name), tree) if one[2] is not MINOR] == []


def test_the_example_of_the_documentation_has_nothing_grave() -> None:
    text = (Path(__file__).parents[2] / "docs/plan.md").read_text(encoding="utf-8")
    assert outline_plan(text, "docs/plan.md").plan is not None
    assert [one for one in told(text, ("shop/cart.py", "tests/test_cart.py")) if one[2] is not MINOR] == []


PLANTED = """\
<task type="auto" id="one" depends_on="">
  <name>Round half up</name>
  <files>src/pars.py</files>
  <action>Fix the rounding in `src/pars.py`.</action>
  <verify>pytest -q tests/test_a.py</verify>
  <done>`total` rounds half up</done>
</task>

<task type="auto" id="two" depends_on="three">
  <name>Shout</name>
  <files>src/a.py</files>
  <action>Make it loud.</action>
  <verify>
    echo done
  </verify>
  <done>`shout` returns capitals</done>
</task>

<task type="auto" id="three" depends_on="two">
  <name>Whisper</name>
  <files>src/whisper.py</files>
  <action>Write `whisper`.</action>
  <verify>pytest -q tests/test_a.py</verify>
  <done>
    It works
  </done>
</task>

<task type="auto" id="four" depends_on="one">
  <name>Cart</name>
  <files>shop/cart.py</files>
  <action>Round in the cart too.</action>
  <verify>pytest -q tests/test_cart.py</verify>
  <done>the total of the cart is 12.50</done>
</task>

<task type="auto" id="five" depends_on="one">
  <name>Cart again</name>
  <files>shop/cart.py</files>
  <action>Sort the items. The key is TBD.</action>
  <verify>pytest -q tests/test_a.py</verify>
  <done>items are sorted by name</done>
</task>
"""


def test_each_planted_defect_is_found_on_its_line() -> None:
    assert told(PLANTED) == [
        ("cycle", 9, BLOCKING),
        ("vacuous-verify", 14, BLOCKING),
        ("missing-file", 3, SIGNIFICANT),
        ("vague-done", 25, SIGNIFICANT),
        ("missing-test", 33, SIGNIFICANT),
        ("overlapping-files", 37, SIGNIFICANT),
        ("unknown-in-step", 40, SIGNIFICANT),
    ]
    assert {one.rule for one in findings(PLANTED) if one.is_final} == {"cycle", "vacuous-verify"}


def test_a_challenge_says_where_why_and_what_would_be_right() -> None:
    one = next(one for one in findings(PLANTED) if one.rule == "missing-file")
    assert one.draft.claim == "line 3: src/pars.py is to be changed and is not there"
    assert one.draft.mitigation == "write src/parse.py"
    assert one.draft.confidence is ChallengeConfidence.HIGH
    assert one.draft.concern
    assert one.draft.failure_scenario
    assert one.draft.alternative


def test_every_rule_of_the_reader_and_the_linter_has_an_objection() -> None:
    folder = Path(str(proofstone.plans.__file__)).parent
    source = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = set(re.findall(r"(?:error|warning|_warn)\(\s*\"([a-z-]+)\"", source)) | {
        "vacuous-verify",
        "vacuous-heldout",
    }
    assert len(named) > 30
    assert named - set(RULES) == set()


@each_row(
    ("files", "action", "found"),
    [
        ("src/a.py", "Fix it.", []),
        ("src/new.py", "Do it.", []),
        ("src/new.py", "Create `src/new.py`.", []),
        ("lib/new.py", "Write the thing.", []),
        ("lib/new.py", "Do it.", []),
        ("lib/new.py", "Fix the sum.", ["lib/new.py is not there, and neither is its folder"]),
        ("lib/new.py, lib/__init__.py", "Fix the sum.", []),
        ("lib/new.py", "Set up a queue.", []),
        ("lib/new.py", "Pull Amount out of it.", []),
        ("lib/new.py", "Eine neue Klasse.", []),
        ("lib/new.py", "Change the port.", ["lib/new.py is not there, and neither is its folder"]),
        ("dist/main.js", "Fix the sum.", []),
        ("lib/new.py (new)", "Do it.", []),
        ("src/pars.py", "Do it.", ["src/pars.py is not there, but src/parse.py is"]),
        ("src/pars.py", "Add a flag.", ["src/pars.py is not there, but src/parse.py is"]),
        ("src/pars.py", "Create src/pars.py.", []),
        ("src/shop/cart.py", "Do it.", ["src/shop/cart.py is not there, but shop/cart.py is"]),
        ("src/b.py", "Fix `b.py`, please.", ["src/b.py is to be changed and is not there"]),
        ("src/b.py", "Write `b` in `src/b.py`.", []),
        ("src/b.py", "Fix the sum.", ["src/b.py is not there, and the step speaks only of changing"]),
        ("src/a.py, src/b.py", "Fix the sum.", []),
        ("db/0002_users.sql", "Do it.", []),
        ("tests/unit/test_new.py", "Do it.", []),
        ("src/", "Fix it.", []),
        ("src/*.py", "Fix it.", []),
    ],
)
def test_files_that_are_not_there(files: str, action: str, found: list[str]) -> None:
    text = element(files=files, action=action, verify="pytest -q tests/test_a.py")
    assert [one.draft.claim for one in findings(text)] == [f"line 3: {what}" for what in found]


@each_row(
    ("action", "found"),
    [
        ("Update the class Rate in lib/rates.py.", [("missing-file", SIGNIFICANT)]),
        ("Update `lib/rates.py`.", [("missing-file", SIGNIFICANT)]),
        ("Fix the sum in src/parse.py.", [("undeclared-file", MINOR)]),
        ("Create lib/rates.py, then update lib/rates.py.", []),
        ("Fix the sum in src/a.py.", []),
        ("Fix it in a.py.", []),
        ("Fix the sum as in src/parse.py.", []),
        ("Do not change src/parse.py.", []),
        ("Delete the old code in lib/old.py if it is there.", []),
        ("Fix it:\n```\nchange lib/x.py\n```\n", []),
        ("Update dist/main.js.", []),
        ("Look at lib/rates.py.", []),
    ],
)
def test_what_an_action_says_to_change(action: str, found: list[tuple[str, PlanSeverity]]) -> None:
    text = element(files="src/a.py", action=action, verify="pytest -q tests/test_a.py")
    assert [(rule, severity) for rule, _, severity in told(text)] == found


def test_what_another_task_lists_is_not_missing_where_it_is_spoken_of() -> None:
    one = element(files="src/a.py", action="Update lib/rates.py.", verify="pytest -q tests/test_a.py")
    two = element(name="Two", files="lib/rates.py", action="Write it.", verify="pytest -q tests/test_a.py")
    assert told(one + two) == []


def test_what_an_earlier_task_lists_is_there_and_what_a_later_one_lists_is_not() -> None:
    make = element(
        name="Make", files="lib/new.py, tests/test_new.py", action="Write it.", attributes='id="make" depends_on=""'
    )
    use = element(
        name="Use",
        files="lib/new.py",
        action="Fix lib/new.py.",
        verify="pytest -q tests/test_new.py",
        attributes='depends_on="make"',
    )
    assert told(make + use) == []
    assert told(use + make) == []  # by what it waits for, not by where it stands
    alone = use.replace('"make"', '""')
    assert told(alone) == [("missing-file", 3, SIGNIFICANT), ("missing-test", 5, SIGNIFICANT)]


@each_row(
    ("verify", "lines"),
    [
        ("pytest -q tests/test_new.py", [5]),
        ("pytest -q tests/test_new.py::test_one", [5]),
        ("pytest -q tests/test_a.py", []),
        ("cd src && pytest -q tests/test_a.py", []),
        ("test ! -e tests/test_old.py", []),
        ("pytest -q tests/test_*.py", []),
        ("python3 -m unittest tests.test_new", []),
    ],
)
def test_tests_that_are_not_there(verify: str, lines: list[int]) -> None:
    assert [one.line for one in findings(element(verify=verify)) if one.rule == "missing-test"] == lines


def test_what_the_head_and_the_context_promise() -> None:
    text = GOOD.replace("path: src/ids.py", "path: src/none.py").replace(
        "@docs/ids.md", "@docs/id.md @~/x.md @$HOME/y.md"
    )
    text = text.replace("files_modified: [src/ids.py, ", "files_modified: [")
    assert told(text) == [
        ("missing-artifact", 7, SIGNIFICANT),
        ("files-modified", 4, MINOR),
        ("missing-context", 12, MINOR),
    ]
    assert [one.draft.mitigation for one in findings(text)][-1] == "write docs/ids.md"


def test_what_is_open_outside_a_task_is_minor() -> None:
    assert told(f"# Plan\n\nThe owner is TBD.\n\n{element(verify='pytest -q tests/test_a.py')}") == [
        ("unknown", 3, MINOR)
    ]


def test_many_of_a_kind_are_told_as_one() -> None:
    text = element(action="\n".join(f"TBD {number}" for number in range(9)), verify="pytest -q tests/test_a.py")
    found = findings(text)
    assert [one.line for one in found] == [4, 5, 6, 7, 8, 9]
    assert len(found) == MAX_PER_RULE + 1
    assert found[-1].draft.claim == "line 9: 'TBD' is left open: TBD 5 (and 3 more of the kind, on lines 10, 11, 12)"


def test_what_refuses_the_plan_is_never_told_as_one() -> None:
    text = "".join(element(name=f"T{number}", files=f"src/f{number}.py", verify="true") for number in range(9))
    assert len([one for one in findings(text) if one.rule == "vacuous-verify"]) == 9


def test_up_to_three_minor_ones_are_each_told() -> None:
    text = "The owner is TBD.\n\nSo is the date: TBD.\n\n???\n\n" + element(verify="pytest -q tests/test_a.py")
    assert told(text) == [("unknown", 1, MINOR), ("unknown", 3, MINOR), ("unknown", 5, MINOR)]


def test_more_minor_ones_are_told_as_one_of_each_kind() -> None:
    files = "src/a.py, src/b.py, src/c.py, src/d.py"
    text = "TBD\n\n" * 7 + element(files=files, verify="pytest -q")
    found = findings(text)
    assert [(one.rule, one.line) for one in found] == [("unknown", 1), ("many-files", 15), ("broad-verify", 19)]
    assert found[0].draft.claim.endswith("(and 6 more of the kind, on lines 3, 5, 7, 9, 11, 13)")


def test_beyond_three_kinds_the_others_are_told_as_one_with_each_line_and_hint() -> None:
    files = "src/a.py, src/b.py, src/c.py, src/d.py"
    text = f"TBD\n\n<context>\n@docs/id.md\n</context>\n{element(files=files, verify='pytest -q') * 2}"
    found = [one for one in findings(text) if one.draft.severity is MINOR]
    assert len(found) == MAX_MINOR
    last = next(one for one in found if one.rule == "several")
    assert last.line == 1
    assert last.draft.claim.startswith("line 1: 'TBD' is left open; line 4: docs/id.md is mentioned but does not exist")
    assert "line 1: decide it here" in last.draft.mitigation
    assert "line 4: write docs/ids.md" in last.draft.mitigation


def test_minor_ones_take_no_place_from_graver_ones() -> None:
    text = "TBD\n\n" * 20 + element(action="Fix src/none.py. TBD", files="src/none.py")
    assert [one[2] for one in told(text)] == [SIGNIFICANT, SIGNIFICANT, MINOR]


def test_a_name_that_is_no_text_is_spelt_out() -> None:
    name = b"transformer_mod\xe9le.py".decode("utf-8", "surrogateescape")
    text = element(files="src/transformer_modele.py", verify="pytest -q tests/test_a.py")
    [one] = findings(text, (f"src/{name}", "tests/test_a.py"))
    spelt = r"src/transformer_mod\xe9le.py"
    assert one.draft.claim == f"line 3: src/transformer_modele.py is not there, but {spelt} is"
    assert one.draft.mitigation == f"write {spelt}"
    assert one.draft.model_dump_json()


def test_a_name_is_compared_with_few_of_many() -> None:
    tree = BaseTree([f"src/name_{number:05}x.py" for number in range(5_000)])
    beside = tree.find_similar_names("src/name_02500y.py")
    assert 0 < len(beside) <= MAX_COMPARED_NAMES
    assert tree.find_similar("src/name_02500y.py") == "src/name_02500x.py"


@pytest.mark.parametrize("wrong", ["xransformer_model.py", "transformer_modelx.py", "transfomer_model.py"])
def test_a_wrong_letter_anywhere_is_seen_among_many(wrong: str) -> None:
    others = [f"src/{letter * 4}{number}.py" for letter in "abtuxyz" for number in range(200)]
    assert BaseTree([*others, "src/transformer_model.py"]).find_similar(f"src/{wrong}") == "src/transformer_model.py"


@given(
    st.text("ab/.*?", max_size=12),
    st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join),
)
def test_a_glance_at_a_pattern_never_misses_what_it_covers(pattern: str, path: str) -> None:
    assert PatternSet().matches(pattern, path) == matches(pattern, path)


def test_patterns_are_tried_so_often_and_then_held_against_nobody() -> None:
    patterns = PatternSet([f"src/**/*{number}*.md" for number in range(50)], tries=60)
    assert not patterns.covers("src/a/b.py")
    assert patterns.tries == 10
    assert patterns.covers("src/a/b.py")


def test_many_patterns_on_many_files_take_a_bounded_number_of_tries() -> None:
    tree = BaseTree([f"src/m{number}/a_{number}.py" for number in range(2_000)])
    held = [tree.has(f"src/**/a_*{number}*.md") for number in range(400)]
    assert held[0] is False
    assert held[-1] is True
    listed = tuple(f"src/m{number}.py" for number in range(900))
    declared = tuple(f"lib/**/*{number}*.py" for number in range(900))
    assert len(listed) * len(declared) > MAX_PATTERN_TRIES
    assert len(find_uncovered(listed, declared)) < len(listed)


def test_of_one_step_no_more_is_taken_than_can_be_looked_at() -> None:
    lines = "".join(f"- the {'a' * (number % 30 + 1)}{'b' * (number // 30)} page is fast\n" for number in range(700))
    commands = " ".join(f"`pytest tests/test_{number}.py`" for number in range(700))
    found = outline_plan(f"1. Do it\n   {commands}\n\n## Done when\n{lines}", "x.md")
    assert [len(step.verify) for step in found.steps] == [MAX_COMMANDS]
    assert len(found.whole.done) + len(found.steps[0].done) == MAX_CRITERIA


def test_of_a_context_as_many_paths_are_judged_as_a_plan_may_list() -> None:
    paths = "\n".join(f"lib/name{letter}/{'x' * number}.py" for letter in "abcdefghij" for number in range(1, 100))
    text = f"<context>\n{paths}\n</context>\n{element(verify='pytest -q tests/test_a.py')}"
    [one] = findings(text)
    assert "(and 499 more of the kind" in one.draft.claim


@each_row(
    ("text", "found"),
    [
        ("Make everything better.\n", [("no-steps", 1, SIGNIFICANT)]),
        ("# A\n1. Fix src/a.py\n   Verify: `pytest -q tests/test_a.py`\n", []),
        ("# A\n1. Fix src/a.py\n2. b\n   Verify: `make lint`\n3. c\n", [("no-verification", 2, SIGNIFICANT)]),
        ("1. a\n   Verify: echo done\n", [("vacuous-verify", 2, SIGNIFICANT)]),
        ("1. a\n   Verify: `make lint`\n   Done when: it is fast\n", [("vague-done", 3, SIGNIFICANT)]),
        ("1. `make lint`\n\n## Acceptance criteria\n- user-friendly\n- 3 pages\n", [("vague-done", 4, SIGNIFICANT)]),
        ("1. Fix `src/pars.py`\n   Verify: `make lint`\n", [("missing-file", 1, SIGNIFICANT)]),
        ("1. Fix `parse.py`\n   Verify: `make lint`\n", []),
        ("1. Push to `owner/project`, update `core/thing`\n   Verify: `make lint`\n", []),
        ("- [ ] Fix `src/a.py`\n- [ ] Sort `src/a.py`\nVerify: `make lint`\n", [("overlapping-files", 2, SIGNIFICANT)]),
        ("1. Fix `src/a.py`\n2. Sort `src/a.py`\n\nVerify: `make lint`\n", []),
        ("1. a (depends on step 2)\n2. b (depends on step 1)\n\nVerify: `make lint`\n", [("cycle", 1, SIGNIFICANT)]),
        ("1. a (depends on step 1)\n2. b\n\nVerify: `make lint`\n", [("self-dependency", 1, SIGNIFICANT)]),
        ("1. a\n2. b (after step 1, and after 2 days)\n\nVerify: `make lint`\n", []),
        ("1. It works on Mondays.\n   Verify: `make lint`\n   Done: it works\n", [("vague-done", 3, SIGNIFICANT)]),
        ("Not lib/x.py-old.\n\nSee lib/x.py.\n\n1. a\n   Verify: `make lint`\n", [("missing-context", 3, MINOR)]),
        ("See lib/x.py.\n\n1. a\n   Verify: `make lint`\n", [("missing-context", 1, MINOR)]),
        ("We shall create lib/x.py.\n\n1. a\n   Verify: `make lint`\n", []),
        ("1. a TBD\n   Verify: `make lint`\n\nTBD\n", [("unknown-in-step", 1, SIGNIFICANT), ("unknown", 4, MINOR)]),
    ],
)  # fmt: skip
def test_texts_without_a_form_of_their_own(text: str, found: list[tuple[str, int, PlanSeverity]]) -> None:
    assert told(text) == found
    assert not any(one.is_final for one in findings(text))


def test_an_open_question_is_said_once() -> None:
    found = findings("1. a\n   Verify: `make lint`\n\n## Open questions\n- Do we keep it?\n- Who pays?\n")
    assert [one.draft.claim for one in found] == [
        "line 5: 'Do we keep it?' is left open",
        "line 6: 'Who pays?' is left open",
    ]


@each_row(
    ("text", "found"),
    [
        ("Create src/x.py.", FileIntent.CREATE),
        ("`src/x.py` ändern.", FileIntent.CHANGE),
        ("`src/x.py` neu anlegen.", FileIntent.CREATE),
        ("Change the port in src/x.py", FileIntent.CHANGE),
        ("Update the docs and create `src/x.py`.", FileIntent.CREATE),
        ("Fix y. Then src/x.py.", FileIntent.UNSAID),
        ("Extend `x.py`", FileIntent.CHANGE),
        ("Add a flag to `src/x.py`.", FileIntent.UNSAID),
        ("Put it into a new file `src/x.py`.", FileIntent.CREATE),
        ("Modify: src/x.py", FileIntent.CHANGE),
        ("src/x.py (new)", FileIntent.CREATE),
        ("Fix other/x.py", FileIntent.UNSAID),
        ("Fix it", FileIntent.UNSAID),
    ],
)
def test_what_a_sentence_means_to_do_with_a_file(text: str, found: FileIntent) -> None:
    assert find_intent(text, "src/x.py") is found
