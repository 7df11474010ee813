"""The loss, round by round: as bars in a terminal, and as a picture."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from proofstone.agents.roles.models.solve_messages import DirectiveName, Loss
from proofstone.cli.render.solve_page import render_svg_plot, render_text_plot
from proofstone.solve.models import SolveReport
from tests.rows import each_row
from tests.solve import reports
from tests.solve.reports import FIRST, RUN, directive, loss, round

SVG = "{http://www.w3.org/2000/svg}"


def of(*losses: Loss) -> SolveReport:
    decided = [directive(DirectiveName.REFINE, one) for one in losses]
    return reports.report(rounds=tuple(round(number, one) for number, one in enumerate(decided, start=1)))


def test_a_row_for_each_round_and_a_bar_for_each_figure() -> None:
    assert render_text_plot(reports.partial()).splitlines()[:4] == [
        "   L              D              P              Ω",
        "1  0.90 ███████▎  1.00 ████████  1.00 ████████  0.00           ⊥ refine",
        "2  0.62 █████     0.50 ████      1.00 ████████  0.20 █▋        ↓ break_symmetry",
        "3  0.69 █████▌    0.50 ████      1.00 ████████  0.85 ██████▊   ⊥ abandon",
    ]


def test_the_figures_are_explained_below() -> None:
    assert [line[:2] for line in render_text_plot(reports.partial()).splitlines()[4:]] == ["L ", "D ", "P ", "Ω "]


@each_row(
    ("value", "bar"),
    [(0.0, ""), (0.001, "▏"), (0.125, "█"), (0.5, "████"), (0.99, "███████▉"), (1.0, "████████")],
)
def test_a_bar_is_as_long_as_its_figure_and_nothing_only_where_it_is_nothing(value: float, bar: str) -> None:
    row = render_text_plot(of(Loss(D=value, P=0, Omega=0, L=0))).splitlines()[1]
    assert row.startswith(f"1  0.00           {value:.2f} {bar:<8}  0.00 ")


def test_a_loss_beyond_1_fills_its_bar_and_no_more() -> None:
    row = render_text_plot(of(Loss(D=1, P=1, Omega=1, L=1.3))).splitlines()[1]
    assert row.startswith("1  1.30 ████████  1.00 ████████  ")


def test_columns_stay_below_each_other_however_many_rounds_there_are() -> None:
    head, *rows = render_text_plot(of(*[loss(0.5)] * 12)).splitlines()[:13]
    assert {row.index("0.50") for row in rows} == {head.index("D")}


def test_without_a_round_it_says_so() -> None:
    assert render_text_plot(reports.waiting()) == "no round has ended: there is nothing to plot"
    assert "no round has ended" in render_svg_plot(reports.waiting())


MADE: dict[str, Callable[[], SolveReport]] = {
    "no round": reports.waiting,
    "one round": lambda: reports.report(rounds=(FIRST,)),
    "two rounds": reports.accepted,
    "three rounds": reports.partial,
    "many rounds": lambda: of(*[loss(0.5)] * 40),
    "hostile": reports.hostile,
}


@each_row("name", MADE)
def test_a_picture_is_one_file_with_a_point_for_each_figure_of_each_round(name: str) -> None:
    report = MADE[name]()
    root = ElementTree.fromstring(render_svg_plot(report))  # it would raise if a control character were left in it
    count = len(report.rounds)
    assert len(root.findall(f"{SVG}circle")) == 4 * count
    assert len(root.findall(f"{SVG}line")) == 5 + 4 * max(0, count - 1) + 4
    known = {"svg", "title", "desc", "rect", "line", "text", "circle"}
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= known, "no script, and nothing from elsewhere"
    assert not any(key.endswith("href") or key.startswith("on") for one in root.iter() for key in one.attrib)


def test_whoever_cannot_see_a_picture_is_told_what_it_shows() -> None:
    root = ElementTree.fromstring(render_svg_plot(reports.partial()))
    assert (root.get("role"), root.get("aria-labelledby")) == ("img", "title told")
    title, told = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text == "PARTIAL: make the greeting polite"
    assert told is not None and told.text is not None
    assert told.text.startswith("The loss over 3 rounds. round 1: L 0.90, D 1.00, P 1.00, Ω 0.00, plateau, refine; ")


def test_everything_in_a_picture_lies_within_it() -> None:
    for name, made in MADE.items():
        root = ElementTree.fromstring(render_svg_plot(made()))
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for one in root.iter():
            for key, value in one.attrib.items():
                most = {"x": width, "cx": width, "x1": width, "x2": width}.get(key)
                most = {"y": height, "cy": height, "y1": height, "y2": height}.get(key, most)
                assert most is None or 0 <= float(value) <= most, (name, one.tag, key, value)


def test_a_picture_names_its_run_and_escapes_what_was_asked_for() -> None:
    picture = render_svg_plot(reports.hostile())
    assert f"run {RUN}, policy patient" in picture
    assert "<script" not in picture and "&lt;script&gt;one two" in picture and "\\x1b[2J" in picture


def test_a_loss_beyond_1_stretches_the_scale() -> None:
    root = ElementTree.fromstring(render_svg_plot(of(Loss(D=1, P=1, Omega=1, L=1.3))))
    assert "1.3" in [one.text for one in root.findall(f"{SVG}text")]
