"""Show a comparison of policies as a table and as a picture.

The picture has a row for each mix: on the left how often each policy succeeded, with its interval; on the right the
mean loss after each round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from proofstone.documents.svg import svg_line, svg_picture, svg_text
from proofstone.solve.rules.gradient import LossWeights
from proofstone.solve.simulation.rules import MIXES
from proofstone.solve.simulation.run import BASELINES, CONTENDERS, Estimate, PolicySummary

if TYPE_CHECKING:
    from rich.console import Console


PolicyComparison = Mapping[str, tuple[PolicySummary, ...]]
TABLE_HEADING: Final = (
    "policy",
    "success",
    "95 %",
    *(f"against {name}" for name in BASELINES),
    "rounds",
    "cost",
    "D at the end",
)
_COLOURS: Final = dict(zip(CONTENDERS, ("#0b6e4f", "#3a86c8", "#8e5ea2", "#c0392b", "#d98e04", "#7f8c8d"), strict=True))
_WIDTH, _HEIGHT = 860, 230
_TOP, _BOTTOM = 40, 190
_BARS, _LINES = (50, 420), (490, 740)


def print_comparison(console: Console, compared: PolicyComparison, seed: int, weights: LossWeights) -> None:
    """Print the comparison as tables."""
    for mix, summaries in compared.items():
        console.print(f"{mix}: {MIXES[mix].summary}", style="bold")
        table = [TABLE_HEADING, *map(format_cells, summaries)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            console.print(f"  {line.rstrip()}", soft_wrap=True)
        console.print()
    drawn = next(iter(compared.values()))[0].landscapes
    budget = f"{weights.max_replans} replans and {weights.time_budget_ms // 1000} s"
    console.print(f"{drawn} tasks of each mix, seed {seed}, {budget} for each run", style="dim", soft_wrap=True)
    for name in dict.fromkeys(summary.policy for summaries in compared.values() for summary in summaries):
        console.print(f"  {name}: {CONTENDERS[name].summary}", style="dim", soft_wrap=True)


def format_cells(summary: PolicySummary) -> tuple[str, ...]:
    """Return the cells of a policy's row."""
    success = summary.success
    return (
        summary.policy,
        f"{success.value:.1%}",
        f"{success.low:.1%} to {success.high:.1%}",
        *("" if name == summary.policy else _format_gain(summary.gains[name]) for name in BASELINES),
        f"{summary.rounds:.2f}",
        f"{summary.cost:.2f}",
        f"{summary.distance:.2f}",
    )


def _format_gain(gain: Estimate) -> str:
    return f"{100 * gain.value:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"


def render_comparison_plot(compared: PolicyComparison) -> str:
    """Return the picture as SVG."""
    rows = [
        f'<g transform="translate(0 {number * _HEIGHT})">{"".join(_row(mix, summaries))}</g>'
        for number, (mix, summaries) in enumerate(compared.items())
    ]
    return svg_picture(_WIDTH, _HEIGHT * len(rows), rows)


def _row(mix: str, summaries: Sequence[PolicySummary]) -> Iterator[str]:
    yield svg_text(_BARS[0], 16, f"{mix}: {MIXES[mix].summary}", size=13)
    yield svg_text(_BARS[0], 32, "success rate, with its 95 % interval")
    yield svg_text(_LINES[0], 32, "mean loss L after each round")
    yield from _bars(summaries)
    yield from _trajectories(summaries)


def _bars(summaries: Sequence[PolicySummary]) -> Iterator[str]:
    left, right = _BARS
    yield from _scale(left, right)
    wide = (right - left) / len(summaries)
    for number, summary in enumerate(summaries):
        x, middle = left + wide * (number + 0.15), left + wide * (number + 0.5)
        high = _y(summary.success.value)
        yield (
            f'<rect x="{x:.1f}" y="{high:.1f}" width="{0.7 * wide:.1f}" height="{_BOTTOM - high:.1f}" '
            f'fill="{_COLOURS[summary.policy]}"/>'
        )
        yield svg_line(middle, _y(summary.success.low), middle, _y(summary.success.high), "#000")
        yield svg_text(middle, _BOTTOM + 15, summary.policy, anchor="middle")
        yield svg_text(middle, _BOTTOM + 29, f"{summary.success.value:.1%}", anchor="middle")


def _trajectories(summaries: Sequence[PolicySummary]) -> Iterator[str]:
    left, right = _LINES
    yield from _scale(left, right)
    longest = max(len(summary.losses) for summary in summaries)
    apart = (right - left) / max(1, longest - 1)
    for number in range(longest):
        yield svg_text(left + apart * number, _BOTTOM + 15, str(number + 1), anchor="middle")
    for number, summary in enumerate(summaries):
        points = " ".join(f"{left + apart * at:.1f},{_y(value):.1f}" for at, value in enumerate(summary.losses))
        yield f'<polyline points="{points}" fill="none" stroke="{_COLOURS[summary.policy]}" stroke-width="1.5"/>'
        yield svg_line(
            right + 14, _TOP + 10 + 16 * number, right + 30, _TOP + 10 + 16 * number, _COLOURS[summary.policy], 3
        )
        yield svg_text(right + 36, _TOP + 14 + 16 * number, summary.policy)


def _scale(left: float, right: float) -> Iterator[str]:
    for share in (0, 0.25, 0.5, 0.75, 1):
        yield svg_line(left, _y(share), right, _y(share), "#ddd" if share else "#000")
        yield svg_text(left - 6, _y(share) + 4, f"{share:g}", anchor="end")


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)
