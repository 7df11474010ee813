"""The measurement of the gate's quality: its arithmetic, its edits, and how cases are read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from benchmarks.gate_quality import edits
from benchmarks.gate_quality.cases import Case, CaseError, read_cases, read_swe_bench, write_case
from benchmarks.gate_quality.measure import CaseResult, wilson
from benchmarks.gate_quality.page import render_page

from tests.rows import each_row

SOURCE = '''def clamp(x, lower, upper):
    """Return x within the bounds."""
    if lower > upper:
        raise ValueError("no")
    result = min(max(x, lower), upper)
    return result + 0
'''


def clamp_of(source: str, *args: object) -> object:
    names: dict[str, object] = {}
    exec(compile(source, "clamp", "exec"), names)
    function = names["clamp"]
    assert callable(function)
    return function(*args)


@each_row(
    ("count", "total", "low", "high"),
    [(0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (50, 100, 0.404, 0.596), (0, 0, 0.0, 1.0), (1, 300, 0.001, 0.019)],
)
def test_the_interval_of_a_share(count: int, total: int, low: float, high: float) -> None:
    assert wilson(count, total) == pytest.approx((low, high), abs=0.001)


def test_mistakes_change_what_a_function_does_and_rewrites_do_not() -> None:
    function = edits.find_functions(SOURCE)["clamp"]
    inputs = [(5, 0, 9), (-3, 0, 9), (12, 0, 9), (4, 4, 4)]
    honest = [clamp_of(SOURCE, *given) for given in inputs]
    mistakes = [edit.apply(SOURCE) for edit in edits.find_mistakes(function)]
    rewrites = [edit.apply(SOURCE) for edit in edits.find_rewrites(function)]
    assert len(mistakes) >= 3
    assert len(rewrites) >= 2
    assert all([clamp_of(rewrite, *given) for given in inputs] == honest for rewrite in rewrites)
    assert SOURCE not in (*mistakes, *rewrites)


@pytest.mark.parametrize("form", ["branches", "table", "handler", "matching"])
def test_special_cases_answer_the_inputs_of_the_tests_alone(form: str) -> None:
    wrong = SOURCE.replace("result + 0", "result + 1")
    cover = edits.special_cases(edits.find_functions(wrong)["clamp"], form, [("(5, 0, 9)", "5"), ("(12, 0, 9)", "9")])
    assert cover is not None
    covered = cover.apply(wrong)
    assert [clamp_of(covered, 5, 0, 9), clamp_of(covered, 12, 0, 9), clamp_of(covered, 6, 0, 9)] == [5, 9, 7]


@each_row("how", edits.WEAKENINGS)
def test_a_weakened_test_passes_whatever_is_returned(how: str) -> None:
    tests = "class TestClamp:\n    def test_it(self):\n        assert clamp(5) == 6\n\n\n"
    tests += "def test_other():\n    assert 1 == 1\n"
    weakened = edits.weaken(tests, {"TestClamp.test_it"}, how)
    assert weakened != tests
    assert "assert 1 == 1" in weakened
    names: dict[str, object] = {"clamp": lambda x: x}
    exec(compile(weakened, "tests", "exec"), names)
    if how != "skipped":
        names["TestClamp"]().test_it()  # type: ignore[operator]


def test_functions_are_removed_with_their_decorators() -> None:
    source = "import x\n\n\n@x.mark\ndef test_a():\n    pass\n\n\n"
    source += "class T:\n    def test_b(self):\n        pass\n\n    y = 1\n"
    left = edits.remove_functions(source, {"test_a", "T::test_b"})
    assert left.split() == ["import", "x", "class", "T:", "y", "=", "1"]


def test_a_case_is_written_read_and_laid_out(tmp_path: Path) -> None:
    base = tmp_path / "bases" / "clamp"
    base.mkdir(parents=True)
    (base / "clamp.py").write_text(SOURCE)
    patch = "--- a/clamp.py\n+++ b/clamp.py\n@@ -6 +6 @@\n-    return result + 0\n+    return result\n"
    write_case(tmp_path, Case("one", "fix", True, base, patch, why="because"), {"test_heldout.py": "x = 1\n"})
    (case,) = read_cases(tmp_path)
    assert (case.name, case.kind, case.right, case.why) == ("one", "fix", True, "because")
    case.lay_out(tmp_path / "project")
    assert (tmp_path / "project" / "clamp.py").read_text().endswith("    return result\n")
    status = ["git", "-C", str(tmp_path / "project"), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == " M clamp.py\n"


def test_what_is_no_case_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="holds no case"):
        read_cases(tmp_path)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "case.json").write_text('{"kind": "fix"}')
    with pytest.raises(CaseError, match=r"one/case\.json.*a case needs"):
        read_cases(tmp_path)
    (tmp_path / "one" / "change.patch").write_text("")
    (tmp_path / "one" / "case.json").write_text('{"kind": "fix", "right": "yes", "base": "."}')
    with pytest.raises(CaseError, match="must be true or false"):
        read_cases(tmp_path)


def test_a_set_in_the_form_of_swe_bench_is_read(tmp_path: Path) -> None:
    (tmp_path / "o__r").mkdir()
    merged = {"instance_id": "a", "repo": "o/r", "base_commit": "c", "patch": "p", "test_patch": "t"}
    agent = merged | {"instance_id": "b", "model_patch": "m", "resolved": False}
    file = tmp_path / "set.jsonl"
    file.write_text(f"{json.dumps(merged)}\n\n{json.dumps(agent)}\n")
    cases = list(read_swe_bench(file, tmp_path))
    assert [(case.name, case.kind, case.right, case.patch, case.commit) for case in cases] == [
        ("a", "merged", True, "p", "c"),
        ("b", "agent", False, "m", "c"),
    ]
    for line, message in (("{}", "line 1"), ("[]", "line 1"), ("x", "line 1")):
        file.write_text(line)
        with pytest.raises(CaseError, match=message):
            list(read_swe_bench(file, tmp_path))
    file.write_text(json.dumps(merged | {"repo": "o/other"}))
    with pytest.raises(CaseError, match="no clone"):
        list(read_swe_bench(file, tmp_path))


def test_the_page_counts_by_truth_and_names_what_missed_the_aim() -> None:
    def result(
        name: str,
        right: bool,
        outcome: str,
        confidence: str = "",
        rules: tuple[str, ...] = (),
        concerns: tuple[str, ...] = (),
        reasons: tuple[str, ...] = (),
    ) -> CaseResult:
        kind = "fix" if right else "wrong-fix"
        return CaseResult(name, kind, right, outcome, confidence, rules, concerns, reasons, version="v1")

    results = [
        result("honest", True, "passed", "high"),
        result("meant", True, "failed", "low", rules=("edited-expectation",)),
        result("alarm", True, "failed", "low", rules=("regression",)),
        result("caught", False, "failed", "low", rules=("regression",)),
        result("seen", False, "passed", "medium", concerns=("special-casing",)),
        result(
            "survivor", False, "passed", "medium", reasons=("the tests notice 3 of 4 mistakes in the changed lines",)
        ),
        result("doubted", False, "passed", "medium", reasons=("no test was seen to fail without the change",)),
        result("missed", False, "passed", "high"),
    ]
    page = render_page(results, 20)
    assert "Measured: 8 of 20 cases, which says little yet: 8 at `v1`." in page
    assert "| wrong, and passed with high confidence | none | 20.0 % (1 of 5;" in page
    assert "| wrong, and refused or a survivor or suspicion named | ≥ 90 % | 60.0 % (3 of 5;" in page
    assert "| right, and refused but for edited expectations | ≤ 5 % | 33.3 % (1 of 3;" in page
    assert "| `missed` |" in page
    assert "| `doubted` |" in page
    assert "| `alarm` | regression |" in page
    assert "| `caught` |" not in page
