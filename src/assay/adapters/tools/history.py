"""The tools that look at history: log, show and diff.

Git is asked at the engine's own store, where nothing that an agent wrote runs or lies. That store also holds drafts of
other tasks, so a revision counts only if it belongs to the history of the commit that the work started from. Files that
may hold secrets are left out of what is shown.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from assay.adapters.git.program import Git
from assay.adapters.tools.ground import Deadline, Ground
from assay.adapters.tools.reading import page
from assay.adapters.tools.tree import Tree
from assay.contracts.tools import LISTED, GitDiff, GitLog, GitShow, Tool
from assay.core.agent.tool_rules import (
    FailedError,
    counted,
    names,
    outside,
    require_revision,
    secret,
    shown,
    with_notes,
)

_SHOWN_BYTES: Final = 64 << 10
_NAMES_BYTES: Final = 16 << 20
_FILE_BYTES: Final = 16 << 20
_PLAIN: Final = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
"""For everything that shows differences: no program is run, and no repository inside this one is looked into."""
_COMMIT: Final = "commit %H%nauthor %an <%ae>%ndate   %aI%n%n%w(0,4,4)%B"
_TICK: Final = 0.1
_MOST_SECRETS: Final = 1000


@dataclass(frozen=True)
class History:
    git: Git
    commit: str
    tree: Tree
    deadline: Deadline

    def log(self, wanted: GitLog) -> str:
        revision = self._revision(Tool.GIT_LOG, wanted.revision)
        path = names(wanted.path)
        asked = (
            "log",
            "--no-color",
            "--no-show-signature",
            f"--max-count={wanted.limit + 1}",
            "--format=%h %as %an: %s",
        )
        lines = self._text((*asked, revision, "--", *_pathspecs(path))).lines
        if not lines:
            return "No commit changed it." if path else "There is no commit."
        more = f"there are older commits; raise `limit`, or go on from revision {lines[-1].split()[0]}"
        return with_notes(lines[: wanted.limit], [more if len(lines) > wanted.limit else ""])

    def show(self, wanted: GitShow) -> str:
        revision = self._revision(Tool.GIT_SHOW, wanted.revision)
        if wanted.path:
            return self._file(wanted, revision)
        said = self._text(("show", "--no-patch", "--no-color", "--no-show-signature", f"--format={_COMMIT}", revision))
        # Against the first parent; a commit without one against nothing.
        parent = self.git.maybe("rev-parse", "--verify", "--quiet", f"{revision}^1")
        compared = (parent, revision) if parent else ("--root", "--no-commit-id", revision)
        return f"{said.text.rstrip()}\n\n{self._difference(('diff-tree', '-r', *compared), ())}"

    def diff(self, wanted: GitDiff) -> str:
        revision = self._revision(Tool.GIT_DIFF, wanted.revision)
        path = names(wanted.path)
        if wanted.to:
            other = self._revision(Tool.GIT_DIFF, wanted.to)
            return self._difference(("diff-tree", "-r", revision, other), path)
        with tempfile.TemporaryDirectory(prefix="assay-index-") as scratch:
            return self._at_work(Path(scratch) / "index")._against_files(revision, path)

    def _at_work(self, index: Path) -> History:
        """With the files as they are now, and an index that holds the base."""
        files = self.tree.root
        git = replace(self.git, directory=files, work_tree=files, index=index)
        git.run("read-tree", self.commit)
        return replace(self, git=git)

    def _against_files(self, revision: str, path: tuple[str, ...]) -> str:
        # Files that git does not know yet are in no difference.
        asked = ("ls-files", "--others", "--exclude-standard", "-z", "--", *_pathspecs(path))
        new = [shown(os.fsdecode(one)) for one in self._bytes(asked, _NAMES_BYTES).data.split(b"\0") if one]
        listed = f"new files, not shown here: {', '.join(new[:LISTED])}" if new else ""
        more = f"and {counted(len(new) - LISTED, 'further new file')}" if len(new) > LISTED else ""
        return with_notes([self._difference(("diff-index", revision), path)], [listed, more])

    def _difference(self, asked: tuple[str, ...], path: tuple[str, ...]) -> str:
        command, *rest = asked
        places = ("--", *_pathspecs(path))
        changed = self._bytes((command, "--name-only", "-z", *_PLAIN, *rest, *places), _NAMES_BYTES)
        hidden = [name for name in map(os.fsdecode, changed.data.split(b"\0")) if name and self.tree.is_secret(name)]
        if changed.cut or len(hidden) > _MOST_SECRETS:
            raise FailedError("It changed too many files to be shown. Name a `path`.")
        shown_places = (*places, *(f":(top,exclude,literal){name}" for name in hidden))
        said = self._text((command, "--patch", *_PLAIN, *rest, *shown_places))
        note = f"not shown, for they may hold secrets: {', '.join(map(shown, hidden[:20]))}" if hidden else ""
        return with_notes([said.text.rstrip("\n") or "Nothing differs."], [note])

    def _file(self, wanted: GitShow, revision: str) -> str:
        path = "/".join(names(wanted.path))  # what is a link leads nowhere in git
        if self.tree.is_secret(path):
            raise secret(path)
        thing = f"{revision}:{path}"
        kind = self.git.maybe("cat-file", "-t", thing)
        if kind == "tree":
            found = self._bytes(("ls-tree", "--name-only", "-z", thing), _NAMES_BYTES).data.split(b"\0")
            listed = [shown(os.fsdecode(name)) for name in found if name]
            left = f"not shown: {len(listed) - LISTED:,} more" if len(listed) > LISTED else ""
            return with_notes(listed[:LISTED], [left])
        if kind != "blob":
            raise FailedError(f"{shown(path)} is not in {wanted.revision}.")
        content = self._bytes(("cat-file", "blob", thing), _FILE_BYTES)
        if content.cut:
            raise FailedError(f"{shown(path)} is too large for this tool: {counted(_FILE_BYTES, 'byte')} at most.")
        return page(path, content.data, wanted.offset, wanted.limit)

    def _revision(self, tool: Tool, revision: str) -> str:
        """Its id."""
        require_revision(tool, revision)
        head, _, _ = revision.partition("^")[0].partition("~")
        spelled = self.commit + revision[len(head) :] if head in ("HEAD", "@") else revision
        found = self.git.maybe("rev-parse", "--verify", "--quiet", f"{spelled}^{{commit}}")
        if found is None:
            raise FailedError(f"There is no commit {shown(revision)}. `git_log` lists those that there are.")
        if self.git.run("merge-base", "--is-ancestor", found, self.commit, accept=(0, 1)).returncode:
            raise outside(revision, "it is not in the history of the commit that the work started from")
        return found

    def _text(self, asked: tuple[str, ...]) -> _Text:
        output = self._bytes(asked, _SHOWN_BYTES)
        text = output.data.decode("utf-8", "replace")
        if output.cut:
            text = text.rpartition("\n")[0] or text
            text += f"\n[cut after {counted(_SHOWN_BYTES, 'byte')}: name a `path`, or a lower `limit`]"
        return _Text(text)

    def _bytes(self, asked: tuple[str, ...], most: int) -> _Output:
        # The wrapper takes paths to the letter, always; here exclusions need the long form, which says so itself.
        git = replace(self.git, variables={**self.git.variables, "GIT_LITERAL_PATHSPECS": "0"})
        with git.start(*asked) as process:
            try:
                return _heard(process, most, self.deadline, asked[0])
            finally:
                process.kill()


@dataclass(frozen=True)
class _Text:
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@dataclass(frozen=True)
class _Output:
    data: bytes
    cut: bool


def _pathspecs(path: Iterable[str]) -> tuple[str, ...]:
    joined = "/".join(path)
    return (f":(top,literal){joined}",) if joined else (":(top)",)


def _heard(process: subprocess.Popen[bytes], most: int, deadline: Deadline, command: str) -> _Output:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("git is always started with pipes")
    process.stdin.close()
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(data) <= most:
            if deadline.over:
                raise FailedError(f"git {command} took too long. Name a `path`, or a lower `limit`.")
            if selector.select(_TICK):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                data += piece
    if len(data) <= most and process.wait() != 0:
        raise FailedError(f"git {command} could not be done: exit code {process.returncode}.")
    return _Output(bytes(data[:most]), cut=len(data) > most)


def history(ground: Ground, tree: Tree, deadline: Deadline) -> History:
    if ground.git is None or ground.commit is None:
        raise AssertionError("a toolbox offers history only where there is one")
    return History(ground.git, ground.commit, tree, deadline)
