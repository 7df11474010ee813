"""The reviews of a run: each reviewer's word, what they found, and what of it is gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proofstone.contracts.evidence import CheckRow
from proofstone.contracts.pipeline.bundle import IssueFixed, ReviewSeen
from proofstone.contracts.pipeline.review import PanelFinding, PanelOutput, ReviewFocus, Scope
from proofstone.contracts.pipeline.run import RunReport
from proofstone.contracts.verdict import Phase
from proofstone.engine.pipeline.journal import STEP
from proofstone.engine.pipeline.records import RunRecord

Place = tuple[str, str, int]
"""Scope, focus and round: there is one word for each."""


@dataclass(frozen=True)
class PanelAnswer:
    output: PanelOutput
    model: str
    seq: int


def answers(record: RunRecord) -> dict[Place, PanelAnswer]:
    """What reviewers answered, whole."""
    found: dict[Place, PanelAnswer] = {}
    for seq, payload in record.of_type(STEP):
        said = payload.get("output")
        if isinstance(said, Mapping) and "review_focus" in said:
            output = PanelOutput.model_validate(said)
            model = str(payload.get("model") or output.reviewer_model)
            found[output.scope, output.review_focus, output.round] = PanelAnswer(output, model, seq)
    return found


def reviews(
    record: RunRecord, said: Mapping[Place, PanelAnswer], report: tuple[RunReport, int] | None
) -> tuple[ReviewSeen, ...]:
    """By the rows of the gate. Somebody who never answered has no row: that they were asked, the report says."""
    found = {place: _seen(place, seq, row, said.get(place)) for place, seq, row in _rows(record)}
    for one in report[0].reviews if report else ():
        place = (one.scope, one.focus.value, one.round)
        if place not in found:
            found[place] = ReviewSeen(
                scope=one.scope,
                focus=one.focus,
                round=one.round,
                verdict=one.verdict,
                findings=one.findings or None,
                model=one.model,
                rows=(report[1],) if report else (),
            )
    return tuple(found.values())


def one_model(seen: tuple[ReviewSeen, ...], report: tuple[RunReport, int] | None) -> bool | None:
    if len({one.focus for one in seen}) < 2:  # nobody could be told apart from anybody
        return None
    if report is not None:
        return report[0].single_model
    models = {one.model for one in seen}
    return None if "" in models else len(models) == 1


def fixed(said: Mapping[Place, PanelAnswer]) -> Iterator[IssueFixed]:
    """What the same reviewer found in an earlier round, and finds no more in their last one."""
    for (scope, focus, round), answer in said.items():
        last = max(other for its_scope, its_focus, other in said if (its_scope, its_focus) == (scope, focus))
        if round == last:
            continue
        standing = {_title(one) for one in said[scope, focus, last].output.findings}
        for finding in answer.output.findings:
            if _title(finding) not in standing:
                yield IssueFixed(
                    severity=finding.severity,
                    title=finding.title,
                    source=f"review {scope}/{focus}, round {round}",
                    how=f"not found again in round {last}",
                    rows=(answer.seq, said[scope, focus, last].seq),
                )


def _rows(record: RunRecord) -> Iterator[tuple[Place, int, CheckRow]]:
    for stored in record.checks:
        word, _, rest = stored.row.check_name.partition("-")
        scope, _, focus = rest.partition("-")
        if stored.row.phase is Phase.REVIEW and word == "review" and focus in set(ReviewFocus):
            yield (scope, focus, stored.row.round), stored.seq, stored.row


def _seen(place: Place, seq: int, row: CheckRow, answer: PanelAnswer | None) -> ReviewSeen:
    scope: Scope = "design" if place[0] == "design" else "code"
    return ReviewSeen(
        scope=scope,
        focus=ReviewFocus(place[1]),
        round=place[2],
        verdict=row.verdict,
        severity=row.severity,
        findings=answer.output.findings_count if answer else None,
        summary=answer.output.summary if answer else row.output_snippet,
        model=answer.model if answer else "",
        rows=(seq, *((answer.seq,) if answer else ())),
    )


def _title(finding: PanelFinding) -> str:
    return " ".join(finding.title.casefold().split())
