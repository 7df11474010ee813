"""docs/check.py finds what it promises to find."""

from __future__ import annotations

import importlib.util
import subprocess
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from assay.contracts.pipeline.run import Lane
from assay.core.gradient import Weights
from assay.surfaces.cli.main import COMMANDS
from tests.needs import needs

SCRIPT = Path(__file__).parents[2] / "docs" / "check.py"


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    [problem] = docs.unlisted_decisions(tmp_path)
    assert "0002-forgotten.md is not listed" in problem


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
    docs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    narrow = docs.cli_reference()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert docs.cli_reference() == narrow
    for command in COMMANDS:
        if importlib.util.find_spec(command.module):
            assert f"## assay {command.name}\n" in narrow
    assert "## assay config show\n" in narrow
    assert "--install-completion" not in narrow
    assert "\x1b" not in narrow


def test_a_page_is_replaced_between_its_marks_and_nowhere_else(docs: ModuleType, tmp_path: Path) -> None:
    begin, end = docs.BEGIN.format("part"), docs.END.format("part")
    (tmp_path / "a.md").write_text(f"before\n{begin}old\n{end}after\n")
    page = docs.marked("a.md", {"part": lambda: "new"}, tmp_path)
    assert page == f"before\n{begin}\nnew\n{end}after\n"
    (tmp_path / "a.md").write_text(page)
    assert docs.marked("a.md", {"part": lambda: "new"}, tmp_path) == page


@pytest.mark.parametrize("lost", ["BEGIN", "END"])
def test_a_page_that_has_lost_a_mark_is_refused(docs: ModuleType, tmp_path: Path, lost: str) -> None:
    kept = docs.END if lost == "BEGIN" else docs.BEGIN
    (tmp_path / "a.md").write_text(f"text\n{kept.format('part')}")
    with pytest.raises(SystemExit, match=r"a\.md: the marks of its part are gone"):
        docs.marked("a.md", {"part": lambda: "new"}, tmp_path)


def test_the_plan_gates_tables_are_told_whole(docs: ModuleType) -> None:
    rules = docs.plan_rules()
    assert [rule for rule in docs.RULES if rules.count(f"`{rule}`") != 1] == []
    assert [row.when for row in docs.TABLE if row.when not in docs.decision_table()] == []
    budgets = docs.tool_budgets()
    assert "| Read | `read`, `list`, `symbols` | 8 | 3 | 3 | 14 |\n" in budgets
    assert "| git log | `git_log`, `git_show`, `git_diff` | – | 1 | – | 1 |\n" in budgets
    assert "- `surface`: never\n" in budgets


def test_a_tag_in_a_rules_words_is_shown(docs: ModuleType) -> None:
    assert "`<task>` elements" in docs.plan_rules()


def test_the_manual_names_every_setting(docs: ModuleType) -> None:
    page = docs.configuration()
    for section in docs.sections():
        assert f"## `[{section.name}]`" in page
        for setting in section.settings:
            assert f"| `{setting.key}` |" in page


def test_every_number_of_the_control_loop_is_explained(docs: ModuleType) -> None:
    assert list(docs.WEIGHTS) == [one.name for one in fields(Weights)]


def test_a_policy_is_shown_without_the_figures_of_a_round(docs: ModuleType) -> None:
    shown = docs.default_policy() + docs.other_policies()
    assert "{" not in shown and "| nearly there: same approach, tighter | `refine` | – |" in shown
    assert "| `break_symmetry` | the tools of what failed |" in shown
    assert "| `change_path` | what was in the way |" in shown


def test_every_lane_is_shown_with_what_it_costs(docs: ModuleType) -> None:
    shown = docs.lanes()
    assert [lane for lane in Lane if shown.count(f"| `{lane}` | {docs.LANES[lane]} |") != 1] == []
    assert "| as `standard` | 14 + 2 a task | 16 | 26 |\n" in shown
    assert "→ code review ×1 → commit | 2 + 1 a task | 3 | – |\n" in shown


def test_every_row_of_the_review_gate_is_explained_in_the_order_in_which_they_are_tried(docs: ModuleType) -> None:
    assert [row.decision for row in docs.GATE] == list(docs.REVIEWED)
    assert [line.split("`")[1] for line in docs.review_gate().splitlines() if "`" in line] == list(docs.REVIEWED)


def test_the_bounds_of_the_pipeline_are_those_that_hold(docs: ModuleType) -> None:
    assert f"before the run does | {docs.ITERATIONS} |\n" in docs.pipeline_bounds()
    assert f"before the run halts | {docs.RETURNS} |\n" in docs.pipeline_bounds()
