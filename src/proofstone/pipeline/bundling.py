"""The evidence bundle of a run, by queries on the ledger: no file, no repository, nobody's prose.

| part               | of `proofstone run`                                        | of `proofstone gate`
     |
|--------------------|-------------------------------------------------------|-------------------------------------|
| outcome            | its report                                            | `run.finished`                      |
| confidence         | its report                                            | the tasks' evidence                 |
| tasks, losses      | the events of the gates that are parts of it          | its own events                      |
| checks             | of the gates, and on the merged tree                  | its own                             |
| commits            | the one that its report names                         | those of its tasks                  |
| cost, timeline     | its own and its parts'                                | its own                             |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proofstone.agents.roles.models.gate import Direction
from proofstone.errors import InputError
from proofstone.gate.models import GateSetup, RunOutcome
from proofstone.gate.rules.direction import rated
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.pipeline import bundled_reviews, bundled_tasks
from proofstone.pipeline.bundled_reviews import costs, dispatches, timeline, verification
from proofstone.pipeline.bundled_tasks import checked_trees
from proofstone.pipeline.journal import NOTE
from proofstone.pipeline.models.bundle import (
    ApprovalSeen,
    Bundle,
    ChangedFile,
    CheckedTree,
    Child,
    CommitMade,
    Ending,
    IssueFixed,
    IssueKnown,
    LedgerHead,
    LossSeen,
    OverrideSeen,
    RegressionSeen,
    Subject,
)
from proofstone.pipeline.models.run import RunReport, RunSetup
from proofstone.pipeline.records import BUNDLED, Kind, RunRecord, children, reported
from proofstone.pipeline.rules.approvals import rollback


def bundle_of(ledger: Ledger, run_id: str) -> Bundle:
    return _Bundling.read(ledger, run_id).bundle()


@dataclass(frozen=True)
class _Bundling:
    """One run with its parts, as the ledger holds them."""

    ledger_id: str
    own: RunRecord
    parts: tuple[RunRecord, ...]
    begun: tuple[Child, ...]
    report: tuple[RunReport, int] | None

    @classmethod
    def read(cls, ledger: Ledger, run_id: str) -> _Bundling:
        kind: Kind = "run" if _command(ledger, run_id) == "run" else "gate"
        begun = children(ledger, run_id)
        return cls(
            ledger_id=ledger.head().ledger_id,
            own=RunRecord.read(ledger, run_id, kind),
            parts=tuple(RunRecord.read(ledger, item.run_id, item.kind, item.iteration) for item in begun),
            begun=begun,
            report=reported(ledger, run_id),
        )

    @property
    def records(self) -> tuple[RunRecord, ...]:
        return (self.own, *self.parts)

    @property
    def gates(self) -> tuple[RunRecord, ...]:
        return tuple(record for record in self.records if record.kind == "gate")

    @property
    def last_gate(self) -> tuple[RunRecord, ...]:
        """The one that the end rests on, if it came to that."""
        return self.gates[-1:]

    def bundle(self) -> Bundle:
        panel = bundled_reviews.answers(self.own)
        reviews = bundled_reviews.reviews(self.own, panel, self.report)
        trees = tuple(self._trees())
        commits = self._commits()
        return Bundle(
            subject=self._subject(),
            ending=self._ending(),
            children=tuple(self._children()),
            tasks=tuple(ending for gate in self.gates for ending in bundled_tasks.endings(gate)),
            checks=trees,
            regressions=tuple(self._regressions(trees)),
            reviews=reviews,
            one_model=bundled_reviews.one_model(reviews, self.report),
            losses=tuple(sorted(self._losses(), key=lambda one: one.rows)),
            overrides=tuple(self._overrides()),
            approvals=tuple(self._approvals()),
            costs=costs(self.records),
            dispatches=dispatches(self.records),
            verification=verification(self.records),
            timeline=timeline(self.records),
            changed=self._changed(),
            known_issues=tuple(self._known()),
            fixed_issues=(*bundled_reviews.fixed(panel), *self._fixed()),
            commits=commits,
            rollback=rollback(commits),
            head=self._head(),
        )

    def _subject(self) -> Subject:
        started = self.own.stages[0]
        common = {
            "run_id": self.own.run_id,
            "rows": (started.seq,),
            "started_at": started.ts,
            "updated_at": max(record.events[-1].ts for record in self.records if record.events),
        }
        if self.own.kind == "run":
            setup = RunSetup.model_validate(started.row.payload)
            agents = {name: " → ".join(specs) for name, specs in setup.agents.items()}
            own = {"asked": setup.request, "lane": setup.lane, "lane_reason": setup.lane_reason, "mode": setup.mode}
            lane = self.report and {"lane": self.report[0].lane, "lane_reason": self.report[0].lane_reason}
            return Subject.model_validate({**common, **_shared(setup), **own, **(lane or {}), "agents": agents})
        gate = GateSetup.model_validate(started.row.payload)
        agents = {role: " → ".join((first, *gate.fallbacks.get(role, ()))) for role, first in _served(gate)}
        return Subject.model_validate({**common, **_shared(gate), "asked": gate.plan_path, "agents": agents})

    def _ending(self) -> Ending:
        if self.report is not None:
            report, seq = self.report
            return Ending(
                outcome=report.outcome,
                reason=report.reason,
                confidence=report.confidence,
                reasons=report.confidence_reasons,
                raises=report.final.raises if report.final else (),
                rows=(seq,),
            )
        outcome, reason = self.own.outcome, self.own.reason
        tasks = [task for gate in self.last_gate for task in gate.tasks()]
        must = [have for gate in self.last_gate for have in bundled_tasks.must_haves(gate)]
        found = rated(outcome, reason, [task.record for task in tasks], [one for one, _ in must])
        rows = {self.own.stages[-1].seq, *(seq for _, seq in must), *(row for task in tasks for row in task.rows())}
        return Ending(
            outcome=outcome,
            reason=reason,
            confidence=found.confidence,
            reasons=found.reasons,
            raises=found.raises,
            rows=tuple(sorted(rows)),
        )

    def _children(self) -> Iterator[Child]:
        for said, record in zip(self.begun, self.parts, strict=True):
            stages = record.stages
            ended = stages[-1].row.payload if stages else {}
            yield said.model_copy(
                update={
                    "outcome": str(ended.get("outcome", "")),
                    "reason": str(ended.get("reason", "")),
                    "rows": (*said.rows, *(stage.seq for stage in stages[-1:])),
                }
            )

    def _trees(self) -> Iterator[CheckedTree]:
        for record in (*self.gates, *((self.own,) if self.own.kind == "run" else ())):
            yield from checked_trees(record)

    def _regressions(self, trees: Sequence[CheckedTree]) -> Iterator[RegressionSeen]:
        for gate in self.gates:
            yield from bundled_tasks.regressions(gate, replanned=self._replaced(gate))
        last = {record.run_id for record in (*self.last_gate, self.own)}
        yield from bundled_tasks.regressed_checks(tree for tree in trees if tree.run_id in last)
        if self.report is not None and self.report[0].final is not None:
            for what in self.report[0].final.regressions:
                yield RegressionSeen(task="final", what=what, stands=True, rows=(self.report[1],))

    def _losses(self) -> Iterator[LossSeen]:
        for gate in self.gates:
            yield from bundled_tasks.losses(gate)
        notes = [(seq, payload) for seq, payload in self.own.of_type(NOTE) if payload.get("kind") == "direction"]
        for number, (seq, payload) in enumerate(notes, start=1):
            if (said := payload.get("data")) is not None:
                direction = Direction.model_validate(said)
                text = str(payload.get("text", ""))
                yield LossSeen(of="run", number=number, direction=direction, text=text, rows=(seq,))

    def _overrides(self) -> Iterator[OverrideSeen]:
        for record in self.records:
            for stored in record.overrides:
                row = stored.row
                yield OverrideSeen(
                    task=row.task_id,
                    action=row.action,
                    category=row.category or "",
                    reason=row.reason,
                    by=row.decided_by,
                    at=stored.ts,
                    rows=(stored.seq,),
                )

    def _approvals(self) -> Iterator[ApprovalSeen]:
        for record in self.records:
            for stored in record.approvals:
                row = stored.row
                yield ApprovalSeen(
                    gate=row.gate,
                    task=row.task_id or "",
                    option=row.option,
                    by=row.decided_by,
                    at=stored.ts,
                    mode=str(row.payload.get("mode", "")),
                    auto_selected=row.payload.get("auto_selected") is True,
                    words=row.reason,
                    rows=(stored.seq,),
                )

    def _changed(self) -> tuple[ChangedFile, ...]:
        if self.report is not None and self.report[0].changed:
            report, seq = self.report
            return tuple(
                ChangedFile(path=item.path, change=item.change, risk=item.risk, rows=(seq,)) for item in report.changed
            )
        found: dict[str, ChangedFile] = {}
        for gate in self.gates:
            for file in bundled_tasks.changed_files(gate):
                before = found[file.path].rows if file.path in found else ()
                found[file.path] = file.model_copy(update={"rows": (*before, *file.rows)})
        return tuple(found.values())

    def _known(self) -> Iterator[IssueKnown]:
        if self.report is not None:
            report, seq = self.report
            for issue in report.known_issues:
                yield IssueKnown(
                    severity=issue.severity, title=issue.title, where=issue.where, source=issue.source, rows=(seq,)
                )
            return
        for gate in self.last_gate:
            yield from bundled_tasks.known_issues(gate)

    def _fixed(self) -> Iterator[IssueFixed]:
        for gate in self.gates:
            yield from bundled_tasks.fixed_issues(gate, replanned=self._replaced(gate))

    def _replaced(self, gate: RunRecord) -> bool:
        """Whether a later plan has passed in the place of this one."""
        last = self.gates[-1]
        return gate is not last and last.outcome is RunOutcome.PASSED

    def _commits(self) -> tuple[CommitMade, ...]:
        """Of a run of the pipeline its own alone: what its tasks have made is no branch's."""
        if self.own.kind == "gate":
            return bundled_tasks.commits(self.own)
        if self.report is None or self.report[0].commit is None:
            return ()
        report, seq = self.report
        return (CommitMade(commit=report.commit or "", tree=report.tree or "", parent=report.base_commit, rows=(seq,)),)

    def _head(self) -> LedgerHead:
        seq, digest = max(last for record in self.records for last in record.last_rows)
        return LedgerHead(ledger_id=self.ledger_id, seq=seq, hash=digest)


def _command(ledger: Ledger, run_id: str) -> str:
    started = [row.row.payload for row in ledger.read(EventRow, run_id=run_id, type="run.started")]
    command = str(started[0].get("command")) if started else ""
    if command not in BUNDLED:
        what = f"a run of `proofstone {command}`" if command else "no run that the ledger knows"
        raise InputError(
            f"{run_id}: is {what}; a bundle is made of a run of `proofstone run` or `proofstone gate`",
            hint=f"`proofstone ledger show {run_id}` shows what is on record of it",
        )
    return command


def _shared(setup: RunSetup | GateSetup) -> dict[str, object]:
    return {
        name: getattr(setup, name) for name in ("command", "version", "repository", "branch", "base_commit", "notes")
    }


def _served(setup: GateSetup) -> Iterator[tuple[str, str]]:
    yield "executor", setup.executor
    yield "architect", setup.architect
