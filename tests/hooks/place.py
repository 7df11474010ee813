"""A repository with Proofstone's hooks in it, and evidence for whatever tree a test is about.

The hooks are run by git and start the `proofstone` that is installed beside the interpreter of the suite, as a
person's are;
or one that is forked, which has the same to say and starts much faster.
Most evidence is written to the ledger as `proofstone check` writes it; `checked` has it made by a check.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow
from proofstone.ledger.sqlite import SqliteLedger
from tests import forked
from tests.workshop import Workshop

_NUMBERS = count(1)


@dataclass(frozen=True)
class Place:
    workshop: Workshop
    root: Path

    @classmethod
    def made(cls, workshop: Workshop, files: Mapping[str, str | bytes] | None = None) -> Place:
        """Documentation alone: a check of it has nothing to run, and passes."""
        return cls(workshop, workshop.repo(files or {"a.md": "one\n", "b.md": "two\n"}))

    def at(self, root: Path) -> Place:
        return Place(self.workshop, root)

    @cached_property
    def folder(self) -> Path:
        return self.root / ".git" / "hooks"

    def install(self, *options: str) -> None:
        done = self.proofstone("hook", "install", *options)
        assert done.returncode == 0, done.stderr

    def install_forked(self) -> None:
        """Hooks that have `proofstone` forked."""
        program = forked.program()
        done = forked.run(("hook", "install"), self.root, self.workshop.environment, called=program)
        assert done.returncode == 0, done.stderr
        assert f"proofstone={program}\n" in (self.folder / "pre-commit").read_text()

    def proofstone(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.workshop.proofstone(self.root, *args)

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / f"{name}.md").write_text(text)

    def git(self, *args: str) -> str:
        return self.workshop.git(self.root, *args)

    def tried(self, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """git, whatever comes of it."""
        return subprocess.run(
            ["git", *args],
            cwd=self.root,
            env={**self.workshop.environment, "GIT_EDITOR": "true", **variables},
            capture_output=True,
            text=True,
        )

    def refused(self, *args: str) -> str:
        """What is said when git does not commit."""
        before = self.head
        done = self.tried(*args)
        assert done.returncode != 0, f"git {' '.join(args)} went through: {done.stderr}"
        assert self.head == before
        assert "the commit is refused" in done.stderr
        return done.stderr

    def goes_through(self, *args: str) -> str:
        before = self.head
        done = self.tried(*args)
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        assert self.head != before, f"git {' '.join(args)} made no commit: {done.stdout}"
        return done.stderr

    @property
    def head(self) -> str:
        return self.tried("rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()

    def staged(self) -> str:
        """The tree of what is staged."""
        return self.git("write-tree")

    def commit(self, message: str = "Work") -> str:
        """Without asking anybody."""
        return self.workshop.commit(self.root, message)

    def branch(self, name: str, at: str = "HEAD") -> None:
        self.git("checkout", "--quiet", "-b", name, at)

    def prove(
        self,
        tree: str,
        base: str = "HEAD",
        outcome: str | None = "passed",
        *,
        reason: str = "",
        repository: Path | None = None,
        sandbox: str = "bubblewrap",
        loosened: Mapping[str, Mapping[str, str]] | None = None,
    ) -> str:
        """The rows that a check of this tree leaves, with those of what was loosened for it; the run's id."""
        run_id = f"20260101T000000Z-{next(_NUMBERS):06x}"
        payload = {
            "command": "check",
            "repository": str(repository or self.root),
            "tree": tree,
            "frozen": tree,
            "base": self.git("rev-parse", f"{base}^{{tree}}"),
            "base_commit": self.git("rev-parse", base),
            "sandbox": sandbox,
        }
        path = ledger_path(self.workshop.proofstone_home)
        with SqliteLedger(path) as ledger:
            ledger.append(EventRow(run_id=run_id, type="run.started", payload=payload))
            for type, said in (loosened or {}).items():
                ledger.append(EventRow(run_id=run_id, type=type, payload=dict(said)))
            if outcome is not None:
                ended = {"outcome": outcome, "reason": reason}
                ledger.append(EventRow(run_id=run_id, type="run.finished", payload=ended))
        return run_id
