"""Make the evidence bundle of a run from the ledger alone: no file, no repository, no prose of an agent.

| part           | for `proofstone run`                  | for `proofstone gate`   |
|----------------|---------------------------------------|-------------------------|
| outcome        | its report                            | `run.finished`          |
| confidence     | its report                            | the tasks' evidence     |
| tasks, losses  | the events of its gates               | its own events          |
| checks         | of its gates, and of the merged tree  | its own                 |
| commits        | the one that its report names         | those of its tasks      |
| cost, timeline | its own and its parts'                | its own                 |
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
    return _BundleBuilder.read(ledger, run_id).bundle()


@dataclass(frozen=True)
class _BundleBuilder:
    """A run with its parts, as the ledger holds them."""

    ledger_id: str
    own: RunRecord
    parts: tuple[RunRecord, ...]
    begun: tuple[Child, ...]
    report: tuple[RunReport, int] | None

    @classmethod
    def read(cls, ledger: Ledger, run_id: str) -> _BundleBuilder:
        kind: Kind = "run" if _read_command(ledger, run_id) == "run" else "gate"
        begun = children(ledger, run_id)
        return cls(
            ledger_id=ledger.head().ledger_id,
            own=RunRecord.read(ledger, run_id, kind),
            parts=tuple(RunRecord.read(ledger, child.run_id, child.kind, child.iteration) for child in begun),
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
        """The gate that the outcome is based on, if there is one."""
        return self.gates[-1:]

    def bundle(self) -> Bundle:
        panel = bundled_reviews.answers(self.own)
        reviews = bundled_reviews.reviews(self.own, panel, self.report)
        trees = tuple(self._list_trees())
        commits = self._list_commits()
        return Bundle(
            subject=self._build_subject(),
            ending=self._build_ending(),
            children=tuple(self._list_children()),
            tasks=tuple(ending for gate in self.gates for ending in bundled_tasks.endings(gate)),
            checks=trees,
            regressions=tuple(self._list_regressions(trees)),
            reviews=reviews,
            one_model=bundled_reviews.one_model(reviews, self.report),
            losses=tuple(sorted(self._list_losses(), key=lambda loss: loss.rows)),
            overrides=tuple(self._list_overrides()),
            approvals=tuple(self._list_approvals()),
            costs=costs(self.records),
            dispatches=dispatches(self.records),
            verification=verification(self.records),
            timeline=timeline(self.records),
            changed=self._list_changed(),
            known_issues=tuple(self._list_known()),
            fixed_issues=(*bundled_reviews.fixed(panel), *self._list_fixed()),
            commits=commits,
            rollback=rollback(commits),
            head=self._find_head(),
        )

    def _build_subject(self) -> Subject:
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
            fields = {"asked": setup.request, "lane": setup.lane, "lane_reason": setup.lane_reason, "mode": setup.mode}
            lane = self.report and {"lane": self.report[0].lane, "lane_reason": self.report[0].lane_reason}
            return Subject.model_validate(
                {**common, **_shared_fields(setup), **fields, **(lane or {}), "agents": agents}
            )
        gate = GateSetup.model_validate(started.row.payload)
        agents = {role: " → ".join((first, *gate.fallbacks.get(role, ()))) for role, first in _configured_agents(gate)}
        return Subject.model_validate({**common, **_shared_fields(gate), "asked": gate.plan_path, "agents": agents})

    def _build_ending(self) -> Ending:
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
        must_haves = [pair for gate in self.last_gate for pair in bundled_tasks.must_haves(gate)]
        rating = rated(outcome, reason, [task.record for task in tasks], [result for result, _ in must_haves])
        rows = {
            self.own.stages[-1].seq,
            *(seq for _, seq in must_haves),
            *(row for task in tasks for row in task.rows()),
        }
        return Ending(
            outcome=outcome,
            reason=reason,
            confidence=rating.confidence,
            reasons=rating.reasons,
            raises=rating.raises,
            rows=tuple(sorted(rows)),
        )

    def _list_children(self) -> Iterator[Child]:
        for child, record in zip(self.begun, self.parts, strict=True):
            stages = record.stages
            payload = stages[-1].row.payload if stages else {}
            yield child.model_copy(
                update={
                    "outcome": str(payload.get("outcome", "")),
                    "reason": str(payload.get("reason", "")),
                    "rows": (*child.rows, *(stage.seq for stage in stages[-1:])),
                }
            )

    def _list_trees(self) -> Iterator[CheckedTree]:
        for record in (*self.gates, *((self.own,) if self.own.kind == "run" else ())):
            yield from checked_trees(record)

    def _list_regressions(self, trees: Sequence[CheckedTree]) -> Iterator[RegressionSeen]:
        for gate in self.gates:
            yield from bundled_tasks.regressions(gate, replanned=self._is_replaced(gate))
        last = {record.run_id for record in (*self.last_gate, self.own)}
        yield from bundled_tasks.regressed_checks(tree for tree in trees if tree.run_id in last)
        if self.report is not None and self.report[0].final is not None:
            for description in self.report[0].final.regressions:
                yield RegressionSeen(task="final", what=description, stands=True, rows=(self.report[1],))

    def _list_losses(self) -> Iterator[LossSeen]:
        for gate in self.gates:
            yield from bundled_tasks.losses(gate)
        notes = [(seq, payload) for seq, payload in self.own.of_type(NOTE) if payload.get("kind") == "direction"]
        for number, (seq, payload) in enumerate(notes, start=1):
            if (data := payload.get("data")) is not None:
                direction = Direction.model_validate(data)
                text = str(payload.get("text", ""))
                yield LossSeen(of="run", number=number, direction=direction, text=text, rows=(seq,))

    def _list_overrides(self) -> Iterator[OverrideSeen]:
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

    def _list_approvals(self) -> Iterator[ApprovalSeen]:
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

    def _list_changed(self) -> tuple[ChangedFile, ...]:
        if self.report is not None and self.report[0].changed:
            report, seq = self.report
            return tuple(
                ChangedFile(path=change.path, change=change.change, risk=change.risk, rows=(seq,))
                for change in report.changed
            )
        files: dict[str, ChangedFile] = {}
        for gate in self.gates:
            for file in bundled_tasks.changed_files(gate):
                before = files[file.path].rows if file.path in files else ()
                files[file.path] = file.model_copy(update={"rows": (*before, *file.rows)})
        return tuple(files.values())

    def _list_known(self) -> Iterator[IssueKnown]:
        if self.report is not None:
            report, seq = self.report
            for issue in report.known_issues:
                yield IssueKnown(
                    severity=issue.severity, title=issue.title, where=issue.where, source=issue.source, rows=(seq,)
                )
            return
        for gate in self.last_gate:
            yield from bundled_tasks.known_issues(gate)

    def _list_fixed(self) -> Iterator[IssueFixed]:
        for gate in self.gates:
            yield from bundled_tasks.fixed_issues(gate, replanned=self._is_replaced(gate))

    def _is_replaced(self, gate: RunRecord) -> bool:
        """Return whether a later plan has passed in place of this one."""
        last = self.gates[-1]
        return gate is not last and last.outcome is RunOutcome.PASSED

    def _list_commits(self) -> tuple[CommitMade, ...]:
        """Return the commits. For a run of the pipeline only its own: the commits of its tasks are on no branch."""
        if self.own.kind == "gate":
            return bundled_tasks.commits(self.own)
        if self.report is None or self.report[0].commit is None:
            return ()
        report, seq = self.report
        return (CommitMade(commit=report.commit or "", tree=report.tree or "", parent=report.base_commit, rows=(seq,)),)

    def _find_head(self) -> LedgerHead:
        seq, digest = max(last for record in self.records for last in record.last_rows)
        return LedgerHead(ledger_id=self.ledger_id, seq=seq, hash=digest)


def _read_command(ledger: Ledger, run_id: str) -> str:
    started = [row.row.payload for row in ledger.read(EventRow, run_id=run_id, type="run.started")]
    command = str(started[0].get("command")) if started else ""
    if command not in BUNDLED:
        subject = f"a run of `proofstone {command}`" if command else "no run in the ledger"
        raise InputError(
            f"{run_id}: is {subject}; only runs of `proofstone run` and `proofstone gate` have a bundle",
            hint=f"see its record with `proofstone ledger show {run_id}`",
        )
    return command


def _shared_fields(setup: RunSetup | GateSetup) -> dict[str, object]:
    return {
        name: getattr(setup, name) for name in ("command", "version", "repository", "branch", "base_commit", "notes")
    }


def _configured_agents(setup: GateSetup) -> Iterator[tuple[str, str]]:
    yield "executor", setup.executor
    yield "architect", setup.architect
