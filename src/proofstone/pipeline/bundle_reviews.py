"""The reviews, the cost and the timeline of a run, for its evidence bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from proofstone.agents.roles.models.pipeline import PanelFinding, PanelOutput, ReviewFocus, ReviewScope
from proofstone.common.models import Phase
from proofstone.ledger.models import CheckRow, TelemetryRow
from proofstone.ledger.schema import StoredRow
from proofstone.pipeline.journal import PIPELINE_STEP_EVENT
from proofstone.pipeline.models.bundle import BundleReview, CostLine, FixedIssue, SupervisionCost, TimelineStep
from proofstone.pipeline.models.run import RunReport
from proofstone.pipeline.records import RunRecord
from proofstone.telemetry.costs import SupervisionTally, compute_share, group_by_agent
from proofstone.telemetry.dispatches import RunPart

ReviewKey = tuple[str, str, int]
"""The scope, the focus and the round: there is one verdict for each."""


@dataclass(frozen=True)
class PanelAnswer:
    output: PanelOutput
    model: str
    seq: int


def read_panel_answers(record: RunRecord) -> dict[ReviewKey, PanelAnswer]:
    """Return the complete answers of the reviewers."""
    by_place: dict[ReviewKey, PanelAnswer] = {}
    for seq, payload in record.events_of_type(PIPELINE_STEP_EVENT):
        payload_output = payload.get("output")
        if isinstance(payload_output, Mapping) and "review_focus" in payload_output:
            output = PanelOutput.model_validate(payload_output)
            model = str(payload.get("model") or output.reviewer_model)
            by_place[output.scope, output.review_focus, output.round] = PanelAnswer(output, model, seq)
    return by_place


def build_reviews(
    record: RunRecord, panel_answers: Mapping[ReviewKey, PanelAnswer], report: tuple[RunReport, int] | None
) -> tuple[BundleReview, ...]:
    """Return the reviews from the rows of the gate. A reviewer that never answered has no row and is taken from the
    report.
    """
    by_place = {
        place: _build_review(place, seq, row, panel_answers.get(place)) for place, seq, row in _review_rows(record)
    }
    for review in report[0].reviews if report else ():
        place = (review.scope, review.focus.value, review.round)
        if place not in by_place:
            by_place[place] = BundleReview(
                scope=review.scope,
                focus=review.focus,
                round=review.round,
                verdict=review.verdict,
                findings=review.findings or None,
                model=review.model,
                rows=(report[1],) if report else (),
            )
    return tuple(by_place.values())


def is_one_model(all_reviews: tuple[BundleReview, ...], report: tuple[RunReport, int] | None) -> bool | None:
    if len({review.focus for review in all_reviews}) < 2:  # there is nothing to compare
        return None
    if report is not None:
        return report[0].single_model
    models = {review.model for review in all_reviews}
    return None if "" in models else len(models) == 1


def find_fixed_findings(panel_answers: Mapping[ReviewKey, PanelAnswer]) -> Iterator[FixedIssue]:
    """Yield the findings of an earlier round that the same reviewer does not repeat in the last round."""
    for (scope, focus, round), answer in panel_answers.items():
        last = max(
            other_round
            for other_scope, other_focus, other_round in panel_answers
            if (other_scope, other_focus) == (scope, focus)
        )
        if round == last:
            continue
        remaining = {_normalize_title(finding) for finding in panel_answers[scope, focus, last].output.findings}
        for finding in answer.output.findings:
            if _normalize_title(finding) not in remaining:
                yield FixedIssue(
                    severity=finding.severity,
                    title=finding.title,
                    source=f"review {scope}/{focus}, round {round}",
                    how=f"not found again in round {last}",
                    rows=(answer.seq, panel_answers[scope, focus, last].seq),
                )


def _review_rows(record: RunRecord) -> Iterator[tuple[ReviewKey, int, CheckRow]]:
    for stored in record.checks:
        prefix, _, rest = stored.row.check_name.partition("-")
        scope, _, focus = rest.partition("-")
        if stored.row.phase is Phase.REVIEW and prefix == "review" and focus in set(ReviewFocus):
            yield (scope, focus, stored.row.round), stored.seq, stored.row


def _build_review(place: ReviewKey, seq: int, row: CheckRow, answer: PanelAnswer | None) -> BundleReview:
    scope: ReviewScope = "design" if place[0] == "design" else "code"
    return BundleReview(
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


def _normalize_title(finding: PanelFinding) -> str:
    return " ".join(finding.title.casefold().split())


def build_cost_lines(records: Sequence[RunRecord]) -> tuple[CostLine, ...]:
    return tuple(
        CostLine(
            role=role,
            model=model,
            dispatches=len(tally.dispatches),
            spent=tally.spent,
            rows=tuple(sorted(tally.rows)),
        )
        for role, model, tally in group_by_agent(map(_to_part, records))
    )


def count_dispatches(records: Sequence[RunRecord]) -> int:
    """Return the number of dispatches. A dispatch that is continued after a crash counts once."""
    return sum(len(_to_part(record).dispatches) for record in records)


def build_verification_cost(records: Sequence[RunRecord]) -> SupervisionCost | None:
    """Return the share of the cost that was spent on asking agents whether they understand their task."""
    parts = [*map(_to_part, records)]
    supervision = SupervisionTally.of(parts)
    if not supervision.tally.rows:
        return None
    lines = group_by_agent(parts)
    tokens = sum(line.tally.spent.tokens for line in lines)
    is_measured = not any(line.tally.unmeasured for line in lines)
    return SupervisionCost(
        questions=supervision.questions,
        judgements=supervision.judgements,
        spent=supervision.tally.spent,
        share=compute_share(supervision.tally.spent.tokens, tokens) if is_measured else None,
        rows=tuple(sorted(supervision.tally.rows)),
    )


def build_timeline(records: Sequence[RunRecord]) -> tuple[TimelineStep, ...]:
    """Return the steps in the order of their starts; the two rows of a step are one line. The first record is the run's
    own.
    """
    steps = [step for record in records for step in _list_steps(record, is_part=record is not records[0])]
    return tuple(sorted(steps, key=lambda step: step.rows))


def _to_part(record: RunRecord) -> RunPart:
    return RunPart(
        run_id=record.run_id,
        command=record.kind,
        name=_part_name(record),
        messages=record.messages,
        steps=record.telemetry,
        checks=record.checks,
        events=record.events,
    )


def _part_name(record: RunRecord) -> str:
    return f"{record.kind} {record.iteration}"


def _list_steps(record: RunRecord, *, is_part: bool) -> Iterator[TimelineStep]:
    part = _part_name(record) if is_part else ""
    groups: dict[tuple[JsonValue, ...], list[StoredRow[TelemetryRow]]] = {}
    for stored in record.telemetry:
        row = stored.row
        groups.setdefault((row.step, row.agent, row.instance, row.started_at), []).append(stored)
    for rows in groups.values():
        last = rows[-1].row
        yield TimelineStep(
            part=part,
            step=last.step,
            agent=last.agent,
            instance=last.instance or "",
            started_at=last.started_at,
            completed_at=last.completed_at,
            status=last.status,
            dispatches=last.dispatch_count,
            retries=last.retry_count,
            notes=last.notes or "",
            rows=tuple(stored.seq for stored in rows),
        )
