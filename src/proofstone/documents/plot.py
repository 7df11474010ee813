"""Draw the loss of a run as a plot in SVG: a point for each attempt, a line for each figure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from proofstone.documents.svg import svg_line, svg_picture, svg_text

_COLOURS: Final = {"L": "#000", "D": "#c0392b", "P": "#8e5ea2", "Ω": "#3a86c8"}
_DASHES: Final = {"L": "", "D": "6 3", "P": "2 3", "Ω": "8 3 2 3"}
"""Dash patterns, which distinguish the lines without colours."""
_LEFT, _RIGHT, _PLOT_HEIGHT, _LABEL_HEIGHT, _LINE = 60, 40, 180, 14, 15
_DISTANCE, _MIN_WIDTH = 130, 560


@dataclass(frozen=True)
class PlotPoint:
    """The figures after one attempt."""

    labels: tuple[str, ...]
    """Written below the point, line by line."""
    values: Mapping[str, float]
    """The value of each figure."""
    series: str = ""
    """Points of the same series are joined by lines."""


@dataclass(frozen=True)
class LossPlot:
    """A plot of the loss."""

    points: Sequence[PlotPoint]
    meanings: Mapping[str, str]
    """What each figure means. `L` is the loss itself; only it can exceed 1."""
    title: str
    description: str
    """The plot in words, for people who cannot see it."""
    caption: tuple[str, ...] = ()
    """Lines above the plot."""
    empty: str = ""
    """What is written if there are no points."""

    def draw(self) -> str:
        """Return the picture as SVG."""
        labels = max((len(point.labels) for point in self.points), default=0)
        width = max(_MIN_WIDTH, _LEFT + _DISTANCE * len(self.points) + _RIGHT)
        height = self._bottom + 2 * _LABEL_HEIGHT + labels * _LABEL_HEIGHT + _LINE * (len(self.meanings) + 1)
        parts = self._draw_parts(width, self._bottom + (labels + 2) * _LABEL_HEIGHT)
        return svg_picture(width, height, parts, title=self.title, told=self.description)

    @property
    def _top(self) -> float:
        return 20 + 25 * len(self.caption)

    @property
    def _bottom(self) -> float:
        return self._top + _PLOT_HEIGHT

    def _draw_parts(self, width: float, legend: float) -> Iterator[str]:
        for number, line in enumerate(self.caption):
            yield svg_text(_LEFT, 20 + 16 * number, line, size=11 if number else 13)
        most = max((1.0, *(point.values["L"] for point in self.points)))
        for step in range(5):
            y = self._y(step / 4)
            yield svg_line(_LEFT, y, width - _RIGHT, y, "#ddd" if step else "#000")
            yield svg_text(_LEFT - 6, y + 4, f"{most * step / 4:.3g}", anchor="end")
        if not self.points:
            yield svg_text(width / 2, (self._top + self._bottom) / 2, self.empty, anchor="middle", size=13)
        for number, point in enumerate(self.points):
            for row, label in enumerate(point.labels):
                yield svg_text(_x(number), self._bottom + 16 + _LABEL_HEIGHT * row, label, anchor="middle")
        for name in self.meanings:
            yield from self._draw_figure(name, most)
        for number, (name, meaning) in enumerate(self.meanings.items()):
            y = legend + _LINE * number
            yield svg_line(_LEFT, y - 4, _LEFT + 30, y - 4, _COLOURS[name], _line_width(name), dashes=_DASHES[name])
            yield svg_text(_LEFT + 38, y, f"{name}  {meaning}")

    def _draw_figure(self, name: str, most: float) -> Iterator[str]:
        """Draw one figure. Points of the same series are joined, points of different series are not."""
        series: dict[str, list[tuple[float, float]]] = {}
        for number, point in enumerate(self.points):
            series.setdefault(point.series, []).append((_x(number), self._y(point.values[name] / most)))
        for points in series.values():
            for (x1, y1), (x2, y2) in pairwise(points):
                yield svg_line(x1, y1, x2, y2, _COLOURS[name], _line_width(name), dashes=_DASHES[name])
            for x, y in points:
                radius = 2 * _line_width(name)
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="none" stroke="{_COLOURS[name]}"/>'

    def _y(self, share: float) -> float:
        return self._bottom - share * _PLOT_HEIGHT


def _x(number: int) -> float:
    return _LEFT + _DISTANCE * (number + 0.5)


def _line_width(name: str) -> float:
    return 2.5 if name == "L" else 1.5
