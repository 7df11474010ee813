"""The page for the manual: everything about the tricks, nothing about the machine or the run."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from proofstone.common.models import Assurance
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
