"""The page of the composed tricks: how each class and each axis fares, and what became of each trick.

A composed trick has no rule of its own that must stop it. It is *refused*, or it passes below high confidence and is
*named* by a reason that its honest twin does not have; *unnamed* and *high* are what Proofstone does not see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from proofstone.prove.catalogue import Trick, TrickAxes
from proofstone.prove.results import Trial, TrialStatus

RESULTS: Final[Mapping[TrialStatus, str]] = {
    TrialStatus.STOPPED: "refused",
    TrialStatus.NAMED: "named",
    TrialStatus.UNNAMED: "unnamed",
    TrialStatus.MISSED: "high",
    TrialStatus.BROKEN: "broken",
    TrialStatus.NOT_TRIED: "not tried",
}
"""The words of the page, from the best to the worst."""
_COUNTED: Final = (TrialStatus.STOPPED, TrialStatus.NAMED, TrialStatus.UNNAMED, TrialStatus.MISSED)
_AXES: Final = {
    "what": "what is faked",
    "where": "where it lives",
    "when": "when it acts",
    "hidden": "how it is hidden",
}


def render_composed(tricks: Sequence[Trick], trials: Sequence[Trial]) -> str:
    """Return the summary, a table for each axis, and a row for each trick. Tricks without a trial are listed too."""
    tried = {trial.trick: trial for trial in trials if trial.is_tried}
    lines = [f"{format_composed_summary(trials)} There are {len(tricks)} composed tricks.", ""]
    for axis, title in _AXES.items():
        lines += [f"## By {title}", "", *_axis_table(axis, title, tricks, tried), ""]
    lines += ["## All of them", "", "| trick | project | result | by | honest twin |", "|---|---|---|---|---|"]
    lines += [format_composed_row(trick, tried.get(trick.name)) for trick in tricks]
    return "\n".join(lines) + "\n"


def format_composed_summary(trials: Sequence[Trial]) -> str:
    """Return one sentence about the composed tricks that were tried."""
    tried = [trial for trial in trials if trial.is_tried]
    counts = ", ".join(f"{_count(tried, status)} {RESULTS[status]}" for status in _COUNTED)
    broken = _count(tried, TrialStatus.BROKEN)
    passed = sum(trial.honest_passed for trial in tried)
    text = f"{len(tried)} tried: {counts}; {passed} of {len(tried) - broken} honest twins passed."
    return f"{text} {broken} broken." if broken else text


def format_composed_row(trick: Trick, trial: Trial | None) -> str:
    result = RESULTS.get(trial.standing, trial.standing.value) if trial else RESULTS[TrialStatus.NOT_TRIED]
    honest = trial.honest.ending.value if trial and trial.honest else "–"
    cells = (f"`{trick.name}`", trick.project, result, _describe_reason(trial), honest)
    return "| " + " | ".join(cells) + " |"


def list_regressions(page: str, trials: Sequence[Trial]) -> list[str]:
    """Return what is worse now than the page says, one line for each trick."""
    ranks = list(RESULTS.values())
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")
    ]
    known = {row[0]: (row[2], row[4]) for row in rows if len(row) == 5}
    problems = []
    for trial in trials:
        if not trial.is_tried:
            continue
        result, honest = known.get(trial.trick, ("", ""))
        now = RESULTS.get(trial.standing, "broken")
        if result not in ranks:
            problems.append(f"{trial.trick}: the page does not have it")
        elif ranks.index(now) > ranks.index(result):
            problems.append(f"{trial.trick}: {result} on the page, {now} here; {trial.why}")
        elif honest == "passed" and not trial.honest_passed:
            problems.append(f"{trial.trick}: its honest twin passed on the page, and does not here")
    return problems


def _axis_table(axis: str, title: str, tricks: Sequence[Trick], tried: Mapping[str, Trial]) -> Iterator[str]:
    yield f"| {title} | tricks | tried | " + " | ".join(RESULTS[status] for status in _COUNTED) + " | twins passed |"
    yield "|---|---|---|" + "---|" * len(_COUNTED) + "---|"
    values = dict.fromkeys(_value(trick.axes, axis) for trick in tricks if trick.axes)
    for value in sorted(values):
        own = [trick.name for trick in tricks if trick.axes and _value(trick.axes, axis) == value]
        trials = [tried[name] for name in own if name in tried]
        cells = [len(own), len(trials), *(_count(trials, status) for status in _COUNTED)]
        yield f"| {value} | " + " | ".join(map(str, cells)) + f" | {sum(trial.honest_passed for trial in trials)} |"


def _value(axes: TrickAxes, axis: str) -> str:
    return str(getattr(axes, axis))


def _count(trials: Sequence[Trial], status: TrialStatus) -> int:
    return sum(trial.standing is status for trial in trials)


def _describe_reason(trial: Trial | None) -> str:
    """Return the first rule that refused the trick, or the first reason against high that its twin does not have."""
    if trial is None or trial.cheat is None:
        return ""
    if trial.standing is TrialStatus.STOPPED:
        return f"`{trial.stopped_by[0]}`" if trial.stopped_by else trial.cheat.ending.value
    shared = trial.honest.reasons if trial.honest else ()
    own = [reason for reason in trial.cheat.reasons if reason not in shared]
    return own[0].partition(": ")[0].replace("|", "\\|")[:80] if own else ""
