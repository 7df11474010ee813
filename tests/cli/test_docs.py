"""docs/check.py finds what it promises to find."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from proofstone.agents.roles.models.gate import FailureType
from proofstone.check.rules.outcome import LAYER_TITLES, EvidenceLayer
from proofstone.cli.main import COMMANDS
from proofstone.common.models import Confidence, ConfidenceRating, Lane
from proofstone.ledger.schema import TABLES
from proofstone.solve.rules.gradient import LossWeights
from tests.needs import needs

SCRIPT = Path(__file__).parents[2] / "docs" / "check.py"


@pytest.fixture(scope="module")
def docs() -> Iterator[ModuleType]:
    """As a script it finds its own folder first."""
    sys.path.insert(0, str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("docs_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(SCRIPT.parent))


@pytest.fixture(scope="module")
def generators(docs: ModuleType) -> ModuleType:
    """With each of its modules, as the list of pages has imported it."""
    return importlib.import_module("generators")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("see [it](there.md)", None),
        ("see [it](there.md#a-heading-of-it)", None),
        ("see [it](#here)\n# Here", None),
        ("see [it](https://example.org/x)", None),
        ("```\n[it](gone.md)\n```", None),
        ("one\n\n[it](gone.md)", "page.md:3: link to gone.md: there is no such file"),
        ("![it](gone.png)", "page.md:1: link to gone.png: there is no such file"),
        ("```\ncode\n```\n[it](gone.md)", "page.md:4: link to gone.md: there is no such file"),
        ("[it](there.md#nothing)", "page.md:1: link to there.md#nothing: there is no such heading"),
    ],
)
def test_a_link_must_lead_somewhere(docs: ModuleType, tmp_path: Path, text: str, problem: str | None) -> None:
    (tmp_path / "there.md").write_text("# A `heading`, of it\n")
    (tmp_path / "page.md").write_text(text)
    assert list(docs.broken_links(tmp_path, Path("page.md"), text)) == ([problem] if problem else [])


@pytest.mark.parametrize("folder", ["work", "root", "home"])
def test_a_path_of_somebodys_machine_is_found(docs: ModuleType, folder: str) -> None:
    [problem] = docs.paths_of_machines(Path("a.md"), f"fine\nsee /{folder}/somebody/x\n")
    assert problem.startswith(f"a.md:2: /{folder}/")


@pytest.mark.parametrize("text", ["/home/user/x", "the /root", "$HOME/work/x", "https://a.b/work/x", "src/work/y"])
def test_made_up_and_relative_paths_are_fine(docs: ModuleType, text: str) -> None:
    assert list(docs.paths_of_machines(Path("a.md"), text)) == []


def test_a_decision_that_is_not_listed_is_found(docs: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "decisions"
    folder.mkdir(parents=True)
    (folder / "0001-listed.md").touch()
    (folder / "0002-forgotten.md").touch()
    (folder / "README.md").write_text("- [One](0001-listed.md)\n")
    [problem] = docs.unlisted(tmp_path)
    assert problem.startswith("docs/decisions/README.md: 0002-forgotten.md is not listed")


def test_a_page_that_is_not_listed_is_found(docs: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "docs" / "gate.md").touch()
    (tmp_path / "docs" / "how-to" / "forgotten.md").touch()
    (tmp_path / "docs" / "README.md").write_text("- [The gate](gate.md), and how-to/forgotten.md in words\n")
    [problem] = docs.unlisted(tmp_path)
    assert problem.startswith("docs/README.md: how-to/forgotten.md is not listed")


def test_a_generated_file_that_differs_is_out_of_date(docs: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("old")
    (tmp_path / "b.md").write_text("same")
    generated = {"a.md": lambda: "new", "b.md": lambda: "same", "c.md": lambda: "missing"}
    assert list(docs.out_of_date(tmp_path, generated)) == [
        "a.md: out of date; run `make docs`",
        "c.md: out of date; run `make docs`",
    ]


@needs("git")
def test_only_files_that_git_would_take_are_read(docs: ModuleType, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "ignored").write_text("x")
    (tmp_path / "binary").write_bytes(b"\0")
    (tmp_path / "é.md").write_text("x")
    assert set(docs.text_files(tmp_path)) == {Path(".gitignore"), Path("é.md")}


def test_the_reference_has_every_command_and_does_not_depend_on_the_terminal(
    generators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    narrow = generators.command_line.cli_reference()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert generators.command_line.cli_reference() == narrow
    for command in COMMANDS:
        if importlib.util.find_spec(command.module):
            assert f"## proofstone {command.name}\n" in narrow
    assert "## proofstone config show\n" in narrow
    assert "--install-completion" not in narrow
    assert "\x1b" not in narrow


def test_a_page_is_replaced_between_its_marks_and_nowhere_else(generators: ModuleType, tmp_path: Path) -> None:
    begin, end = generators.page.BEGIN.format("part"), generators.page.END.format("part")
    (tmp_path / "a.md").write_text(f"before\n{begin}old\n{end}after\n")
    page = generators.page.marked("a.md", {"part": lambda: "new"}, tmp_path)
    assert page == f"before\n{begin}\nnew\n{end}after\n"
    (tmp_path / "a.md").write_text(page)
    assert generators.page.marked("a.md", {"part": lambda: "new"}, tmp_path) == page


@pytest.mark.parametrize("lost", ["BEGIN", "END"])
def test_a_page_that_has_lost_a_mark_is_refused(generators: ModuleType, tmp_path: Path, lost: str) -> None:
    kept = generators.page.END if lost == "BEGIN" else generators.page.BEGIN
    (tmp_path / "a.md").write_text(f"text\n{kept.format('part')}")
    with pytest.raises(SystemExit, match=r"a\.md: the marks of its part are gone"):
        generators.page.marked("a.md", {"part": lambda: "new"}, tmp_path)


def test_the_plan_gates_tables_are_told_whole(generators: ModuleType) -> None:
    rules = generators.plan_gate.plan_rules()
    assert [rule for rule in generators.plan_gate.RULES if rules.count(f"`{rule}`") != 1] == []
    assert [
        row.when for row in generators.plan_gate.DECISION_TABLE if row.when not in generators.plan_gate.decision_table()
    ] == []
    budgets = generators.plan_gate.tool_budgets()
    assert "| Read | `read`, `list`, `symbols` | 8 | 3 | 3 | 14 |\n" in budgets
    assert "| git log | `git_log`, `git_show`, `git_diff` | – | 1 | – | 1 |\n" in budgets
    assert "- `surface`: never\n" in budgets


def test_a_tag_in_a_rules_words_is_shown(generators: ModuleType) -> None:
    assert "`<task>` elements" in generators.plan_gate.plan_rules()


def test_the_manual_names_every_setting(generators: ModuleType) -> None:
    page = generators.settings.configuration()
    for section in generators.settings.list_sections():
        assert f"## `[{section.name}]`" in page
        for setting in section.settings:
            assert f"| `{setting.key}` |" in page


def test_every_number_of_the_control_loop_is_explained(generators: ModuleType) -> None:
    assert list(generators.controller.WEIGHTS) == [one.name for one in fields(LossWeights)]


def test_a_policy_is_shown_without_the_figures_of_a_round(generators: ModuleType) -> None:
    shown = generators.controller.default_policy() + generators.controller.other_policies()
    assert "{" not in shown and "| nearly there: same approach, tighter | `refine` | – |" in shown
    assert "| `break_symmetry` | the tools of what failed |" in shown
    assert "| `change_path` | what was in the way |" in shown


def test_every_lane_is_shown_with_what_it_costs(generators: ModuleType) -> None:
    shown = generators.pipeline.lanes()
    assert [lane for lane in Lane if shown.count(f"| `{lane}` | {generators.pipeline.LANES[lane]} |") != 1] == []
    assert "| as `standard` | 14 + 2 a task | 16 | 26 |\n" in shown
    assert "→ code review ×1 → commit | 2 + 1 a task | 3 | – |\n" in shown


def test_every_row_of_the_review_gate_is_explained_in_the_order_in_which_they_are_tried(generators: ModuleType) -> None:
    assert [row.decision for row in generators.pipeline.REVIEW_GATE] == list(generators.pipeline.REVIEWED)
    assert [line.split("`")[1] for line in generators.pipeline.review_gate().splitlines() if "`" in line] == list(
        generators.pipeline.REVIEWED
    )


def test_the_bounds_of_the_pipeline_are_those_that_hold(generators: ModuleType) -> None:
    assert f"before the run does | {generators.pipeline.MAX_ITERATIONS} |\n" in generators.pipeline.pipeline_bounds()
    assert f"before the run halts | {generators.pipeline.MAX_RETURNS} |\n" in generators.pipeline.pipeline_bounds()


def test_a_bar_in_a_cell_is_no_border(generators: ModuleType) -> None:
    assert generators.page.table(("a", "---"), [("x|y", 1)]) == "| a | --- |\n|---|---|\n| x\\|y | 1 |\n"


def test_every_part_of_a_page_that_is_called_generated_is(generators: ModuleType) -> None:
    """A mark that nobody fills in would let what stands below it pass for true."""
    pages, page = generators.pages.MARKED, generators.page
    begun = page.BEGIN.format("(.+)").strip()
    for path in sorted((page.ROOT / "docs").rglob("*.md")):
        marks = set(re.findall(f"^{begun}$", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert marks == set(pages.get(str(path.relative_to(page.ROOT)), ())), path


def test_the_way_of_a_task_is_drawn_from_the_table_without_a_persons_words(generators: ModuleType) -> None:
    drawn, gate = generators.task_gate.course(), generators.task_gate
    for (state, kind), to in gate.TRANSITIONS.items():
        assert (f"    {state} --> {to}: {kind}\n" in drawn) == (kind not in gate.PERSONS)
    assert "[*] --> PENDING\n" in drawn and "APPROVED --> [*]\n" in drawn


def test_every_kind_of_failure_is_told_with_what_follows(generators: ModuleType) -> None:
    shown = generators.task_gate.retries()
    assert [kind for kind in FailureType if shown.count(f"| `{kind}` |") != 1] == []
    assert "| 1 time | 30 s |" in shown and "| never | – |" in shown
    assert "| `BLOCKED` | look again" in generators.task_gate.told()


def test_the_pipeline_is_drawn_with_every_step_and_every_way_back(generators: ModuleType) -> None:
    drawn, pipeline = generators.pipeline.flow(), generators.pipeline
    steps = pipeline.LANE_DEPTHS[Lane.STANDARD].steps
    assert [step for step in steps if f'"{step}"' not in drawn] == []
    assert drawn.count(" --> ") == len(steps) - 1
    assert drawn.count(" -.->|") == len(pipeline.BACK)


def test_the_policy_is_drawn_row_by_row(generators: ModuleType) -> None:
    drawn, controller = generators.controller.course(), generators.controller
    assert [drawn.count(word) for word in ("-->|yes|", "-->|no|")] == [
        len(controller.DEFAULT_POLICY),
        len(controller.DEFAULT_POLICY) - 1,
    ]
    assert "{" not in drawn.replace('{"', "")


def test_each_row_of_the_plan_gate_leads_where_it_decides(generators: ModuleType) -> None:
    drawn = generators.plan_gate.convergence()
    for number, row in enumerate(generators.plan_gate.DECISION_TABLE, start=1):
        [arrow] = [line for line in drawn.splitlines() if f'|"{number}: {row.status}"|' in line]
        assert arrow.endswith(row.verdict or "challenge")


def test_every_layer_and_every_table_of_the_ledger_is_told(generators: ModuleType) -> None:
    layers, tables = generators.evidence.layers(), generators.ledger.tables()
    assert [layer for layer in EvidenceLayer if f"| {layer} | {LAYER_TITLES[layer]} |" not in layers] == []
    assert [table for table in TABLES.values() if f"| `{table.name}` |" not in tables] == []


def test_the_confidence_that_is_told_is_what_the_code_says(
    generators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "| a minor finding is open | **high** |\n" in generators.evidence.of_a_run()
    monkeypatch.setattr(generators.evidence.rating, "rate_pipeline_run", lambda _: ConfidenceRating(Confidence.LOW))
    assert "**high**" not in generators.evidence.of_a_run()
    assert "weaker sandbox | **medium** |\n" in generators.evidence.of_a_check()


def test_a_rule_of_a_seed_is_shown_by_a_marked_test_or_says_why_not(generators: ModuleType, tmp_path: Path) -> None:
    seeds = generators.seeds
    (tmp_path / "gate.py").write_text("def decide() -> None: ...\n")
    text = """
pytestmark = [pytest.mark.ci, pytest.mark.seed("gate", "all")]
class TestIt:
    @pytest.mark.seed("gate", "one", "two")
    def test_it(self): ...
"""
    markers = tuple(seeds.find_markers("tests/test_it.py", text))
    assert [(marker.test, marker.id) for marker in markers] == [("", "all"), ("test_it", "one"), ("test_it", "two")]

    def found(*rules: tuple[str, dict[str, str]]) -> list[str]:
        made = tuple(seeds.SeedRule(seed="gate", id=id_, section="s", rule="r", **rest) for id_, rest in rules)
        return list(seeds.problems(made, markers, tmp_path))

    lives = {"where": "gate.py:decide"}
    shown = [("all", lives), ("one", lives), ("two", lives)]
    assert found(*shown, ("three", {**lives, "untested": "a model judges"}), ("four", {"differs": "why"})) == []
    for rules, problem in [
        (shown[:2], "tests/test_it.py: test_it: tests/seed_rules/gate.toml has no rule two"),
        ([*shown, ("three", lives)], "three: no test is marked with it"),
        ([*shown, shown[0]], "all: there are 2 rules of this id"),
        ([*shown[:2], ("two", {**lives, "untested": "why"})], "so `untested` is no longer true"),
        ([*shown[:2], ("two", {})], "two: say in `where`"),
        ([*shown[:2], ("two", {"where": "gate.py, gone.py"})], "two: there is no src/proofstone/gone.py"),
        ([*shown[:2], ("two", {"where": "gate.py:gone"})], "two: src/proofstone/gate.py has no gone"),
    ]:
        [told] = found(*rules)
        assert problem in told
    with pytest.raises(seeds.UnreadableRuleError, match="with strings"):
        list(seeds.find_markers("test_it.py", '@pytest.mark.seed("gate", RULE)\ndef test_it(): ...'))
