"""The reviews of a run: each reviewer's word, what they found, and what of it is gone.

What a run has cost, by role and model, and how long each of its steps took.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from proofstone.agents.roles.models.pipeline import PanelFinding, PanelOutput, ReviewFocus, Scope
from proofstone.common.models import Phase
from proofstone.ledger.models import CheckRow, TelemetryRow
from proofstone.ledger.schema import Stored
from proofstone.pipeline.journal import STEP
from proofstone.pipeline.models.bundle import CostLine, IssueFixed, ReviewSeen, StepSeen, VerificationSpent
from proofstone.pipeline.models.run import RunReport
from proofstone.pipeline.records import RunRecord
from proofstone.telemetry.costs import Verification, by_agent, share
from proofstone.telemetry.dispatches import Part

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
    for review in report[0].reviews if report else ():
        place = (review.scope, review.focus.value, review.round)
        if place not in found:
            found[place] = ReviewSeen(
                scope=review.scope,
                focus=review.focus,
                round=review.round,
                verdict=review.verdict,
                findings=review.findings or None,
                model=review.model,
                rows=(report[1],) if report else (),
            )
    return tuple(found.values())


def one_model(seen: tuple[ReviewSeen, ...], report: tuple[RunReport, int] | None) -> bool | None:
    if len({item.focus for item in seen}) < 2:  # nobody could be told apart from anybody
        return None
    if report is not None:
        return report[0].single_model
    models = {item.model for item in seen}
    return None if "" in models else len(models) == 1


def fixed(said: Mapping[Place, PanelAnswer]) -> Iterator[IssueFixed]:
    """What the same reviewer found in an earlier round, and finds no more in their last one."""
    for (scope, focus, round), answer in said.items():
        last = max(other for its_scope, its_focus, other in said if (its_scope, its_focus) == (scope, focus))
        if round == last:
            continue
        standing = {_title(item) for item in said[scope, focus, last].output.findings}
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


def costs(records: Sequence[RunRecord]) -> tuple[CostLine, ...]:
    return tuple(
        CostLine(
            role=role,
            model=model,
            dispatches=len(tally.dispatches),
            spent=tally.spent,
            rows=tuple(sorted(tally.rows)),
        )
        for role, model, tally in by_agent(map(_part, records))
    )


def dispatches(records: Sequence[RunRecord]) -> int:
    """How often an agent was asked. One that is asked on after a crash was asked once."""
    return sum(len(_part(record).dispatches) for record in records)


def verification(records: Sequence[RunRecord]) -> VerificationSpent | None:
    """What of it went into asking agents whether they know what they are doing."""
    parts = [*map(_part, records)]
    found = Verification.of(parts)
    if not found.tally.rows:
        return None
    lines = by_agent(parts)
    tokens = sum(line.tally.spent.tokens for line in lines)
    counted = not any(line.tally.unmeasured for line in lines)
    return VerificationSpent(
        questions=found.questions,
        judgements=found.judgements,
        spent=found.tally.spent,
        share=share(found.tally.spent.tokens, tokens) if counted else None,
        rows=tuple(sorted(found.tally.rows)),
    )


def timeline(records: Sequence[RunRecord]) -> tuple[StepSeen, ...]:
    """The steps in the order in which they began: their two rows are one line. The first record is the run's own."""
    steps = [step for record in records for step in _steps(record, is_part=record is not records[0])]
    return tuple(sorted(steps, key=lambda step: step.rows))


def _part(record: RunRecord) -> Part:
    return Part(
        run_id=record.run_id,
        command=record.kind,
        name=_called(record),
        messages=record.messages,
        steps=record.telemetry,
        checks=record.checks,
        events=record.events,
    )


def _called(record: RunRecord) -> str:
    return f"{record.kind} {record.iteration}"


def _steps(record: RunRecord, *, is_part: bool) -> Iterator[StepSeen]:
    part = _called(record) if is_part else ""
    begun: dict[tuple[JsonValue, ...], list[Stored[TelemetryRow]]] = {}
    for stored in record.telemetry:
        row = stored.row
        begun.setdefault((row.step, row.agent, row.instance, row.started_at), []).append(stored)
    for rows in begun.values():
        last = rows[-1].row
        yield StepSeen(
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
            rows=tuple(item.seq for item in rows),
        )
