"""The benchmark of roles: its cases can be told right from wrong, and recorded answers are read as they should be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.roles.__main__ import main, measure_quality
from benchmarks.roles.cases import CASES, Case, list_cases
from benchmarks.roles.measure import CaseResult, render_table, summarize
from benchmarks.roles.recorded import QUALITIES
from benchmarks.roles.situations import SITUATIONS, Situation

from proofstone.agents.roles.registry import ROLES

OF_ALL = pytest.mark.parametrize("case", list_cases(), ids=lambda case: case.name)


def lay_out(root: Path, situation: Situation, work: dict[str, str]) -> Path:
    for path, text in {**situation.files, **work}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_every_role_has_ten_cases() -> None:
    assert Counter(case.cases.role.name for case in list_cases()) == dict.fromkeys(ROLES, 10)
    assert len({situation.symbol for situation in SITUATIONS}) == 10


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.symbol)
def test_the_mistake_of_a_situation_is_one_and_its_fix_is_right(situation: Situation) -> None:
    call, _, value = situation.expected.partition(" is ")
    for code, is_right in ((situation.code, False), (situation.fixed, True)):
        names: dict[str, object] = {}
        exec(code, names)
        try:
            answer: object = eval(call, names)
        except (IndexError, ZeroDivisionError) as error:
            answer = error
        assert (answer == eval(value)) is is_right, answer
    assert situation.is_fixed_in(situation.fixed) and not situation.is_fixed_in(situation.code)


@OF_ALL
def test_a_right_answer_is_right_and_that_of_the_next_situation_is_not(case: Case, tmp_path: Path) -> None:
    role = case.cases.role
    assert case.request
    root = lay_out(tmp_path, case.situation, dict(case.cases.work(case.situation)))
    right = role.output.model_validate(case.cases.right(case.situation))
    assert case.cases.check(right, case.situation, root)
    if role.name in ALIKE:
        return
    other = SITUATIONS[case.situation.number % len(SITUATIONS)]
    wrong = role.output.model_validate(case.cases.right(other))
    unworked = lay_out(tmp_path / "unworked", case.situation, {})
    assert not case.cases.check(wrong, case.situation, unworked)


ALIKE = ("researcher", "knowledge", "challenger", "domain_expert", "devils_advocate")
"""Roles whose right answers name the same file in every situation."""


@pytest.mark.parametrize("name", ALIKE)
def test_an_answer_that_finds_nothing_is_wrong(name: str, tmp_path: Path) -> None:
    (cases,) = [cases for cases in CASES if cases.role.name == name]
    right = cases.right(SITUATIONS[0])
    nothing = {key: [] if isinstance(value, list) else value for key, value in right.items()}
    assert not cases.check(cases.role.output.model_validate(nothing), SITUATIONS[0], tmp_path)


@pytest.mark.parametrize("quality", QUALITIES, ids=lambda quality: quality.name)
def test_a_recorded_answer_is_read_or_asked_for_again(quality: object) -> None:
    chosen = next(each for each in QUALITIES if each is quality)
    for result in measure_quality(list_cases(("executor", "planner"), 1), chosen):
        assert result.is_right, result.fault
        assert result.is_valid_first is not chosen.needs_repair


def test_the_table_has_a_row_for_each_name() -> None:
    result = CaseResult("planner", "planner-1", True, True, False, True, tokens=100, seconds=2.0)
    other = CaseResult("planner", "planner-2", False, False, False, False, tokens=50, seconds=1.0, fault="timeout: x")
    (row,) = summarize([("planner", result), ("planner", other)])
    assert (row.cases, row.valid_first, row.valid, row.right, row.tokens, row.seconds) == (2, 1, 1, 1, 75, 1.5)
    assert "| planner | 2 | 1 | 0 | 1 | 1 | 75 | 1.5 |" in render_table("role", [row])


def test_a_backend_that_does_not_exist_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--backend", "api:nowhere:model", "--role", "perceiver", "--cases", "1"]) == 2
    assert "there is no provider `nowhere`" in capsys.readouterr().err
