"""The loss of a run, attempt by attempt, as a picture: a line for each task, and one for the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from proofstone.contracts.pipeline.bundle import LossSeen
from proofstone.contracts.solve.messages import Loss
from proofstone.surfaces.report.svg import line, picture, text

_FIGURES: Final = {
    "L": ("the loss", "#000", ""),
    "D": ("how much failed", "#c0392b", "6 3"),
    "P": ("how much of it by the approach", "#8e5ea2", "2 3"),
    "Ω": ("how much of the tries and the time is used", "#3a86c8", "8 3 2 3"),
}
"""What each means, its colour, and its dashes: whoever sees no colours tells them apart all the same."""
_LEFT, _TOP, _BOTTOM, _HEIGHT = 50, 20, 200, 320
_APART, _NARROWEST = 110, 480


def loss_plot(losses: Sequence[LossSeen]) -> str:
    width = max(_NARROWEST, _LEFT + _APART * len(losses) + 20)
    told = "; ".join(f"{_name(one)}: L {one.direction.loss.L:.2f}, {one.direction.directive}" for one in losses)
    return picture(width, _HEIGHT, _parts(losses, width), title="The loss, attempt by attempt", told=told)


def _parts(losses: Sequence[LossSeen], width: float) -> Iterator[str]:
    most = max((1.0, *(one.direction.loss.L for one in losses)))
    for step in range(5):
        y = _y(step / 4)
        yield line(_LEFT, y, width - 20, y, "#ddd" if step else "#000")
        yield text(_LEFT - 6, y + 4, f"{most * step / 4:.3g}", anchor="end")
    for number, one in enumerate(losses):
        yield text(_x(number), _BOTTOM + 16, _name(one), anchor="middle")
        yield text(
            _x(number), _BOTTOM + 30, f"{one.direction.gradient.arrow} {one.direction.directive}", anchor="middle"
        )
    for name in _FIGURES:
        yield from _trajectories(name, losses, most)
    for number, (name, (means, colour, dashes)) in enumerate(_FIGURES.items()):
        y = _BOTTOM + 56 + 15 * number
        yield line(_LEFT, y - 4, _LEFT + 30, y - 4, colour, _wide(name), dashes=dashes)
        yield text(_LEFT + 38, y, f"{name}  {means}")


def _trajectories(name: str, losses: Sequence[LossSeen], most: float) -> Iterator[str]:
    """Points of one task are joined, and those of two never."""
    _, colour, dashes = _FIGURES[name]
    series: dict[str, list[tuple[float, float]]] = {}
    for number, one in enumerate(losses):
        point = _x(number), _y(_figures(one.direction.loss)[name] / most)
        series.setdefault(one.of, []).append(point)
    for points in series.values():
        for (x1, y1), (x2, y2) in pairwise(points):
            yield line(x1, y1, x2, y2, colour, _wide(name), dashes=dashes)
        for x, y in points:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 * _wide(name):.1f}" fill="none" stroke="{colour}"/>'


def _figures(loss: Loss) -> dict[str, float]:
    return {"L": loss.L, "D": loss.D, "P": loss.P, "Ω": loss.Omega}


def _name(one: LossSeen) -> str:
    return f"{one.of} #{one.number}"


def _wide(name: str) -> float:
    return 2.5 if name == "L" else 1.5


def _x(number: int) -> float:
    return _LEFT + _APART * (number + 0.5)


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)
