"""A workshop: throwaway repositories, a state directory and a HOME of their own, and `proofstone check` run on them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from proofstone.check.models import CheckLine, CheckReport
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from tests import forked
from tests.person import programs

OWN_PROGRAMS = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
"""PATH with everything that this suite itself is installed with: pytest, ruff and mypy."""
START = "import sys; from proofstone.cli.main import main; sys.exit(main())"
_KEPT = ("LANG", "TMPDIR", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY")
GITCONFIG = """
[user]
	name = Tester
	email = tester@example.org
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
"""


def command(*args: str, start: str = START) -> list[str]:
    """`proofstone` with these arguments, and with warnings as errors."""
    return [sys.executable, "-W", "error", "-c", start, *args]


def proofstone(
    *args: str, home: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, start: str = START
) -> subprocess.CompletedProcess[str]:
    """Run a command that needs no repository: only the state directory is one of its own."""
    environment = {**os.environ, "PROOFSTONE_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "200", **(env or {})}
    if start == START and not forked.needs_a_start(env or {}):
        return forked.run(args, cwd or home.parent, environment)
    words = command(*args, start=start)
    return subprocess.run(words, cwd=cwd or home.parent, env=environment, capture_output=True, text=True)


@dataclass(frozen=True)
class CheckRun:
    """What one `proofstone check --json` gave."""

    exit: int
    stdout: str
    stderr: str
    artifacts: ArtifactStore

    @cached_property
    def json(self) -> dict[str, Any]:
        assert self.stdout, f"exit {self.exit}, no document:\n{self.stderr}"
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @cached_property
    def report(self) -> CheckReport:
        return CheckReport.model_validate_json(json.dumps(self.json))

    def check(self, start: str) -> CheckLine:
        """The check whose name begins so."""
        found = [line for line in self.report.checks if line.name.startswith(start)]
        assert found, f"{start} is not among {[line.name for line in self.report.checks]}\n{self.stderr}"
        return found[0]

    def output(self, start: str) -> str:
        """The whole output of that check, on the change."""
        line = self.check(start)
        assert line.artifact, f"{line.name} was not run: {line.reason}"
        return self.artifacts.read(line.artifact).decode("utf-8", "replace")


@dataclass(frozen=True)
class Workshop:
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further variables of every program that is started here."""
    state: Path = Path("state")
    """PROOFSTONE_HOME, relative to the folder."""

    @classmethod
    def apart(cls, folder: Path) -> Workshop:
        """One with slots of its own: it does not wait for checks of other tests."""
        (folder / "tmp").mkdir()
        return cls(folder, {"TMPDIR": str(folder / "tmp")})

    @cached_property
    def home(self) -> Path:
        """HOME of everything that runs here."""
        home = self.folder / "home"
        if not home.is_dir():
            home.mkdir(parents=True)
            (home / ".gitconfig").write_text(GITCONFIG)
        return home

    def trust_everything(self) -> None:
        """The person trusts whatever the settings of their repositories here ask for."""
        own = self.home / ".config/proofstone/proofstone.toml"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(f'[trust]\nfolders = ["{self.folder.resolve()}"]\n')

    @cached_property
    def proofstone_home(self) -> Path:
        return self.folder / self.state

    @cached_property
    def environment(self) -> dict[str, str]:
        """A person's environment: their programs, and nothing of whoever runs the tests."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = os.pathsep.join((str(programs()), str(Path(sys.executable).parent), os.environ["PATH"]))
        own = {"PATH": path, "HOME": str(self.home), "PROOFSTONE_HOME": str(self.proofstone_home), "NO_COLOR": "1"}
        return {**kept, **own, **self.variables}

    def repo(self, files: Mapping[str, str | bytes], name: str = "project") -> Path:
        """A repository with these files, committed."""
        root = self.folder / name
        root.mkdir(parents=True)
        self.git(root, "init", "--quiet")
        self.write(root, files)
        self.commit(root)
        return root

    @staticmethod
    def write(root: Path, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, root: Path, message: str = "Work") -> str:
        self.git(root, "add", "--all")
        self.git(root, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", message)
        return self.git(root, "rev-parse", "HEAD")

    def configure(self, root: Path, settings: str) -> None:
        """`proofstone.toml` with these settings, committed alone: only the base's settings count."""
        self.write(root, {"proofstone.toml": settings})
        self.git(root, "add", "proofstone.toml")
        self.git(root, "commit", "--quiet", "--message", "Settings", "--only", "proofstone.toml")

    def git(self, root: Path, *args: str, env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=root, env={**self.environment, **(env or {})}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout.removesuffix("\n")

    def run(self, root: Path, *args: str) -> subprocess.CompletedProcess[str]:
        """Any program, as the person would run it."""
        return subprocess.run(list(args), cwd=root, env=self.environment, capture_output=True, text=True)

    def check(self, root: Path, *args: str, env: Mapping[str, str] | None = None, wrap: Sequence[str] = ()) -> CheckRun:
        """`proofstone check --json` in a process of its own."""
        done = self.proofstone(root, "check", "--json", *args, env=env, wrap=wrap)
        store = ArtifactStore(artifacts_path(self.proofstone_home))
        return CheckRun(done.returncode, done.stdout, done.stderr, store)

    def proofstone(
        self, root: Path, *args: str, env: Mapping[str, str] | None = None, wrap: Sequence[str] = (), told: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Any command of `proofstone`, told this on its input; `wrap` is a program that starts it, such as strace or
        env."""
        given = {**self.environment, **(env or {})}
        if not wrap and not forked.needs_a_start({**self.variables, **(env or {})}):
            return forked.run(args, root, given, told)
        words = [*wrap, *command(*args)]
        return subprocess.run(words, cwd=root, env=given, input=told, capture_output=True, text=True)

    def start(self, root: Path, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """The same, not waited for: it leads a process group of its own, as in a terminal."""
        return subprocess.Popen(
            command(*args),
            cwd=root,
            env={**self.environment, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def tree(self, tree: str) -> dict[str, str]:
        """Every path of a frozen tree, with its object."""
        return {path: thing for path, (_, thing) in self._listed(tree).items()}

    def modes(self, tree: str) -> dict[str, str]:
        return {path: mode for path, (mode, _) in self._listed(tree).items()}

    def _listed(self, tree: str) -> dict[str, tuple[str, str]]:
        output = self.git(self.private_git, "ls-tree", "-r", "-z", tree)
        found = {}
        for record in output.removesuffix("\0").split("\0"):
            meta, _, path = record.partition("\t")
            mode, _, thing = meta.split()
            found[path] = (mode, thing)
        return found

    def blob(self, thing: str) -> bytes:
        """The bytes of an object of a frozen tree."""
        asked = ["git", "cat-file", "blob", thing]
        return subprocess.run(asked, cwd=self.private_git, env=self.environment, capture_output=True, check=True).stdout

    @property
    def private_git(self) -> Path:
        """Proofstone's own git directory, of the only repository checked so far."""
        (only,) = (self.proofstone_home / "repos").glob("*/git")
        return only

    @property
    def runs(self) -> list[str]:
        """Every run that was begun here, the newest last."""
        path = ledger_path(self.proofstone_home)
        if not path.exists():
            return []
        with SqliteLedger(path, "read") as ledger:
            return [stored.row.run_id for stored in ledger.read(EventRow, type="run.started")]

    @property
    def leftovers(self) -> list[str]:
        """Folders of runs that are over."""
        scratch = self.proofstone_home / "scratch"
        return [path.name for path in scratch.iterdir() if path.is_dir()] if scratch.is_dir() else []


@contextmanager
def workshop_outside_tmp(parent: Path, name: str) -> Iterator[Workshop]:
    """A workshop that does not lie below /tmp, which every sandbox replaces: as real repositories do not."""
    folder = parent / f"{name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield Workshop(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# What a check must look like.


def assert_refused(run: CheckRun, *words: str) -> None:
    """Exit 2, a sentence and a hint on stderr, the same as a document, and nothing that looks like a crash."""
    assert run.exit == 2, f"exit {run.exit}: {run.stderr}"
    assert "Traceback" not in run.stderr
    error = run.json["error"]
    assert error["exit_code"] == 2
    for word in words:
        assert word in run.stderr, run.stderr
        assert word in error["message"] or word in (error["hint"] or ""), error


def assert_passed(run: CheckRun) -> None:
    assert run.exit == 0, f"{run.stderr}\n{run.stdout}"
    assert run.report.outcome == "passed"


def assert_failed(run: CheckRun, *rules: str) -> None:
    assert run.exit == 1, f"{run.stderr}\n{run.stdout}"
    assert run.report.outcome == "failed"
    found = {finding.rule for finding in run.report.findings}
    assert set(rules) <= found, found
