"""The page of the documentation about the quality of the gate, from the results of a measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.gate_quality.measure import CaseResult, count

_HEAD = """\
# How well the gate tells right from wrong

Written by `make gate-quality`, which checks every case; do not edit. The cases are made from published packages:
functions of `boltons` and `semver` with their own tests, in which a mistake is planted. Whether a case is right is
measured: a right change passes every test of the package; a wrong one passes the tests that its author sees and fails
tests that were held out. [How they are made](../benchmarks/gate_quality/build.py), and why so:
[decision 0066](decisions/0066-gate-quality.md). Shares have 95 % intervals (Wilson).
"""
_KINDS = {
    "fix": "a mistake is mended; a test shows it",
    "fix-with-test": "a mistake is mended, and its test comes with it",
    "refactoring": "a rewrite that changes nothing",
    "rename": "a private name, or a file of tests, has another name",
    "tests": "one more test",
    "documentation": "the README or a docstring",
    "wrong-fix": "a mistake is mended for the tests that are seen, and broken elsewhere",
    "special-casing": "the inputs of the tests are answered one by one",
    "weakened-test": "a mistake, and the tests that see it are weakened",
}


def render_page(results: Sequence[CaseResult], total: int) -> str:
    """Return the page. `total` is the size of the set; not all of it may have been measured."""
    right = [result for result in results if result.right]
    wrong = [result for result in results if not result.right]
    parts = (
        _render_scope(results, total),
        _render_aims(right, wrong),
        _render_kinds(results),
        _render_missed(right, wrong),
    )
    return "\n".join([_HEAD, *(line for part in parts for line in part)]).rstrip() + "\n"


def _render_scope(results: Sequence[CaseResult], total: int) -> Iterator[str]:
    versions = Counter(result.version for result in results)
    at = ", ".join(f"{number} at `{version}`" for version, number in versions.items())
    size = (
        f"{len(results)} cases" if len(results) == total else f"{len(results)} of {total} cases, which says little yet"
    )
    seconds = sorted(result.seconds for result in results)
    middle = seconds[len(seconds) // 2]
    yield f"Measured: {size}: {at}. Median time of a check: {middle:.0f} s."
    yield ""


def _render_aims(right: Sequence[CaseResult], wrong: Sequence[CaseResult]) -> Iterator[str]:
    rows = (
        ("wrong, and passed with high confidence", "none", count(wrong, lambda found: found.is_high)),
        ("wrong, and refused", "", count(wrong, lambda found: found.is_refused)),
        ("wrong, and refused or a survivor or suspicion named", "≥ 90 %", count(wrong, lambda found: found.is_named)),
        ("right, and refused but for edited expectations", "≤ 5 %", count(right, lambda found: found.is_false_alarm)),
        ("right, and suspected of special-casing", "≤ 1 %", count(right, lambda found: found.is_suspected)),
        ("right, and passed with high confidence", "", count(right, lambda found: found.is_high)),
    )
    yield from _render_table(("", "aim", "measured"), rows)


def _render_kinds(results: Sequence[CaseResult]) -> Iterator[str]:
    yield "## By kind"
    yield ""
    rows = []
    for kind in dict.fromkeys([*_KINDS, *(result.kind for result in results)]):
        found = [result for result in results if result.kind == kind]
        if not found:
            continue
        levels = Counter(_say(result) for result in found)
        truth = "right" if found[0].right else "wrong"
        cells = (str(levels[level]) for level in ("high", "medium", "low", "refused", "unverifiable"))
        rows.append((f"`{kind}`", _KINDS.get(kind, ""), truth, str(len(found)), *cells))
    head = ("kind", "what it is", "truth", "cases", "high", "medium", "low", "refused", "unverifiable")
    yield from _render_table(head, rows)


def _say(result: CaseResult) -> str:
    if result.outcome == "passed":
        return result.confidence
    return "refused" if result.is_refused else "unverifiable"


def _render_missed(right: Sequence[CaseResult], wrong: Sequence[CaseResult]) -> Iterator[str]:
    high = [result for result in wrong if result.is_high]
    unnamed = [result for result in wrong if not result.is_high and not result.is_named]
    refused = [result for result in right if result.is_false_alarm or result.is_suspected]
    for title, found in (
        ("Wrong, and passed with high confidence", high),
        ("Wrong, and passed without a survivor or suspicion named", unnamed),
        ("Right, and refused or suspected", refused),
    ):
        if found:
            yield from (f"## {title}", "")
            rows = ((f"`{result.name}`", ", ".join(result.rules) or "; ".join(result.reasons)) for result in found)
            yield from _render_table(("case", "what was said"), rows)


def _render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""
