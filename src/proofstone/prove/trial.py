"""Try one trick: run the cheat and its honest twin through `proofstone check`, and the cheat through an exit-code
gate.

A sample project is a repository that is reset before each trial. It stays at the same path, and untouched files are
left alone, so that what Proofstone knows about its base and dependencies stays valid. The change time of a file's inode
shows whether it was touched, because no program can set it.

`proofstone check` runs as users run it, in its own process: a trick may set variables for its caller, and its effects
stay in that process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import proofstone
from proofstone.check.models import CheckReport
from proofstone.common.models import Confidence, Severity
from proofstone.errors import UserError
from proofstone.machine.files import remove_folder
from proofstone.prove.catalogue import ProjectAct, SampleProject, Trick, Twin
from proofstone.prove.processes import ProcessResult, ProcessRunner, build_environment, create_home
from proofstone.prove.results import CheckEnding, ExitCodeGate, Trial, TrialJudgement, TrialStatus

_FIRST_COMMIT: Final = "git init --quiet .\ngit add --all\ngit commit --quiet --message 'As it was'\n"
_SECONDS: Final = 600

FileStamp = tuple[int, ...]


class SampleError(Exception):
    """A project cannot be created here, or the commands of an act fail. The message says why."""


@dataclass
class SampleRepository:
    root: Path
    pristine: Path
    base: str = ""
    """The first commit."""
    _stamps: dict[Path, FileStamp] = field(default_factory=dict)

    def make(self, project: SampleProject, errands: ProcessRunner, env: Mapping[str, str]) -> None:
        """Create the project with one commit, and run its set-up."""
        self.root.mkdir(parents=True)
        write_project_files(self.root, project.files)
        for lines in (_FIRST_COMMIT, project.setup):
            if lines:
                _run_lines(lines, self.root, errands, env)
        self.base = errands.shell("git rev-parse HEAD", self.root, env, seconds=_SECONDS).output.strip()
        shutil.copytree(self.root, self.pristine, symlinks=True)
        self._stamps = {path: _stamp(path) for path in _walk(self.root)}

    def reset(self) -> None:
        """Remove what a trial added or touched, and restore it from the copy."""
        self.root.chmod(0o755)
        for path in _walk(self.root):
            if _stamp(path) != self._stamps.get(path):
                _remove_path(path)
        for path in self._stamps:
            if os.path.lexists(path):
                continue
            source = self.pristine / path.relative_to(self.root)
            if source.is_dir() and not source.is_symlink():
                path.mkdir()
                path.chmod(stat.S_IMODE(source.stat().st_mode))
            else:
                shutil.copy2(source, path, follow_symlinks=False)
            self._stamps[path] = _stamp(path)


def perform_act(act: ProjectAct, root: Path, errands: ProcessRunner, env: Mapping[str, str]) -> None:
    """Do to the project on disk what `ProjectAct.apply` does in memory."""
    write_project_files(root, act.write)
    for edit in act.edit:
        file = root / edit.path
        file.write_bytes(edit.apply(file.read_bytes().decode("utf-8")).encode("utf-8"))
    for name in act.delete:
        _remove_path(root / name)
    if act.run:
        _run_lines(act.run, root, errands, env)


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink()


def write_project_files(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


def _run_lines(lines: str, root: Path, errands: ProcessRunner, env: Mapping[str, str]) -> None:
    done = errands.shell(lines, root, env, seconds=_SECONDS)
    if done.code != 0:
        how = "were stopped" if done.code is None else f"failed with exit code {done.code}"
        raise SampleError(f"its own commands {how}: {done.last_line}")


def _stamp(path: Path) -> FileStamp:
    """Return values that change when a file is touched. For a folder only its type and mode, because files come and
    go in it.
    """
    info = path.lstat()
    if stat.S_ISDIR(info.st_mode):
        return (info.st_mode,)
    return (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def _walk(root: Path) -> Iterator[Path]:
    """Yield everything below the root, parents first. A folder that the caller removes is not entered."""
    pending = [root]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            yield path
            if path.is_dir() and not path.is_symlink():
                pending.append(path)


CHECK_SECONDS: Final = 900
GATE_SECONDS: Final = 120
_START_CODE: Final = (
    f"import sys; sys.path.insert(0, {str(Path(proofstone.__file__).parents[1])!r}); "
    "from proofstone.cli.main import main; sys.exit(main())"
)
# An unverifiable check has a reason and no finding. These words in the reason count as a rule.
_REASON_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "limit": ("not finished after", "ended at "),
    "no-tests": ("no test was executed", "nothing exercised the change"),
    "unfinished-run": ("run ended before it was finished",),
}


class TrialInterruptedError(Exception):
    """The user interrupted the trial."""


@dataclass
class TrialBench:
    """The workspace of one worker: its samples, its HOME and its Proofstone state."""

    folder: Path
    search: str
    stop: threading.Event
    require_sandbox: bool = False
    kept: Path | None = None
    """Where to copy every trial, if the user wants to inspect them."""
    samples: dict[str, SampleRepository] = field(default_factory=dict)

    @property
    def process_runner(self) -> ProcessRunner:
        return ProcessRunner(self.folder / "errands", self.stop)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def build_environment(self, root: Path, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of programs that run at `root`."""
        filled = {name: value.replace("{root}", str(root)) for name, value in given.items()}
        return build_environment(self.search, self.home, self.state) | filled

    def prepare_sample(self, name: str, project: SampleProject) -> SampleRepository:
        """Return the project's repository, reset to its start."""
        create_home(self.home)
        if name not in self.samples:
            sample = SampleRepository(self.folder / "projects" / name, self.folder / "pristine" / name)
            sample.make(project, self.process_runner, self.build_environment(sample.root, {}))
            self.samples[name] = sample
        else:
            self.samples[name].reset()
            self._forget_anchors()
        return self.samples[name]

    def _forget_anchors(self) -> None:
        """Remove the anchors: a reset repository has lost its anchor, and the trial's state must not expect it."""
        anchors = self.state / "anchors"
        if anchors.is_dir():
            remove_folder(anchors)

    def run_check(
        self, root: Path, base: str, options: list[str], given: Mapping[str, str]
    ) -> tuple[ProcessResult, str]:
        """Run `proofstone check` and return its result and its JSON document."""
        output = self.folder / "said.json"
        output.unlink(missing_ok=True)
        sandbox = ["--require-sandbox"] if self.require_sandbox else []
        command = ["check", "--json", "--quiet", f"--repo={root}", f"--base={base}", *sandbox, *options]
        # -P: like the installed program, do not import from the current folder.
        argv = ["/bin/sh", "-c", 'exec "$@" >"$0"', str(output), sys.executable, "-P", "-c", _START_CODE, *command]
        done = self.process_runner.run(
            argv, root, self.build_environment(root, given), seconds=CHECK_SECONDS, limited=False
        )
        if self.stop.is_set():
            raise TrialInterruptedError
        return done, output.read_text("utf-8", "replace") if output.exists() else ""


def try_trick(trick: Trick, project: SampleProject, bench: TrialBench, *, gate: bool) -> Trial:
    """Try the cheat, its twin and, if requested, the exit-code gate."""
    try:
        bench.prepare_sample(trick.project, project)
    except SampleError as error:
        return build_trial(trick, TrialStatus.NOT_TRIED, why=f"cannot set up the project {trick.project}: {error}")
    try:
        if gate and (problem := _find_unsound_part(trick, project, bench)):
            return build_trial(trick, TrialStatus.BROKEN, why=problem)
        cheat = _check_act(trick, project, bench, twin=None, quick=not gate)
        honest = _check_act(trick, project, bench, twin=trick.honest, quick=not gate)
        if trick.truth and gate:  # it would not be sound otherwise
            gate_result, why = ExitCodeGate.PASSES, ""
        else:
            gate_result, why = (
                _run_exit_code_gate(trick, project, bench) if gate else (ExitCodeGate.NOT_RUN, "not requested")
            )
    except SampleError as error:
        return build_trial(trick, TrialStatus.BROKEN, why=str(error))
    if trick.axes:
        stopping_rules, standing = cheat.rules, decide_composed_standing(cheat, honest)
    else:
        stopping_rules = tuple(rule for rule in trick.rules if rule in cheat.rules)
        standing = _decide_standing(cheat, stopping_rules)
    return build_trial(trick, standing, why=why).model_copy(
        update={
            "stopped_by": stopping_rules if standing is TrialStatus.STOPPED else (),
            "cheat": cheat,
            "honest": honest,
            "gate": gate_result,
        }
    )


def build_trial(trick: Trick, standing: TrialStatus, *, why: str) -> Trial:
    return Trial(
        trick=trick.name,
        does=trick.does,
        family=trick.family,
        layer=trick.layer or "",
        axes=trick.axes,
        origin=trick.origin,
        project=trick.project,
        expected=trick.rules,
        standing=standing,
        why=why,
    )


def _decide_standing(cheat: TrialJudgement, stopping_rules: tuple[str, ...]) -> TrialStatus:
    if cheat.ending is CheckEnding.BROKEN:
        return TrialStatus.BROKEN
    if cheat.ending is CheckEnding.PASSED:
        return TrialStatus.MISSED
    return TrialStatus.STOPPED if stopping_rules else TrialStatus.OTHERWISE


def decide_composed_standing(cheat: TrialJudgement, honest: TrialJudgement) -> TrialStatus:
    """Return what became of a composed trick. A reason below high counts as naming it if its twin does not have that
    reason too, whatever the numbers in it.
    """
    if cheat.ending is CheckEnding.BROKEN:
        return TrialStatus.BROKEN
    if cheat.ending is not CheckEnding.PASSED:
        return TrialStatus.STOPPED
    if cheat.confidence is Confidence.HIGH:
        return TrialStatus.MISSED
    shared = {re.sub(r"\d+", "0", reason) for reason in honest.reasons}
    is_named = any(re.sub(r"\d+", "0", reason) not in shared for reason in cheat.reasons)
    return TrialStatus.NAMED if is_named else TrialStatus.UNNAMED


def _check_act(
    trick: Trick, project: SampleProject, bench: TrialBench, *, twin: Twin | None, quick: bool
) -> TrialJudgement:
    sample = _prepare_sample(trick, project, bench, twin)
    act: ProjectAct = twin or trick.cheat
    options = _check_options(trick, project, twin, bench.folder / "heldout")
    if quick and not trick.axes:  # how strong the tests are changes the confidence, which only composed tricks look at
        options.append("--strength=off")
    env = bench.build_environment(sample.root, act.env)
    with bench.process_runner.run_in_background(act.during, sample.root, env, seconds=CHECK_SECONDS):
        done, document = bench.run_check(sample.root, sample.base, options, act.env)
    if bench.kept:
        place = bench.kept / trick.name / ("honest" if twin else "cheat")
        shutil.copytree(sample.root, place / "work-tree", symlinks=True, ignore=_list_special_files)
        (place / "check.json").write_text(document, "utf-8")
    return judge_check_result(done, document)


def _list_special_files(folder: str, names: list[str]) -> list[str]:
    """Return the pipes and sockets, which cannot be copied."""
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _prepare_sample(trick: Trick, project: SampleProject, bench: TrialBench, twin: Twin | None) -> SampleRepository:
    """Return the project after the cheat, or after what the twin does instead."""
    sample = bench.prepare_sample(trick.project, project)
    acts = [trick.cheat] if twin is None else [*([project.repair] if twin.repair else []), twin]
    for act in acts:
        perform_act(act, sample.root, bench.process_runner, bench.build_environment(sample.root, act.env))
        if bench.stop.is_set():
            raise TrialInterruptedError
    return sample


def _check_options(trick: Trick, project: SampleProject, twin: Twin | None, heldout: Path) -> list[str]:
    task_options = trick.resolve_options(project, twin)
    options = [f"--files={glob}" for glob in task_options.declared or ()]
    options += [f"--must-pass={test}" for test in task_options.must_pass or ()]
    options += [f"--verify={command}" for command in task_options.verify or ()]
    if task_options.accept:  # the catalogue is the approver of its honest twins
        options += [f"--accept-test-changes={task_options.accept}"]
    accepted_rules = twin.accepted_rules if twin else ()
    options += [f"--accept={rule}=it is what it says" for rule in accepted_rules]
    if task_options.accept or accepted_rules:
        options += ["--accepted-by=the catalogue"]
    if trick.heldout:
        shutil.rmtree(heldout, ignore_errors=True)
        write_project_files(heldout, trick.heldout.files)
        options += [f"--heldout={trick.heldout.command}"]
        options += [f"--heldout-files={heldout}"] if trick.heldout.files else []
    return options


def judge_check_result(done: ProcessResult, document: str) -> TrialJudgement:
    """Return how the check ended, and which rules were reported."""
    report_fields = _parse_report(document)
    if done.code == UserError.exit_code and "error" in report_fields:
        return TrialJudgement(ending=CheckEnding.REFUSED, rules=("refused",), reason=report_fields["error"]["message"])
    if done.code not in (0, 1) or "error" in report_fields or not report_fields:
        message = report_fields["error"]["message"] if "error" in report_fields else done.last_line
        return TrialJudgement(ending=CheckEnding.BROKEN, reason=f"exit code {done.code}: {message}")
    report = CheckReport.model_validate_json(document)
    rules = [finding.rule for finding in report.findings if finding.severity is not Severity.MINOR]
    reasons = "\n".join((report.reason, *(line.reason for line in report.checks)))
    rules += [rule for rule, words in _REASON_RULES.items() if any(word in reasons for word in words)]
    return TrialJudgement(
        ending=CheckEnding(report.outcome.value),
        rules=tuple(dict.fromkeys(rules)),
        reason=report.reason,
        confidence=report.confidence,
        reasons=tuple(reason.reason for reason in report.reasons),
    )


def _parse_report(document: str) -> dict[str, Any]:
    """Return the document, or an empty one if the check did not finish it."""
    try:
        parsed = json.loads(document)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _find_unsound_part(trick: Trick, project: SampleProject, bench: TrialBench) -> str:
    """Return what is wrong with a trick that says how the truth about it is found: the project's own tests must pass
    after the cheat and after the twin, and the truth must tell the two apart.
    """
    if not trick.truth:
        return ""
    for twin in (None, trick.honest):
        side = "honest twin" if twin else "cheat"
        sample = _prepare_sample(trick, project, bench, twin)
        env = bench.build_environment(sample.root, {}) | {"PYTHONDONTWRITEBYTECODE": "1"}
        done = bench.process_runner.run(["/bin/sh", "-c", project.test], sample.root, env, seconds=GATE_SECONDS)
        if done.code != 0:
            return f"{side}: the project's own tests fail: {done.last_line}"
        write_project_files(sample.root, trick.truth.files)
        done = bench.process_runner.run(["/bin/sh", "-c", trick.truth.command], sample.root, env, seconds=GATE_SECONDS)
        if (done.code == 0) is not bool(twin):
            return f"{side}: the hidden check {'fails' if twin else 'passes'}: {done.last_line}"
        if bench.stop.is_set():
            raise TrialInterruptedError
    return ""


def _run_exit_code_gate(trick: Trick, project: SampleProject, bench: TrialBench) -> tuple[ExitCodeGate, str]:
    """Run the project's own test command after the cheat. Only its exit code counts."""
    if trick.bare:
        return ExitCodeGate.NOT_RUN, trick.bare
    sample = _prepare_sample(trick, project, bench, None)
    # Otherwise bytecode of dependencies would stay where checks look for it.
    env = bench.build_environment(sample.root, trick.cheat.env) | {"PYTHONDONTWRITEBYTECODE": "1"}
    with bench.process_runner.run_in_background(trick.cheat.during, sample.root, env, seconds=GATE_SECONDS):
        done = bench.process_runner.run(["/bin/sh", "-c", project.test], sample.root, env, seconds=GATE_SECONDS)
    if bench.stop.is_set():
        raise TrialInterruptedError
    return (ExitCodeGate.PASSES if done.code == 0 else ExitCodeGate.REFUSES), ""
