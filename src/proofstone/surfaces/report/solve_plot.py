"""The loss of a run of the control loop, round by round: in the terminal as bars, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from proofstone.contracts.solve.report import SolveReport, SolveRound
from proofstone.core.counted import counted
from proofstone.surfaces.report.solve_words import FIGURES, figures, headline, one_line, signed
from proofstone.surfaces.report.svg import line, picture, text

_BAR: Final = 8
_EIGHTHS: Final = "▏▎▍▌▋▊▉█"
_NOTHING: Final = "no round has ended"

_COLOURS: Final = {"L": "#000", "D": "#c0392b", "P": "#8e5ea2", "Ω": "#3a86c8"}
_DASHES: Final = {"L": "", "D": "6 3", "P": "2 3", "Ω": "8 3 2 3"}
"""Whoever sees no colours tells them apart all the same."""
_LEFT, _TOP, _BOTTOM, _HEIGHT = 60, 70, 250, 380
_APART, _NARROWEST = 130, 560


# In the terminal.


def text_plot(report: SolveReport) -> str:
    """A row for each round, a bar for each figure: downwards one reads where it went."""
    if not report.rounds:
        return f"{_NOTHING}: there is nothing to plot"
    head = "  ".join(name.ljust(_BAR + 5) for name in FIGURES)
    wide = len(str(max(one.number for one in report.rounds)))
    rows = [f"{one.number:>{wide}}  {_bars(one)}  {_direction(one)}" for one in report.rounds]
    legend = [f"{name}  {said}" for name, said in FIGURES.items()]
    return "\n".join([f"{'':{wide}}  {head}".rstrip(), *rows, *legend])


def _bars(round: SolveRound) -> str:
    shares = figures(round.directive.loss).values()
    return "  ".join(f"{share:.2f} {_bar(share).ljust(_BAR)}" for share in shares)


def _bar(share: float) -> str:
    """In eighths of a character, and no shorter than one where there is something. L alone can be more than 1."""
    eighths = round(min(max(share, 0), 1) * _BAR * 8) or int(share > 0)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")


def _direction(round: SolveRound) -> str:
    directive = round.directive
    return f"{directive.gradient.arrow} {directive.directive}"


# As a picture.


def svg_plot(report: SolveReport) -> str:
    width = max(_NARROWEST, _LEFT + _APART * len(report.rounds) + 40)
    return picture(width, _HEIGHT, _parts(report, width), title=_title(report), told=_told(report.rounds))


def _title(report: SolveReport) -> str:
    return f"{headline(report)}: {one_line(report.task.raw_input, 80)}"


def _told(rounds: Sequence[SolveRound]) -> str:
    if not rounds:
        return f"{_NOTHING}."
    return f"The loss over {counted(len(rounds), 'round')}. {'; '.join(map(_in_words, rounds))}."


def _in_words(round: SolveRound) -> str:
    directive = round.directive
    shares = ", ".join(f"{name} {share:.2f}" for name, share in figures(directive.loss).items())
    return f"round {round.number}: {shares}, {directive.gradient}, {directive.directive}"


def _parts(report: SolveReport, width: float) -> Iterator[str]:
    yield text(_LEFT, 20, _title(report), size=13)
    yield text(_LEFT, 36, f"run {report.run_id}, policy {report.policy}")
    most = max((1.0, *(one.directive.loss.L for one in report.rounds)))
    for step in range(5):
        y, value = _y(step / 4), most * step / 4
        yield line(_LEFT, y, width - 40, y, "#ddd" if step else "#000")
        yield text(_LEFT - 6, y + 4, f"{value:.3g}", anchor="end")
    if not report.rounds:
        yield text(width / 2, (_TOP + _BOTTOM) / 2, _NOTHING, anchor="middle", size=13)
    for number, one in enumerate(report.rounds):
        yield from _below(_x(number), one)
    for name in FIGURES:
        yield from _trajectory(name, [figures(one.directive.loss)[name] / most for one in report.rounds])
    yield from _legend()


def _below(x: float, round: SolveRound) -> Iterator[str]:
    """What was decided, below the round after which it was."""
    directive = round.directive
    yield text(x, _BOTTOM + 16, f"round {round.number}", anchor="middle")
    yield text(x, _BOTTOM + 30, f"∇L {signed(directive.grad_l)} {directive.gradient.arrow}", anchor="middle")
    yield text(x, _BOTTOM + 44, directive.directive, anchor="middle")


def _trajectory(name: str, shares: Sequence[float]) -> Iterator[str]:
    colour, dashes = _COLOURS[name], _DASHES[name]
    wide = 2.5 if name == "L" else 1.5
    points = [(_x(number), _y(share)) for number, share in enumerate(shares)]
    for (x1, y1), (x2, y2) in pairwise(points):
        yield line(x1, y1, x2, y2, colour, wide, dashes=dashes)
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 * wide:.1f}" fill="none" stroke="{colour}"/>'


def _legend() -> Iterator[str]:
    for number, (name, said) in enumerate(FIGURES.items()):
        y = _BOTTOM + 70 + 15 * number
        yield line(_LEFT, y - 4, _LEFT + 30, y - 4, _COLOURS[name], 2.5 if name == "L" else 1.5, dashes=_DASHES[name])
        yield text(_LEFT + 38, y, f"{name}  {said}")


def _x(number: int) -> float:
    return _LEFT + _APART * (number + 0.5)


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)
