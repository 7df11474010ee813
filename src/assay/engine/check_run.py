"""`assay check`, from the work tree to the verdict. It reads like what it does:

freeze the tree → find the checks → run each on the base and on the change → look again at what failed
→ judge → record → decide.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from assay.adapters.cache import ResultCache
from assay.adapters.checks.discovery import Discovery, discover
from assay.adapters.checks.load import load_check
from assay.adapters.environment import Environment, package_folders
from assay.adapters.git.anchor import write_anchor
from assay.adapters.git.blobs import BlobReader, blob_reader, tree_files
from assay.adapters.git.program import readable
from assay.adapters.git.repository import Repository
from assay.adapters.git.snapshot import Snapshot, snapshot
from assay.adapters.git.store import Store
from assay.adapters.ledger import Ledger
from assay.adapters.ledger.artifacts import ArtifactStore
from assay.adapters.sandbox.job import Limits, Sandbox
from assay.adapters.slots import Slots
from assay.config import Settings
from assay.contracts.change import ChangeKind
from assay.contracts.check import CheckResult, CheckSpec
from assay.contracts.finding import Finding
from assay.contracts.report import CheckLine, CheckReport
from assay.contracts.tests import TestReport
from assay.contracts.verdict import Outcome, Phase, Severity, Verdict
from assay.core import cascade
from assay.core.judge import Excuses, Judgement, judge
from assay.core.must_pass import must_pass_findings
from assay.core.outcome import decide, weakest
from assay.core.scope import undeclared
from assay.engine.execution import Runner, selected, unverifiable
from assay.engine.inspection import (
    ChangedFile,
    changed_files,
    inspect,
    inspect_readiness,
    is_documentation,
    is_large,
)
from assay.engine.old_tests import OldTests
from assay.engine.progress import Progress
from assay.engine.recording import Recorder
from assay.engine.second_runs import SecondRuns
from assay.engine.setup import Prepared, is_manifest, prepare
from assay.engine.trees import TreeUnderCheck
from assay.errors import LedgerError

_WORKERS = 16
_SHORTEST_DEADLINE = 60.0
_DEADLINE_FACTOR = 3


@dataclass(frozen=True)
class CheckRequest:
    """What the person asked for."""

    base: str | None = None
    """A revision; else what the settings say."""
    verify: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    must_pass: tuple[str, ...] = ()
    staged: bool = False
    fresh: bool = False
    compare_bare: bool = False
    own_settings: bool = False
    """Use the settings of the work tree, although the base has others."""
    accept_test_changes: str = ""
    """The person's reason, if tests that are gone or skipped are meant to be."""


@dataclass(frozen=True)
class World:
    """Everything outside that a run touches, chosen in `app.py`."""

    run_id: str
    repository: Repository
    store: Store
    home: Path
    user_home: Path
    base_commit: str
    base_tree: str
    settings: Settings
    settings_note: str
    """What the person should know about where the settings come from."""
    ledger: Ledger
    ledger_path: Path
    artifacts: ArtifactStore
    sandbox: Sandbox
    bare: Sandbox | None
    slots: Slots
    scratch: Path
    cancel: threading.Event
    progress: Progress


@dataclass(frozen=True)
class Judged:
    """One check at its end."""

    line: CheckLine
    judgement: Judgement
    excuses: Excuses
    edited: tuple[str, ...]
    report: TestReport | None


class CheckRun:
    """One run. Everything that is found out once is a cached property, in the order in which it is needed."""

    def __init__(self, world: World, request: CheckRequest) -> None:
        self.world = world
        self.request = request
        self.notes: list[str] = [world.settings_note] if world.settings_note else []
        self.recorder = Recorder(world.run_id, world.ledger, self._cache, world.artifacts)
        self._numbers = itertools.count(1)

    def run(self) -> CheckReport:
        world = self.world
        world.progress.step("freezing the work tree")
        self.recorder.event(
            "run.started",
            command="check",
            repository=str(world.repository.root),
            tree=self.snapshot.tree,
            base=self.snapshot.base,
            base_commit=self.world.base_commit,
            sandbox=world.sandbox.level.value,
        )
        try:
            report = self._checked()
        except BaseException as error:
            with suppress(LedgerError):  # what ended the run is the news, not that it cannot be written down
                self.recorder.event("run.finished", outcome="interrupted", reason=_told(error))
            raise
        if self.request.own_settings:
            self.recorder.event("settings.own", reason="the person used the settings of the work tree")
        if self.request.accept_test_changes:
            self.recorder.event("test-changes.accepted", reason=self.request.accept_test_changes)
        self.recorder.event("run.finished", outcome=report.outcome.value, reason=report.reason)
        self._anchor()
        return report.model_copy(update={"notes": tuple(self.notes)})

    def _checked(self) -> CheckReport:
        lines: list[CheckLine] = []
        findings = [*self.snapshot.findings, *self._scope_findings()]
        for result, found in self._inspected():
            findings += found
            lines.append(self._inspected_line(result))
        self._set_up()
        judged = self._cascade()
        findings += [finding for one in judged for finding in one.judgement.findings]
        lines += [one.line for one in judged]
        reports = [one.report for one in judged if one.report]
        findings += must_pass_findings(self.request.must_pass, reports)
        outcome, reason = decide(lines, findings, documentation_only=is_documentation(self.files))
        if outcome is Outcome.PASSED and self._prepared:
            self._prepared.promote()
        return self._report(lines, findings, judged, outcome, reason)

    # What is checked

    @cached_property
    def snapshot(self) -> Snapshot:
        return snapshot(self.world.store, self.world.base_tree, staged=self.request.staged)

    @cached_property
    def files(self) -> list[ChangedFile]:
        with blob_reader(self.world.store.git()) as blobs:
            return changed_files(self.snapshot, blobs)

    @cached_property
    def _tree_files(self) -> tuple[dict[bytes, str], dict[bytes, str]]:
        git = self.world.store.git()
        after = tree_files(git, self.snapshot.tree)
        return (after if self.snapshot.change.empty else tree_files(git, self.snapshot.base)), after

    @cached_property
    def specs(self) -> tuple[CheckSpec, ...]:
        """The cascade's commands: discovered on both trees, and the person's own."""
        before, after = self._tree_files
        with blob_reader(self.world.store.git()) as blobs:
            found = _discovered(after, blobs)
            known = found if self.snapshot.change.empty else _discovered(before, blobs)
        self.notes += found.notes
        check = self.world.settings.check
        specs = cascade.chosen(
            cascade.combined(found.specs, known.specs),
            (*check.verify, *self.request.verify),
            disable=check.disable,
            optional=check.optional,
        )
        present = [self._path(entry.path) for entry in self.snapshot.entries if entry.kind is not ChangeKind.DELETED]
        specs = tuple(spec for spec in specs if "{changed}" not in spec.argv or selected(spec, present))
        if not cascade.runtime_signal(specs):
            specs = (*specs, *load_check(present))
        return specs

    @staticmethod
    def _path(path: bytes) -> str:
        return readable(path)

    @cached_property
    def environment(self) -> Environment:
        top = {readable(path) for path in self._tree_files[1]}
        folders = {"/".join(path.split("/")[:depth]) for path in top for depth in range(1, path.count("/") + 1)}
        return Environment(
            root=self.world.repository.root,
            home=self.world.user_home,
            settings=self.world.settings.environment,
            packages=package_folders(spec.cwd for spec in self.specs),
            tracked=frozenset(folders),
        )

    # Where it runs

    @cached_property
    def _cache(self) -> ResultCache:
        return ResultCache(self.world.home / "cache" / "results", self.world.ledger)

    @cached_property
    def runner(self) -> Runner:
        world, sandbox = self.world, self.world.settings.sandbox
        return Runner(
            sandbox=world.sandbox,
            environment=self.environment,
            artifacts=world.artifacts,
            slots=world.slots,
            limits=Limits(world.settings.limits.check_seconds, sandbox.memory_mb, sandbox.processes),
            output_bytes=world.settings.limits.output_mb << 20,
            scratch=world.scratch,
            cancel=world.cancel,
            progress=world.progress,
            numbers=lambda: next(self._numbers),
        )

    @cached_property
    def _before(self) -> TreeUnderCheck:
        return self._tree(Phase.BASELINE, self.snapshot.base, ChangeKind.ADDED)

    @cached_property
    def _after(self) -> TreeUnderCheck:
        return self._tree(Phase.AFTER, self.snapshot.tree, ChangeKind.DELETED)

    def _tree(self, phase: Phase, tree: str, absent: ChangeKind) -> TreeUnderCheck:
        return TreeUnderCheck(
            phase=phase,
            tree=tree,
            commit=self.world.base_commit,
            folder=self.world.scratch / phase.value,
            store=self.world.store,
            environment=self.environment,
            state=self.world.home,
            changed=tuple(os.fsdecode(e.path) for e in self.snapshot.entries if e.kind is not absent),
        )

    def _set_up(self) -> None:
        """Dependencies by `environment.setup`, for both trees, before anything runs on them."""
        self._prepared: Prepared | None = None
        if not self.world.settings.environment.setup:
            return
        self.world.progress.step("setting up the environment")
        before, after = ({readable(path): blob for path, blob in files.items()} for files in self._tree_files)
        folder = self.world.home / "environments"
        shared = prepare(self.runner, self._before, before, own=False, folder=folder)
        touched = any(is_manifest(file.path) for file in self.files)
        own = prepare(self.runner, self._after, after, own=True, folder=folder) if touched else shared
        self._prepared = own
        self._before.under = (shared.layer,) if shared else ()
        self._after.under = (own.layer,) if own else ()

    # The cascade

    def _inspected(self) -> list[tuple[CheckResult, list[Finding]]]:
        found = inspect(self.files, self.snapshot.tree, max_file_kb=self.world.settings.check.max_file_kb)
        large = is_large(self.files) or any(
            not undeclared([file.path], self.world.settings.check.large) for file in self.files
        )
        return found + (inspect_readiness(self.files, self.snapshot.tree) if large else [])

    def _inspected_line(self, result: CheckResult) -> CheckLine:
        judgement = Judgement(verdict=result.verdict, reason=result.reason)
        seq = self.recorder.check(None, result, judgement, None)
        line = _line(result, None, judgement, seq)
        self.world.progress.judged(line)
        return line

    def _cascade(self) -> list[Judged]:
        self.world.progress.step(f"running {len(self.specs)} checks")
        done: dict[str, Judged] = {}
        with ThreadPoolExecutor(_WORKERS) as pool, ThreadPoolExecutor(_WORKERS) as bases:
            try:
                for wave in cascade.waves(self.specs):
                    started = [pool.submit(self._one, spec, dict(done), bases) for spec in wave]
                    for spec, future in zip(wave, started, strict=True):
                        done[spec.name] = future.result()
            except BaseException:
                self.world.cancel.set()  # whatever went wrong, nothing goes on running
                raise
        return list(done.values())

    def _one(self, spec: CheckSpec, done: dict[str, Judged], bases: ThreadPoolExecutor) -> Judged:
        """One check on both trees, judged and recorded."""
        keys = self._key(spec, self.snapshot.base), self._key(spec, self.snapshot.tree)
        keep = any(spec.name in other.needs for other in self.specs)
        broken = [name for name in spec.needs if done[name].line.verdict is not Verdict.PASS]
        if broken:
            after = unverifiable(spec, self._after, f"{broken[0]} must pass first")
            return self._end(spec, None, after, None)
        known = self._reused(spec, self._before, keys[0], keep)
        base = bases.submit(self._on_base, spec, known, keys[0], keep)
        after = self._reused(spec, self._after, keys[1], keep) or self.runner.run(
            spec, self._after, seconds=self._deadline(known), keep=keep
        )
        self.world.progress.ended(spec.name, Phase.AFTER, reused=after.reused_from is not None)
        before = base.result()
        if before is None and self.snapshot.change.empty:
            before = after.model_copy(update={"phase": Phase.BASELINE})
        return self._end(spec, before, after, keys)

    def _on_base(self, spec: CheckSpec, known: CheckResult | None, key: str, keep: bool) -> CheckResult | None:
        """The same check on the base; None where there is nothing to compare with."""
        nothing = "{changed}" in spec.argv and not selected(spec, self._before.changed)
        if self.snapshot.change.empty or nothing:
            return None
        if known is None and any(name not in self._before.built for name in spec.needs):
            return unverifiable(spec, self._before, "the build that it needs fails on the base")
        result = known or self.runner.run(spec, self._before, keep=keep)
        self.world.progress.ended(spec.name, Phase.BASELINE, reused=known is not None)
        return result

    def _reused(self, spec: CheckSpec, tree: TreeUnderCheck, key: str, keep: bool) -> CheckResult | None:
        """A kept result, unless fresh ones are wanted or what the check writes is needed by one that must run."""
        if self.request.fresh or (keep and self._products_wanted(spec, tree)):
            return None
        found = self._cache.find(key)
        return found.model_copy(update={"phase": tree.phase, "required": spec.required}) if found else None

    def _products_wanted(self, spec: CheckSpec, tree: TreeUnderCheck) -> bool:
        waiting = [other for other in self.specs if spec.name in other.needs]
        return any(self._cache.find(self._key(other, tree.tree)) is None for other in waiting)

    def _key(self, spec: CheckSpec, tree: str) -> str:
        return ResultCache.key(
            tree=tree,
            spec=spec.model_dump(mode="json", exclude={"required", "evidence", "install"}),
            files=selected(spec, self._after.changed) if "{changed}" in spec.argv else (),
            environment=self.environment.digest,
            tools=self.environment.tool_digest([spec.tool], spec.cwd),
            sandbox=self.world.sandbox.level,
            network=self.world.settings.environment.network,
            setup=[str(path) for path in self._after.under],
        )

    def _deadline(self, known: CheckResult | None) -> float:
        """Three times what the base took, within the configured maximum."""
        most = float(self.world.settings.limits.check_seconds)
        if known is None:
            return most
        return min(most, max(_SHORTEST_DEADLINE, _DEADLINE_FACTOR * known.duration_ms / 1000))

    def _end(
        self, spec: CheckSpec, before: CheckResult | None, after: CheckResult, keys: tuple[str, str] | None
    ) -> Judged:
        excuses = self.second_runs.excuses(spec, before, after)
        if self.request.accept_test_changes:
            excuses = excuses.model_copy(update={"losses_accepted": True})
        judgement = judge(before, after, excuses)
        edited, findings = self.old_tests.edited(spec, before, after)
        judgement = judgement.with_edited(edited, findings, accepted=bool(self.request.accept_test_changes))
        seq = self.recorder.check(before, after, judgement, keys)
        line = _line(after, before, judgement, seq)
        self.world.progress.judged(line)
        return Judged(line, judgement, excuses, edited, after.report)

    @cached_property
    def second_runs(self) -> SecondRuns:
        bare = replace(self.runner, sandbox=self.world.bare) if self.world.bare else None
        return SecondRuns(
            runner=self.runner,
            recorder=self.recorder,
            bare=bare,
            base=self._before,
            tree=self._after,
            tests=self.world.settings.tests,
            reruns=self.world.settings.check.flaky_reruns,
            changed=tuple(file.path for file in self.files),
        )

    @cached_property
    def old_tests(self) -> OldTests:
        def tree(derived: str) -> TreeUnderCheck:
            folder = self.world.scratch / f"derived-{next(self._numbers)}"
            return replace(self._after, tree=derived, folder=folder, built={}, _lock=threading.Lock(), _view=None)

        return OldTests(
            runner=self.runner,
            store=self.world.store,
            snapshot=self.snapshot,
            make_tree=tree,
            recorder=self.recorder,
            key=self._key,
            accepted=bool(self.request.accept_test_changes),
            fresh=self.request.fresh,
        )

    # What is said

    def _scope_findings(self) -> list[Finding]:
        """Changed files that `--files` does not declare."""
        if not self.request.files:
            return []
        outside = undeclared((path.path for path in self.snapshot.change.paths), self.request.files)
        return [
            Finding(
                layer="scope",
                rule="undeclared-file",
                severity=Severity.MAJOR,
                path=path,
                detail="changed, but not among the files that --files declares",
                fix="undo the change to it, or declare it",
            )
            for path in outside
        ]

    def _report(
        self,
        lines: Sequence[CheckLine],
        findings: Sequence[Finding],
        judged: Sequence[Judged],
        outcome: Outcome,
        reason: str,
    ) -> CheckReport:
        def ids(of: Callable[[Judged], tuple[str, ...]]) -> tuple[str, ...]:
            return tuple(sorted({test for one in judged for test in of(one)}))

        if self.snapshot.change.empty:
            self.notes.append("the work tree equals the base: there is no change to check")
        for path in self._after.empty_submodules:
            self.notes.append(f"the submodule {path} is not initialised here, so checks see it empty")
        return CheckReport(
            run_id=self.world.run_id,
            tree=self.snapshot.tree,
            base=self.snapshot.base,
            base_commit=self.world.base_commit,
            outcome=outcome,
            reason=reason,
            assurance=weakest([line.assurance for line in lines]),
            checks=tuple(lines),
            findings=tuple(findings),
            regressions=ids(lambda one: one.judgement.comparison.regressions),
            fixed=ids(lambda one: one.judgement.comparison.fixed),
            standing=ids(lambda one: one.judgement.comparison.standing),
            edited=ids(lambda one: one.edited),
            flaky=ids(lambda one: one.excuses.flaky),
            unverifiable_tests=ids(lambda one: one.excuses.sandbox_only),
            changed=tuple(path.path for path in self.snapshot.change.paths),
            notes=(),
            ledger=str(self.world.ledger_path),
        )

    def _anchor(self) -> None:
        problem = write_anchor(self.world.repository, self.world.ledger.head().to_bytes())
        if problem:
            self.notes.append(f"the ledger's head could not be written to the repository: {problem}")


def _discovered(files: dict[bytes, str], blobs: BlobReader) -> Discovery:
    """What the tree's own files say can be checked."""
    names = {readable(path): blob for path, blob in files.items()}
    return discover(list(names), lambda path: blobs.read(names[path]) if path in names else None)


def _told(error: BaseException) -> str:
    return str(error).encode("utf-8", "backslashreplace").decode("utf-8") or type(error).__name__


def _line(result: CheckResult, before: CheckResult | None, judgement: Judgement, seq: int) -> CheckLine:
    return CheckLine(
        name=result.name,
        kind=result.kind,
        tier=result.tier,
        verdict=judgement.verdict,
        baseline=before.verdict if before else None,
        duration_ms=result.duration_ms,
        reused=result.reused_from is not None,
        required=result.required,
        reason=judgement.reason,
        command=result.command,
        assurance=result.assurance,
        tests=result.report.executed if result.report else None,
        seq=seq,
        artifact=result.artifact,
    )
