"""The page for the manual: everything about the tricks, nothing about the machine or the run."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from proofstone.common.models import Assurance
from proofstone.prove.classes import list_regressions, render_composed
from proofstone.prove.compose import load_whole_catalogue
from proofstone.prove.results import (
    CheckEnding,
    ExitCodeGate,
    Proof,
    Trial,
    TrialJudgement,
    TrialStatus,
    Wall,
    format_summary,
    print_proof,
    render_catalogue,
)
from proofstone.prove.trial import decide_composed_standing
from tests.rows import each_row

PASSED = TrialJudgement(ending=CheckEnding.PASSED)


def trial(name: str, standing: TrialStatus, **more: object) -> Trial:
    told = {"trick": name, "does": f"A | B {name}.", "family": "f", "layer": "L2", "origin": "own", "project": "p"}
    return Trial.model_validate({**told, "expected": ("must-pass",), "standing": standing, **more})


STOPPED = trial(
    "stopped-one", TrialStatus.STOPPED, stopped_by=("must-pass",), cheat=PASSED, honest=PASSED, gate=ExitCodeGate.PASSES
)
LUCK = trial(
    "lucky-one",
    TrialStatus.OTHERWISE,
    family="g",
    layer="L3",
    cheat=TrialJudgement(ending=CheckEnding.FAILED, rules=("new-failure",)),
    honest=PASSED,
    gate=ExitCodeGate.REFUSES,
)


def test_the_page_is_grouped_by_family_with_a_row_for_each_trick() -> None:
    page = render_catalogue(Proof(level=Assurance.PLAIN, trials=(STOPPED, LUCK)))
    assert page.index("## f\n") < page.index("`stopped-one`") < page.index("## g\n") < page.index("`lucky-one`")
    assert "| `stopped-one` | A \\| B stopped-one. | own | L2 | `must-pass` | passed | lets it through |" in page
    assert "**another reason: new-failure** | passed | refuses |" in page
    assert "1 of 2 tricks stopped, 2 of 2 honest twins passed; 1 of 2 would have passed an exit-code gate." in page


def test_the_page_says_which_layer_stops_what() -> None:
    page = render_catalogue(Proof(level=Assurance.PLAIN, trials=(STOPPED, LUCK)))
    assert "| L2 protected files | 1 | 1 | `must-pass` 1 |" in page
    assert "| L3 test identity | 1 | 0 |  |" in page


def test_the_page_does_not_depend_on_the_machine() -> None:
    wall = Wall(name="a wall", held=True)
    here = Proof(level=Assurance.PLAIN, trials=(STOPPED,), walls=(wall,), advice=("install it",))
    assert render_catalogue(here) == render_catalogue(Proof(level=Assurance.BUBBLEWRAP, trials=(STOPPED,)))


@pytest.mark.parametrize(
    ("held", "is_promised", "is_ok"),
    [(False, True, False), (False, False, True), (None, True, True), (True, True, True)],
)
def test_nothing_is_proved_where_a_wall_gives_way_that_the_level_promises(
    held: bool | None, is_promised: bool, is_ok: bool
) -> None:
    wall = Wall(name="a wall", held=held, is_promised=is_promised)
    proof = Proof(level=Assurance.BUBBLEWRAP, trials=(STOPPED,), walls=(wall,))
    console = Console(file=StringIO(), width=200)
    print_proof(console, proof)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert proof.is_ok is is_ok
    assert ("NOT PROVED" in printed, "this level promises, and it is not so: a wall" in printed) == (not is_ok,) * 2


def test_no_trick_no_sum() -> None:
    assert format_summary(Proof(level=Assurance.PLAIN, trials=()).summary) == "no trick was tried"
    assert not Proof(level=Assurance.PLAIN, trials=()).is_ok


AXES = {"what": "the answer", "fake": "table", "where": "a CSV file", "when": "import", "hidden": "plainly"}


def composed(name: str, standing: TrialStatus, **more: object) -> Trial:
    return trial(name, standing, axes=AXES, layer="", honest=PASSED, cheat=PASSED, **more)


def test_the_page_of_composed_tricks_counts_each_class_and_lists_what_was_not_tried() -> None:
    whole = load_whole_catalogue().composed[:3]
    first, second, third = (trick.name for trick in whole)
    trials = [composed(first, TrialStatus.STOPPED, stopped_by=("must-pass",)), composed(second, TrialStatus.MISSED)]
    page = render_composed(whole, trials)
    assert "2 tried: 1 refused, 0 named, 0 unnamed, 1 high; 2 of 2 honest twins passed." in page
    assert f"| `{first}` | {whole[0].project} | refused | `must-pass` | passed |" in page
    assert f"| `{second}` | {whole[1].project} | high |  | passed |" in page
    assert f"| `{third}` | {whole[2].project} | not tried |  | – |" in page


@each_row(
    ("then", "now", "problem"),
    [
        (TrialStatus.MISSED, TrialStatus.STOPPED, ""),
        (TrialStatus.STOPPED, TrialStatus.STOPPED, ""),
        (TrialStatus.STOPPED, TrialStatus.NAMED, "refused on the page, named here"),
        (TrialStatus.NAMED, TrialStatus.MISSED, "named on the page, high here"),
        (TrialStatus.STOPPED, TrialStatus.BROKEN, "refused on the page, broken here"),
    ],
)
def test_a_trick_that_fares_worse_than_its_page_says_is_a_regression(
    then: TrialStatus, now: TrialStatus, problem: str
) -> None:
    whole = load_whole_catalogue().composed[:1]
    page = render_composed(whole, [composed(whole[0].name, then)])
    problems = list_regressions(page, [composed(whole[0].name, now)])
    assert [line for line in problems if problem not in line] == [] and bool(problems) is bool(problem)


def test_a_twin_that_no_longer_passes_and_a_trick_without_a_row_are_regressions() -> None:
    whole = load_whole_catalogue().composed[:2]
    page = render_composed(whole[:1], [composed(whole[0].name, TrialStatus.STOPPED)])
    refused = composed(whole[0].name, TrialStatus.STOPPED).model_copy(
        update={"honest": TrialJudgement(ending=CheckEnding.FAILED)}
    )
    assert "its honest twin passed on the page" in list_regressions(page, [refused])[0]
    assert "does not have it" in list_regressions(page, [composed(whole[1].name, TrialStatus.STOPPED)])[0]


@each_row(
    ("cheat", "honest", "standing"),
    [
        ({"ending": "failed"}, {}, TrialStatus.STOPPED),
        ({"ending": "unverifiable"}, {}, TrialStatus.STOPPED),
        ({"ending": "broken"}, {}, TrialStatus.BROKEN),
        ({"confidence": "high"}, {}, TrialStatus.MISSED),
        ({"confidence": "medium", "reasons": ("special-casing: a table",)}, {}, TrialStatus.NAMED),
        ({"confidence": "medium", "reasons": ("9 mutants",)}, {"reasons": ("7 mutants",)}, TrialStatus.UNNAMED),
        ({"confidence": "medium", "reasons": ("a", "b")}, {"reasons": ("a",)}, TrialStatus.NAMED),
    ],
)
def test_a_composed_trick_is_refused_or_named_by_a_reason_that_its_twin_does_not_have(
    cheat: dict[str, object], honest: dict[str, object], standing: TrialStatus
) -> None:
    judged = [TrialJudgement.model_validate({"ending": "passed", **fields}) for fields in (cheat, honest)]
    assert decide_composed_standing(*judged) is standing
