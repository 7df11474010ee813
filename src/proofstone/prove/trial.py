"""A sample project as a repository, put back to its beginning before each trial.

It always stands at the same path, and what no trial touched is left alone, so that what Proofstone learned about the
base
and its dependencies stays true. The time of the last change of a file's inode tells what was touched: no program can
set it.

One trick, tried: the cheat and its honest twin through `proofstone check`, and the cheat through an exit-code gate.

`proofstone check` runs as people run it, in a process of its own: a trick may give its caller variables of its own, and
what it does to that process stays there.
"""

from __future__ import annotations

import json
import os
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
from proofstone.common.models import Severity
from proofstone.errors import UserError
from proofstone.machine.files import remove
from proofstone.prove.catalogue import Act, Project, Trick, Twin
from proofstone.prove.processes import Done, Errands, fresh_home, variables
from proofstone.prove.results import Ending, Gate, Judged, Standing, Trial

_FIRST_COMMIT: Final = "git init --quiet .\ngit add --all\ngit commit --quiet --message 'As it was'\n"
_SECONDS: Final = 600

Stamp = tuple[int, ...]


class SampleError(Exception):
    """A project that cannot be made here, or an act whose own lines fail; the message says why."""


@dataclass
class Sample:
    root: Path
    pristine: Path
    base: str = ""
    """The first commit."""
    _stamps: dict[Path, Stamp] = field(default_factory=dict)

    def make(self, project: Project, errands: Errands, env: Mapping[str, str]) -> None:
        """The project with one commit, and its set-up done."""
        self.root.mkdir(parents=True)
        write(self.root, project.files)
        for lines in (_FIRST_COMMIT, project.setup):
            if lines:
                _run(lines, self.root, errands, env)
        self.base = errands.shell("git rev-parse HEAD", self.root, env, seconds=_SECONDS).output.strip()
        shutil.copytree(self.root, self.pristine, symlinks=True)
        self._stamps = {path: _stamp(path) for path in _below(self.root)}

    def reset(self) -> None:
        """As it was made: what a trial touched or added is taken away, and put back from the copy."""
        self.root.chmod(0o755)
        for path in _below(self.root):
            if _stamp(path) != self._stamps.get(path):
                _take_away(path)
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


def perform(act: Act, root: Path, errands: Errands, env: Mapping[str, str]) -> None:
    """What somebody does to the project: the same on disk as `Act.of` says."""
    write(root, act.write)
    for edit in act.edit:
        file = root / edit.path
        file.write_bytes(edit.of(file.read_bytes().decode("utf-8")).encode("utf-8"))
    for name in act.delete:
        _take_away(root / name)
    if act.run:
        _run(act.run, root, errands, env)


def _take_away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink()


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


def _run(lines: str, root: Path, errands: Errands, env: Mapping[str, str]) -> None:
    done = errands.shell(lines, root, env, seconds=_SECONDS)
    if done.code != 0:
        ended = "were ended" if done.code is None else f"end with exit code {done.code}"
        raise SampleError(f"its own lines {ended}: {done.last_words}")


def _stamp(path: Path) -> Stamp:
    """What differs when a file was touched. Of a folder only that it is one, and its mode: files come and go in it."""
    info = path.lstat()
    if stat.S_ISDIR(info.st_mode):
        return (info.st_mode,)
    return (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def _below(root: Path) -> Iterator[Path]:
    """Everything below, parents first; what is taken away when it is told is not entered."""
    waiting = [root]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            yield path
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)


CHECK_SECONDS: Final = 900
GATE_SECONDS: Final = 120
_START: Final = (
    f"import sys; sys.path.insert(0, {str(Path(proofstone.__file__).parents[1])!r}); "
    "from proofstone.cli.main import main; sys.exit(main())"
)
# A check that could not be verified has a reason and no finding. These words in it are as good as a rule.
_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "limit": ("not finished after", "ended at "),
    "no-tests": ("no test was executed", "nothing exercised the change"),
    "unfinished-run": ("run ended before it was finished",),
}


class LeftError(Exception):
    """The person left while it ran."""


@dataclass
class Bench:
    """One worker's place: its samples, its HOME, its Proofstone state."""

    folder: Path
    search: str
    stop: threading.Event
    require_sandbox: bool = False
    kept: Path | None = None
    """Where a copy of every trial is put, if the person wants to look at them."""
    samples: dict[str, Sample] = field(default_factory=dict)

    @property
    def errands(self) -> Errands:
        return Errands(self.folder / "errands", self.stop)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def variables(self, root: Path, given: Mapping[str, str]) -> dict[str, str]:
        """The environment of whoever works at `root`."""
        filled = {name: value.replace("{root}", str(root)) for name, value in given.items()}
        return variables(self.search, self.home, self.state) | filled

    def sample(self, name: str, project: Project) -> Sample:
        """The project's repository, as it was at its beginning."""
        fresh_home(self.home)
        if name not in self.samples:
            made = Sample(self.folder / "projects" / name, self.folder / "pristine" / name)
            made.make(project, self.errands, self.variables(made.root, {}))
            self.samples[name] = made
        else:
            self.samples[name].reset()
            self._forget_anchors()
        return self.samples[name]

    def _forget_anchors(self) -> None:
        """A repository that is put back has lost its anchor; the trial's own state must not miss it."""
        anchors = self.state / "anchors"
        if anchors.is_dir():
            remove(anchors)

    def check(self, root: Path, base: str, options: list[str], given: Mapping[str, str]) -> tuple[Done, str]:
        """`proofstone check` there, with its document."""
        said = self.folder / "said.json"
        said.unlink(missing_ok=True)
        sandbox = ["--require-sandbox"] if self.require_sandbox else []
        command = ["check", "--json", "--quiet", f"--repo={root}", f"--base={base}", *sandbox, *options]
        # -P: what lies in the folder where it is started is not imported, as with the installed program.
        argv = ["/bin/sh", "-c", 'exec "$@" >"$0"', str(said), sys.executable, "-P", "-c", _START, *command]
        done = self.errands.run(argv, root, self.variables(root, given), seconds=CHECK_SECONDS, limited=False)
        if self.stop.is_set():
            raise LeftError
        return done, said.read_text("utf-8", "replace") if said.exists() else ""


def try_trick(trick: Trick, project: Project, bench: Bench, *, gate: bool) -> Trial:
    """The cheat, its twin and, if wanted, the exit-code gate."""
    try:
        bench.sample(trick.project, project)
    except SampleError as error:
        return told(trick, Standing.NOT_TRIED, why=f"the project {trick.project} could not be set up: {error}")
    try:
        cheat = _checked(trick, project, bench, twin=None)
        honest = _checked(trick, project, bench, twin=trick.honest)
        seen, why = _gate(trick, project, bench) if gate else (Gate.NOT_RUN, "not asked for")
    except SampleError as error:
        return told(trick, Standing.BROKEN, why=str(error))
    by = tuple(rule for rule in trick.rules if rule in cheat.rules)
    standing = _standing(cheat, by)
    return told(trick, standing, why=why).model_copy(
        update={
            "stopped_by": by if standing is Standing.STOPPED else (),
            "cheat": cheat,
            "honest": honest,
            "gate": seen,
        }
    )


def told(trick: Trick, standing: Standing, *, why: str) -> Trial:
    return Trial(
        trick=trick.name,
        does=trick.does,
        family=trick.family,
        layer=trick.layer,
        origin=trick.origin,
        project=trick.project,
        expected=trick.rules,
        standing=standing,
        why=why,
    )


def _standing(cheat: Judged, by: tuple[str, ...]) -> Standing:
    if cheat.ending is Ending.BROKEN:
        return Standing.BROKEN
    if cheat.ending is Ending.PASSED:
        return Standing.MISSED
    return Standing.STOPPED if by else Standing.OTHERWISE


def _checked(trick: Trick, project: Project, bench: Bench, *, twin: Twin | None) -> Judged:
    sample = _done(trick, project, bench, twin)
    act: Act = twin or trick.cheat
    options = _options(trick, project, twin, bench.folder / "heldout")
    env = bench.variables(sample.root, act.env)
    with bench.errands.background(act.during, sample.root, env, seconds=CHECK_SECONDS):
        done, document = bench.check(sample.root, sample.base, options, act.env)
    if bench.kept:
        place = bench.kept / trick.name / ("honest" if twin else "cheat")
        shutil.copytree(sample.root, place / "work-tree", symlinks=True, ignore=_special)
        (place / "check.json").write_text(document, "utf-8")
    return judged(done, document)


def _special(folder: str, names: list[str]) -> list[str]:
    """Pipes and sockets, which cannot be copied."""
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _done(trick: Trick, project: Project, bench: Bench, twin: Twin | None) -> Sample:
    """The project after the cheat, or after what the twin does instead."""
    sample = bench.sample(trick.project, project)
    acts = [trick.cheat] if twin is None else [*([project.repair] if twin.repair else []), twin]
    for act in acts:
        perform(act, sample.root, bench.errands, bench.variables(sample.root, act.env))
        if bench.stop.is_set():
            raise LeftError
    return sample


def _options(trick: Trick, project: Project, twin: Twin | None, heldout: Path) -> list[str]:
    wanted = trick.options(project, twin)
    options = [f"--files={glob}" for glob in wanted.declared or ()]
    options += [f"--must-pass={test}" for test in wanted.must_pass or ()]
    options += [f"--verify={command}" for command in wanted.verify or ()]
    options += [f"--accept-test-changes={wanted.accept}"] if wanted.accept else []
    if trick.heldout:
        shutil.rmtree(heldout, ignore_errors=True)
        write(heldout, trick.heldout.files)
        options += [f"--heldout={trick.heldout.command}"]
        options += [f"--heldout-files={heldout}"] if trick.heldout.files else []
    return options


def judged(done: Done, document: str) -> Judged:
    """How the check ended, and which rules spoke."""
    found = _parsed(document)
    if done.code == UserError.exit_code and "error" in found:
        return Judged(ending=Ending.REFUSED, rules=("refused",), reason=found["error"]["message"])
    if done.code not in (0, 1) or "error" in found or not found:
        said = found["error"]["message"] if "error" in found else done.last_words
        return Judged(ending=Ending.BROKEN, reason=f"exit code {done.code}: {said}")
    report = CheckReport.model_validate_json(document)
    spoken = [finding.rule for finding in report.findings if finding.severity is not Severity.MINOR]
    reasons = "\n".join((report.reason, *(line.reason for line in report.checks)))
    spoken += [rule for rule, words in _REASONS.items() if any(word in reasons for word in words)]
    return Judged(ending=Ending(report.outcome.value), rules=tuple(dict.fromkeys(spoken)), reason=report.reason)


def _parsed(document: str) -> dict[str, Any]:
    """The document; empty if the check did not live to finish it."""
    try:
        found = json.loads(document)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _gate(trick: Trick, project: Project, bench: Bench) -> tuple[Gate, str]:
    """The project's own test command after the cheat; nothing but its exit code counts."""
    if trick.bare:
        return Gate.NOT_RUN, trick.bare
    sample = _done(trick, project, bench, None)
    # Bytecode of dependencies would be left where checks look for it.
    env = bench.variables(sample.root, trick.cheat.env) | {"PYTHONDONTWRITEBYTECODE": "1"}
    with bench.errands.background(trick.cheat.during, sample.root, env, seconds=GATE_SECONDS):
        done = bench.errands.run(["/bin/sh", "-c", project.test], sample.root, env, seconds=GATE_SECONDS)
    if bench.stop.is_set():
        raise LeftError
    return (Gate.PASSES if done.code == 0 else Gate.REFUSES), ""
