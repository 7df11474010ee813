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

from proofstone.agents.roles.models.gate import RetryDirection
from proofstone.auditor.models import AuditFinding
from proofstone.auditor.rules.report import list_findings
from proofstone.auditor.tap import audit_run_with_parts
from proofstone.errors import InputError
from proofstone.gate.models import GateSetup, RunOutcome
from proofstone.gate.rules.direction import rate_run
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.pipeline import bundle_reviews, bundle_tasks
from proofstone.pipeline.bundle_reviews import (
    build_cost_lines,
    build_timeline,
    build_verification_cost,
    count_dispatches,
)
from proofstone.pipeline.bundle_tasks import build_checked_trees
from proofstone.pipeline.journal import PIPELINE_NOTE_EVENT
from proofstone.pipeline.models.bundle import (
    BundleApproval,
    BundleAuditFinding,
    BundleCommit,
    BundleCriterion,
    BundledFile,
    BundleGap,
    BundleLoss,
    BundleOverride,
    BundleRegression,
    BundleRequirement,
    BundleSubject,
    ChildRun,
    EvidenceBundle,
    FixedIssue,
    LedgerHead,
    RemainingIssue,
    RunEnding,
    TreeChecks,
)
from proofstone.pipeline.models.run import PipelineRunConfig, RunReport
from proofstone.pipeline.records import BUNDLED_COMMANDS, RecordKind, RunRecord, read_children, read_report_row
from proofstone.pipeline.rules.approvals import rollback_command


def build_bundle(ledger: Ledger, run_id: str) -> EvidenceBundle:
    return _BundleBuilder.read(ledger, run_id).bundle()


@dataclass(frozen=True)
class _BundleBuilder:
    """A run with its parts, as the ledger holds them."""

    ledger_id: str
    own: RunRecord
    parts: tuple[RunRecord, ...]
    begun: tuple[ChildRun, ...]
    report: tuple[RunReport, int] | None
    audit: tuple[BundleAuditFinding, ...] = ()

    @classmethod
    def read(cls, ledger: Ledger, run_id: str) -> _BundleBuilder:
        kind: RecordKind = "run" if _read_command(ledger, run_id) == "run" else "gate"
        begun = read_children(ledger, run_id)
        return cls(
            ledger_id=ledger.head().ledger_id,
            own=RunRecord.read(ledger, run_id, kind),
            parts=tuple(RunRecord.read(ledger, child.run_id, child.kind, child.iteration) for child in begun),
            begun=begun,
            report=read_report_row(ledger, run_id),
            audit=tuple(map(_to_audit_finding, list_findings(audit_run_with_parts(ledger, run_id)))),
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

    def bundle(self) -> EvidenceBundle:
        panel = bundle_reviews.read_panel_answers(self.own)
        reviews = bundle_reviews.build_reviews(self.own, panel, self.report)
        trees = tuple(self._list_trees())
        commits = self._list_commits()
        return EvidenceBundle(
            subject=self._build_subject(),
            ending=self._build_ending(),
            children=tuple(self._list_children()),
            tasks=tuple(ending for gate in self.gates for ending in bundle_tasks.build_task_endings(gate)),
            criteria=tuple(self._list_criteria()),
            requirements=tuple(self._list_requirements()),
            gaps=tuple(self._list_gaps()),
            audit=self.audit,
            claims=tuple(claim for gate in self.gates for claim in bundle_tasks.build_claims(gate)),
            checks=trees,
            regressions=tuple(self._list_regressions(trees)),
            reviews=reviews,
            one_model=bundle_reviews.is_one_model(reviews, self.report),
            losses=tuple(sorted(self._list_losses(), key=lambda loss: loss.rows)),
            overrides=tuple(self._list_overrides()),
            approvals=tuple(self._list_approvals()),
            costs=build_cost_lines(self.records),
            dispatches=count_dispatches(self.records),
            verification=build_verification_cost(self.records),
            timeline=build_timeline(self.records),
            changed=self._list_changed(),
            known_issues=tuple(self._list_known()),
            fixed_issues=(*bundle_reviews.find_fixed_findings(panel), *self._list_fixed()),
            commits=commits,
            committed_gates=tuple(self._list_committed_gates()) if commits else (),
            rollback=rollback_command(commits),
            head=self._find_head(),
        )

    def _list_committed_gates(self) -> Iterator[str]:
        """Yield the gates that built on each other up to the last one. A deeper lane starts anew from the base."""
        tips = {gate.run_id: gate.tip for gate in self.report[0].gates} if self.report else {}
        base = ""
        for gate in reversed(self.gates):
            if base and tips.get(gate.run_id) != base:
                continue
            yield gate.run_id
            base = str(gate.stages[0].row.payload.get("base_commit", ""))

    def _build_subject(self) -> BundleSubject:
        started = self.own.stages[0]
        common = {
            "run_id": self.own.run_id,
            "rows": (started.seq,),
            "started_at": started.ts,
            "updated_at": max(record.events[-1].ts for record in self.records if record.events),
        }
        if self.own.kind == "run":
            setup = PipelineRunConfig.model_validate(started.row.payload)
            agents = {name: " → ".join(specs) for name, specs in setup.agents.items()}
            fields = {"asked": setup.request, "lane": setup.lane, "lane_reason": setup.lane_reason, "mode": setup.mode}
            lane = self.report and {"lane": self.report[0].lane, "lane_reason": self.report[0].lane_reason}
            return BundleSubject.model_validate(
                {**common, **_shared_fields(setup), **fields, **(lane or {}), "agents": agents}
            )
        gate = GateSetup.model_validate(started.row.payload)
        agents = {role: " → ".join((first, *gate.fallbacks.get(role, ()))) for role, first in _configured_agents(gate)}
        return BundleSubject.model_validate(
            {**common, **_shared_fields(gate), "asked": gate.plan_path, "agents": agents}
        )

    def _build_ending(self) -> RunEnding:
        if self.report is not None:
            report, seq = self.report
            return RunEnding(
                outcome=report.outcome,
                reason=report.reason,
                confidence=report.confidence,
                reasons=report.reasons,
                rows=(seq,),
            )
        outcome, reason = self.own.outcome, self.own.reason
        tasks = [task for gate in self.last_gate for task in gate.build_tasks()]
        must_haves = [pair for gate in self.last_gate for pair in bundle_tasks.read_must_haves(gate)]
        rating = rate_run(outcome, reason, [task.record for task in tasks], [result for result, _ in must_haves])
        rows = {
            self.own.stages[-1].seq,
            *(seq for _, seq in must_haves),
            *(row for task in tasks for row in task.rows_of()),
        }
        return RunEnding(
            outcome=outcome,
            reason=reason,
            confidence=rating.confidence,
            reasons=rating.reasons,
            rows=tuple(sorted(rows)),
        )

    def _list_children(self) -> Iterator[ChildRun]:
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

    def _list_criteria(self) -> Iterator[BundleCriterion]:
        reports = {gate.run_id: gate.tasks for gate in self.report[0].gates} if self.report else {}
        for gate in self.gates:
            reported = {task.id: task for task in reports.get(gate.run_id, ())}
            yield from bundle_tasks.build_criteria(gate, reported)

    def _list_requirements(self) -> Iterator[BundleRequirement]:
        if self.report is not None:
            report, seq = self.report
            for addition in report.requirements:
                yield BundleRequirement(text=addition.text, is_met=addition.is_met, rows=(seq,))
            return
        for gate in self.last_gate:
            yield from bundle_tasks.build_requirements(gate)

    def _list_gaps(self) -> Iterator[BundleGap]:
        """Yield what was overridden, cut short, or looked at by nobody, and each time that a budget stopped the run."""
        if self.report is not None:
            report, seq = self.report
            yield from (BundleGap(text=gap, rows=(seq,)) for gap in report.gaps)
        for record in self.records:
            for seq, payload in record.events_of_type("run.finished"):
                if payload.get("outcome") == RunOutcome.BUDGET_EXHAUSTED:
                    yield BundleGap(text=f"a budget stopped {record.run_id}: {payload.get('reason', '')}", rows=(seq,))

    def _list_trees(self) -> Iterator[TreeChecks]:
        for record in (*self.gates, *((self.own,) if self.own.kind == "run" else ())):
            yield from build_checked_trees(record)

    def _list_regressions(self, trees: Sequence[TreeChecks]) -> Iterator[BundleRegression]:
        for gate in self.gates:
            yield from bundle_tasks.find_test_regressions(gate, replanned=self._is_replaced(gate))
        last = {record.run_id for record in (*self.last_gate, self.own)}
        yield from bundle_tasks.find_check_regressions(tree for tree in trees if tree.run_id in last)
        if self.report is not None and self.report[0].final is not None:
            for description in self.report[0].final.regressions:
                yield BundleRegression(task="final", what=description, stands=True, rows=(self.report[1],))

    def _list_losses(self) -> Iterator[BundleLoss]:
        for gate in self.gates:
            yield from bundle_tasks.build_losses(gate)
        notes = [
            (seq, payload)
            for seq, payload in self.own.events_of_type(PIPELINE_NOTE_EVENT)
            if payload.get("kind") == "direction"
        ]
        for number, (seq, payload) in enumerate(notes, start=1):
            if (data := payload.get("data")) is not None:
                direction = RetryDirection.model_validate(data)
                text = str(payload.get("text", ""))
                yield BundleLoss(of="run", number=number, direction=direction, text=text, rows=(seq,))

    def _list_overrides(self) -> Iterator[BundleOverride]:
        for record in self.records:
            for stored in record.overrides:
                row = stored.row
                yield BundleOverride(
                    task=row.task_id,
                    action=row.action,
                    category=row.category or "",
                    reason=row.reason,
                    by=row.decided_by,
                    at=stored.ts,
                    rows=(stored.seq,),
                )

    def _list_approvals(self) -> Iterator[BundleApproval]:
        for record in self.records:
            for stored in record.approvals:
                row = stored.row
                yield BundleApproval(
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

    def _list_changed(self) -> tuple[BundledFile, ...]:
        if self.report is not None and self.report[0].changed:
            report, seq = self.report
            return tuple(
                BundledFile(path=change.path, change=change.change, risk=change.risk, rows=(seq,))
                for change in report.changed
            )
        files: dict[str, BundledFile] = {}
        for gate in self.gates:
            for file in bundle_tasks.list_changed_files(gate):
                before = files[file.path].rows if file.path in files else ()
                files[file.path] = file.model_copy(update={"rows": (*before, *file.rows)})
        return tuple(files.values())

    def _list_known(self) -> Iterator[RemainingIssue]:
        if self.report is not None:
            report, seq = self.report
            for issue in report.known_issues:
                yield RemainingIssue(
                    severity=issue.severity, title=issue.title, where=issue.where, source=issue.source, rows=(seq,)
                )
            return
        for gate in self.last_gate:
            yield from bundle_tasks.find_known_issues(gate)

    def _list_fixed(self) -> Iterator[FixedIssue]:
        for gate in self.gates:
            yield from bundle_tasks.find_fixed_issues(gate, replanned=self._is_replaced(gate))

    def _is_replaced(self, gate: RunRecord) -> bool:
        """Return whether a later plan has passed in place of this one."""
        last = self.gates[-1]
        return gate is not last and last.outcome is RunOutcome.PASSED

    def _list_commits(self) -> tuple[BundleCommit, ...]:
        """Return the commits. For a run of the pipeline only its own: the commits of its tasks are on no branch."""
        if self.own.kind == "gate":
            return bundle_tasks.list_commits(self.own)
        if self.report is None or self.report[0].commit is None:
            return ()
        report, seq = self.report
        return (
            BundleCommit(commit=report.commit or "", tree=report.tree or "", parent=report.base_commit, rows=(seq,)),
        )

    def _find_head(self) -> LedgerHead:
        seq, digest = max(last for record in self.records for last in record.last_rows)
        return LedgerHead(ledger_id=self.ledger_id, seq=seq, hash=digest)


def _to_audit_finding(finding: AuditFinding) -> BundleAuditFinding:
    return BundleAuditFinding(
        run_id=finding.run_id,
        kind=finding.kind.value,
        rule=finding.rule,
        role=finding.role,
        task=finding.task or "",
        detail=finding.detail,
        caught=finding.caught,
        rows=finding.seqs,
    )


def _read_command(ledger: Ledger, run_id: str) -> str:
    started = [row.row.payload for row in ledger.read(EventRow, run_id=run_id, type="run.started")]
    command = str(started[0].get("command")) if started else ""
    if command not in BUNDLED_COMMANDS:
        subject = f"a run of `proofstone {command}`" if command else "no run in the ledger"
        raise InputError(
            f"{run_id}: is {subject}; only runs of `proofstone run` and `proofstone gate` have a bundle",
            hint=f"see its record with `proofstone ledger show {run_id}`",
        )
    return command


def _shared_fields(setup: PipelineRunConfig | GateSetup) -> dict[str, object]:
    return {
        name: getattr(setup, name) for name in ("command", "version", "repository", "branch", "base_commit", "notes")
    }


def _configured_agents(setup: GateSetup) -> Iterator[tuple[str, str]]:
    yield "executor", setup.executor
    yield "architect", setup.architect
