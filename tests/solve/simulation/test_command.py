"""`proofstone simulate`, as people run it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from proofstone.solve.simulation.rules import MIXES
from proofstone.solve.simulation.run import CONTENDERS
from tests.workshop import proofstone

FEW = ("--landscapes", "12")
SVG = "{http://www.w3.org/2000/svg}"


def test_it_prints_a_row_for_each_policy_with_its_interval(tmp_path: Path) -> None:
    done = proofstone("simulate", *FEW, home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"mixed: {MIXES['mixed'].summary}"
    assert [line.split()[0] for line in lines[2:8]] == list(CONTENDERS)
    assert all("% to " in line for line in lines[2:8])
    assert "12 tasks of each mix, seed 1, 3 replans and 300 s for each run" in done.stdout


def test_the_same_seed_says_the_same_and_another_another(tmp_path: Path) -> None:
    def said(seed: str) -> str:
        return proofstone("simulate", *FEW, "--seed", seed, "--json", home=tmp_path / "home").stdout

    assert said("1") == said("1")
    assert json.loads(said("1"))["mixes"] != json.loads(said("2"))["mixes"]


def test_the_document_has_every_figure(tmp_path: Path) -> None:
    done = proofstone(
        "simulate", *FEW, "--policy", "grid", "--mix", "noisy", "--replans", "1", "--seconds", "60", "--json",
        home=tmp_path / "home",
    )  # fmt: skip
    page = json.loads(done.stdout)
    assert (page["seed"], page["replans"], page["seconds"]) == (1, 1, 60)
    grid, naive, again = page["mixes"]["noisy"]
    assert [one["policy"] for one in (grid, naive, again)] == ["grid", "naive", "again"]
    assert grid["landscapes"] == 12
    assert grid["success"]["low"] <= grid["success"]["value"] <= grid["success"]["high"]
    assert set(grid["gains"]) == {"naive", "again"}
    assert naive["gains"]["naive"]["value"] == 0
    assert all(len(one["losses"]) <= 2 for one in (grid, naive, again))


def test_the_picture_has_a_bar_and_a_line_for_each_policy_of_each_mix(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    proofstone("simulate", "--landscapes", "2", "--mix", "all", "--plot", str(plot), home=tmp_path / "home")
    picture = ElementTree.fromstring(plot.read_text(encoding="utf-8"))
    rows = picture.findall(f"{SVG}g")
    assert len(rows) == len(MIXES)
    for row in rows:
        assert len(row.findall(f"{SVG}rect")) == len(CONTENDERS)
        assert len(row.findall(f"{SVG}polyline")) == len(CONTENDERS)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--policy", "greedy"), "--policy greedy: there is no such policy"),
        (("--mix", "easy"), "--mix easy: there is no such mix"),
        (("--landscapes", "1"), "--landscapes"),
        (("--replans", "-1"), "--replans"),
        (("--plot", "nowhere/plot.svg"), "--plot nowhere/plot.svg: there is no directory nowhere"),
    ],
)
def test_what_cannot_be_is_refused(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = proofstone("simulate", *args, home=tmp_path / "home")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
