"""Run one check on one tree in the sandbox and return what was observed. Judging comes later, in `check.rules`."""

from __future__ import annotations

import re
import shlex
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proofstone.check.context import Progress, TreeUnderCheck
from proofstone.check.diagnostics import parse_diagnostics
from proofstone.check.environment import CheckEnvironment
from proofstone.check.models import CheckKind, CheckResult, CheckSpec, ReportFormat, RunDeath, TestReport
from proofstone.check.observation import ObservationRequest
from proofstone.check.reports import read_report
from proofstone.check.reports.observed_lines import read_observations, write_observation_request
from proofstone.check.reports.rerun import merge_variables, report_variables
from proofstone.check.reports.sniff import sniff_formats
from proofstone.check.reports.source import ReportSource
from proofstone.check.rules.compare import merge_test_reports
from proofstone.check.rules.run_end import RunEnd, describe_deaths, find_death, is_worth_repeating
from proofstone.common.models import Diagnostic, Verdict
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.ledger.artifacts import ArtifactRef, ArtifactStore, ArtifactWriter
from proofstone.machine.locks import CheckSlots
from proofstone.sandbox.job import BindMount, JobLimits, Sandbox, SandboxJob, SandboxPaths, SandboxView

_EXCERPT_CHARS = 32 * 1024
"""Characters of the head and of the tail that a result carries. The artifact holds all of the output."""


@dataclass(frozen=True)
class CheckDeadline:
    """How long a run may take, and the setting that defines it."""

    seconds: float
    setting: str


@dataclass(frozen=True)
class CheckRunner:
    """Runs checks. It is the same for all checks of a run."""

    sandbox: Sandbox
    environment: CheckEnvironment
    artifacts: ArtifactStore
    slots: CheckSlots
    limits: JobLimits
    output_bytes: int
    scratch: Path
    cancel: threading.Event
    progress: Progress
    numbers: Callable[[], int]
    """Returns a new number for a scratch folder."""
    record_death: Callable[[CheckResult], object]
    """Records a run that died and is about to be repeated."""
    verify_seconds: float | None = None
    """The deadline of verify commands, if the gate sets one; else the deadline of every check."""
    mask: SecretMask = NO_SECRETS
    """Masks secret values in everything that a check prints."""

    def run(
        self,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        *,
        deadline: CheckDeadline | None = None,
        argv: Sequence[str] | None = None,
        keep: bool = False,
        network: bool = False,
        over: tuple[Path, ...] = (),
        observe: ObservationRequest | None = None,
    ) -> CheckResult:
        """Run one check on one tree. `argv` replaces the check's own for a rerun of single tests. The files of the
        `over` folders lie over those of the tree. `observe` asks for observations of the tests. A run that died is
        repeated once: if it dies again, nothing was measured, and the result states both causes."""
        missing = self.find_missing_tool(spec)
        if missing:
            return build_unverifiable_result(spec, tree, missing, _describe_installation(spec))
        with self.slots.acquire(self.cancel):
            self.progress.on_start(spec.name, tree.phase)
            view = tree.view(spec.needs)
            if network:
                view = replace(view, network=True)
            view = replace(view, overlays=(*over, *view.overlays))
            if spec.kind is CheckKind.HELD_OUT:
                view = _show_held_out(view, tree.held_out)
            deadline = deadline or self.deadline(spec)
            first = self._run_once(spec, tree, view, deadline, argv, keep, observe)
            if first.death is None or not is_worth_repeating(first.death):
                return first
            self.record_death(first)
            second = self._run_once(spec, tree, view, deadline, argv, keep, observe)
        if second.death is None:
            return second
        death = describe_deaths(first.death, second.death)
        return second.model_copy(update={"death": death, "reason": death.detail})

    def deadline(self, spec: CheckSpec) -> CheckDeadline:
        """Return how long a check may take. This depends on the settings alone, not on the duration of earlier runs."""
        if spec.kind is CheckKind.VERIFY and self.verify_seconds is not None:
            return CheckDeadline(self.verify_seconds, "gate.verify_seconds")
        return CheckDeadline(self.limits.seconds, "limits.check_seconds")

    def find_missing_tool(self, spec: CheckSpec) -> str:
        """Return why the check cannot run at all; empty if it can."""
        if spec.shell is not None or self.environment.find_tool(spec.tool, spec.cwd):
            return ""
        return _describe_missing_tool(spec)

    def _run_once(
        self,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        view: SandboxView,
        deadline: CheckDeadline,
        argv: Sequence[str] | None,
        keep: bool,
        observe: ObservationRequest | None,
    ) -> CheckResult:
        scratch = self.scratch / f"job-{self.numbers()}"
        scratch.mkdir()
        place = self.sandbox.prepare(view, scratch)
        if observe is not None:
            write_observation_request(observe, scratch / "report", str(place.root))
        command = self._build_command(spec, tree, place, argv)
        job = SandboxJob(
            argv=tuple(command),
            cwd=place.root / spec.cwd,
            env=self._build_variables(spec, place),
            view=view,
            paths=place,
            scratch=scratch,
            limits=replace(self.limits, seconds=deadline.seconds),
            keeps_writes=keep,
            cancel=self.cancel,
            on_output=None
            if spec.kind is CheckKind.HELD_OUT
            else lambda data: self.progress.on_output(spec.name, tree.phase, data),
            mask=self.mask,
        )
        with self.artifacts.open_writer(self.output_bytes) as writer:
            tee = _HeadAndTail(writer)
            execution = self.sandbox.run(job, tee)
            artifact = writer.finish()
        if keep and execution.exit_code == 0:
            tree.built[spec.name] = self.sandbox.find_written(job)
        end = RunEnd(
            exit_code=execution.exit_code,
            seconds=execution.duration_ms / 1000,
            timed_out=execution.timed_out,
            deadline_setting=deadline.setting,
            cancelled=execution.cancelled,
            limit=execution.limit,
            setup_error=execution.setup_error,
        )
        result = self._build_result(spec, tree, job, end, tee.text(), artifact)
        if observe is None or (result.report is None and observe.repeat is None):
            return result
        source = self._report_source(spec, job, end.exit_code, artifact)
        return result.model_copy(update={"observations": read_observations(source, observe)})

    def _build_command(
        self, spec: CheckSpec, tree: TreeUnderCheck, place: SandboxPaths, argv: Sequence[str] | None
    ) -> list[str]:
        if spec.shell is not None and argv is None:
            return ["/bin/sh", "-c", spec.shell]
        words: list[str] = []
        for word in argv if argv is not None else spec.argv:
            words += (
                select_changed_files(spec, tree.changed)
                if word == "{changed}"
                else [_fill_placeholders(word, self._placeholders(spec, place))]
            )
        return words

    def _placeholders(self, spec: CheckSpec, place: SandboxPaths) -> dict[str, str]:
        python = self.environment.python(spec.cwd)
        return {"python": str(python or "python3"), "report": str(place.report), "probes": str(place.probes)}

    def _build_variables(self, spec: CheckSpec, place: SandboxPaths) -> dict[str, str]:
        inherited = self.environment.check_variables(spec.cwd)
        if place.module_path:
            inherited = merge_variables(inherited, {"PYTHONPATH": ":".join(map(str, place.module_path))})
        report_env = report_variables(_find_declared_format(spec)) if spec.kind.executes_change else {}
        placeholders = self._placeholders(spec, place)
        filled = {name: _fill_placeholders(value, placeholders) for name, value in {**report_env, **spec.env}.items()}
        return merge_variables(inherited, filled) | {"TMPDIR": str(place.temporary)}

    def _build_result(
        self,
        spec: CheckSpec,
        tree: TreeUnderCheck,
        job: SandboxJob,
        end: RunEnd,
        text: str,
        artifact: ArtifactRef,
    ) -> CheckResult:
        report = diagnostics = None
        if end.exit_code is not None and spec.kind.executes_change:
            report = self._read_report(spec, job, end.exit_code, artifact)
        death = find_death(end, report)
        verdict, reason = (
            (Verdict.UNVERIFIABLE, death.detail) if death else self._decide_verdict(spec, end.exit_code, text)
        )
        if verdict is Verdict.UNVERIFIABLE:
            report = None
        if report is not None and (elsewhere := self._find_foreign_import(report, job)):
            verdict, reason, report = Verdict.UNVERIFIABLE, elsewhere, None
        if spec.kind.reports_diagnostics and verdict is Verdict.FAIL:
            output_text = self.artifacts.read(artifact.hash).decode("utf-8", "replace")
            diagnostics = _read_diagnostics(spec, output_text, str(job.cwd))
            if not diagnostics:
                verdict, reason = Verdict.UNVERIFIABLE, f"{reason} without a readable complaint"
        observations = {
            "verdict": verdict,
            "ended_by": "the deadline" if end.timed_out else end.limit,
            "death": death,
            "exit_code": end.exit_code,
            "duration_ms": round(end.seconds * 1000),
            "output": text,
            "artifact": artifact.hash,
            "assurance": self.sandbox.level,
            "report": report,
            "diagnostics": diagnostics or (),
        }
        remedy = _find_remedy(spec, death, reason) if verdict is Verdict.UNVERIFIABLE else ""
        return build_unverifiable_result(spec, tree, reason, remedy).model_copy(update=observations)

    def _decide_verdict(self, spec: CheckSpec, exit_code: int | None, text: str) -> tuple[Verdict, str]:
        """Return the verdict on a run that ended by itself."""
        module = spec.tool.removeprefix("python:")
        if exit_code and spec.tool.startswith("python:") and f"No module named {module}" in text[-2000:]:
            return Verdict.UNVERIFIABLE, _describe_missing_tool(spec)
        if exit_code == 0:
            return Verdict.PASS, ""
        return Verdict.FAIL, f"exit code {exit_code}"

    def _report_source(
        self, spec: CheckSpec, job: SandboxJob, exit_code: int | None, artifact: ArtifactRef
    ) -> ReportSource:
        output = self.artifacts.read(artifact.hash)
        return ReportSource(job.scratch / "report", output, str(job.paths.root), spec.cwd, exit_code, self.mask)

    def _read_report(
        self, spec: CheckSpec, job: SandboxJob, exit_code: int, artifact: ArtifactRef
    ) -> TestReport | None:
        source = self._report_source(spec, job, exit_code, artifact)
        declared = _find_declared_format(spec)
        report_formats = (declared,) if declared else sniff_formats(source.directory, source.output)
        reports = [
            read_report(
                report_format,
                source.directory,
                source.output,
                root=source.root,
                cwd=spec.cwd,
                exit_code=exit_code,
                one_runner=_is_single_runner(spec),
                mask=self.mask,
            )
            for report_format in report_formats
            if report_format is not ReportFormat.EXIT_CODE
        ]
        return merge_test_reports(reports)

    def _find_foreign_import(self, report: TestReport, job: SandboxJob) -> str:
        """Return why the tests say nothing about this tree, if they import another copy of the project."""
        paths = [Path(path) for path in report.imported_from]
        outside = [
            path
            for path in paths
            if not path.is_relative_to(job.paths.root)
            or any(path.is_relative_to(folder) for folder in job.view.dependencies)
        ]
        if not outside:
            return ""
        return (
            f"the tests import the project from {outside[0]}, not from the tree under check; "
            "install it with `pip install -e .`, or not at all"
        )


def _show_held_out(view: SandboxView, paths: Sequence[Path]) -> SandboxView:
    """Return the view of a held-out check: what all others have masked is there, at its own path."""
    binds = tuple(BindMount(path, path) for path in paths if path.exists())
    masked = tuple(path for path in view.masked if path not in paths)
    return replace(view, masked=masked, engine_binds=(*view.engine_binds, *binds))


def _describe_missing_tool(spec: CheckSpec) -> str:
    return f"{spec.tool.rpartition(':')[2]} is not installed" + (f" ({spec.install})" if spec.install else "")


def _find_remedy(spec: CheckSpec, death: RunDeath | None, reason: str) -> str:
    """Return what would let a check run that measured nothing; empty if that is unknown."""
    if death is not None:
        return f"raise {death.setting}, or make {spec.name} need less" if death.setting else ""
    return _describe_installation(spec) if reason == _describe_missing_tool(spec) else ""


def _describe_installation(spec: CheckSpec) -> str:
    return spec.install or f"install {spec.tool.rpartition(':')[2]}"


def select_changed_files(spec: CheckSpec, changed: Sequence[str]) -> list[str]:
    """Return the changed files that a check looks at, relative to its directory."""
    below = "" if spec.cwd in (".", "") else f"{spec.cwd}/"
    files = [path.removeprefix(below) for path in changed if path.startswith(below)]
    return [f"./{path}" if path.startswith("-") else path for path in files if path.endswith(spec.suffixes)]


def build_unverifiable_result(spec: CheckSpec, tree: TreeUnderCheck, reason: str, remedy: str = "") -> CheckResult:
    """Return the result of a check that was not run. `remedy` would let it run."""
    return CheckResult(
        name=spec.name,
        kind=spec.kind,
        tier=spec.tier,
        tool=spec.tool.rpartition(":")[2],
        command=format_command(spec),
        phase=tree.phase,
        tree=tree.tree,
        verdict=Verdict.UNVERIFIABLE,
        reason=reason,
        remedy=remedy,
        required=spec.required,
        decides=spec.decides,
    )


def format_command(spec: CheckSpec) -> str:
    """Return the command as a user would type it."""
    if spec.shell is not None:
        return spec.shell
    return shlex.join("python" if word == "{python}" else word for word in spec.argv)


def _find_declared_format(spec: CheckSpec) -> ReportFormat | None:
    """Return the report format of the check; None if only the run can show which runner is used, as for a user's
    command or make."""
    return None if spec.shell is not None or spec.report is ReportFormat.EXIT_CODE else spec.report


def _is_single_runner(spec: CheckSpec) -> bool:
    """Return whether the engine itself starts the runner, exactly once."""
    return spec.shell is None and spec.report in (ReportFormat.PYTEST, ReportFormat.UNITTEST)


def _fill_placeholders(text: str, names: Mapping[str, str]) -> str:
    """Replace the known placeholders in `text` and nothing else."""
    return re.sub(r"\{(python|report|probes)\}", lambda match: names[match[1]], text)


def _read_diagnostics(spec: CheckSpec, output: str, root: str) -> tuple[Diagnostic, ...]:
    below = "" if spec.cwd in (".", "") else f"{spec.cwd}/"
    diagnostics = parse_diagnostics(spec.tool.rpartition(":")[2], output, root)
    return (
        tuple(diagnostic.model_copy(update={"path": below + diagnostic.path}) for diagnostic in diagnostics)
        if below
        else diagnostics
    )


class _HeadAndTail:
    """Writes output to the artifact and remembers its beginning and its end."""

    def __init__(self, writer: ArtifactWriter) -> None:
        self._writer = writer
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._cut = False

    def write(self, data: bytes, /) -> None:
        self._writer.write(data)
        room = _EXCERPT_CHARS - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._tail.append(rest[-_EXCERPT_CHARS:])
        self._tail_size += len(self._tail[-1])
        self._cut = self._cut or len(rest) > _EXCERPT_CHARS
        while self._tail_size - len(self._tail[0]) >= _EXCERPT_CHARS:
            self._tail_size -= len(self._tail.popleft())
            self._cut = True

    def text(self) -> str:
        mark = b"\n[...]\n" if self._cut else b""
        return (bytes(self._head) + mark + b"".join(self._tail)).decode("utf-8", "replace")
