"""The tools that look at history: log, show and diff.

Git is asked at the engine's own store, where nothing that an agent wrote runs or lies; how files are compared with it
is said in `compared.py`. That store also holds drafts of other tasks, so a revision counts only if it belongs to the
history of the commit that the work started from. Files that may hold secrets are left out of what is shown.

A commit as `git_show` shows it, taken apart: what it says, what it changes, and what was not shown.

Lines of a difference bear a sign, those of a message are indented, and a line that begins with a square bracket is a
note of the tool's: none can be taken for another, whatever a commit holds. A text is changed by a commit when it
stands in a line that was added or taken away; the lines around those were there before and are there still.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Final

from proofstone.agents.rules.tool_rules import FailedError, names, outside, require_revision, secret, shown, with_notes
from proofstone.agents.tools.compared import Compared, scratch_git
from proofstone.agents.tools.definitions import Quoted, quoted
from proofstone.agents.tools.files import page
from proofstone.agents.tools.models import LISTED, GitDiff, GitLog, GitShow, Tool
from proofstone.agents.tools.tool_context import Deadline, Ground
from proofstone.agents.tools.tree import Tree
from proofstone.common.text import counted
from proofstone.errors import RepositoryError
from proofstone.git.objects import Held
from proofstone.git.program import Git

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
        said = self._text((*asked, revision, "--", *(_pathspecs(path) if path else ()))).removesuffix("\n")
        if not said:
            return "No commit changed it." if path else "There is no commit."
        lines = said.split("\n")  # and at nothing else that a subject may hold
        if len(lines) <= wanted.limit:
            return said
        older = lines[wanted.limit].partition(" ")[0]
        more = f"there are older commits; raise `limit`, or go on from revision {older}"
        return with_notes(lines[: wanted.limit], [more])

    def show(self, wanted: GitShow) -> str:
        revision = self._revision(Tool.GIT_SHOW, wanted.revision)
        if wanted.path:
            return self._file(wanted, revision)
        said = self._text(("show", "--no-patch", "--no-color", "--no-show-signature", f"--format={_COMMIT}", revision))
        # Against the first parent; a commit without one against nothing.
        parent = self.git.maybe("rev-parse", "--verify", "--quiet", f"{revision}^1")
        compared = (parent, revision) if parent else ("--root", "--no-commit-id", revision)
        return f"{said.rstrip()}\n\n{self._difference(('diff-tree', '-r', *compared), ())}"

    def diff(self, wanted: GitDiff) -> str:
        revision = self._revision(Tool.GIT_DIFF, wanted.revision)
        path = names(wanted.path)
        if wanted.to:
            other = self._revision(Tool.GIT_DIFF, wanted.to)
            return self._difference(("diff-tree", "-r", revision, other), path)
        with tempfile.TemporaryDirectory(prefix="proofstone-diff-") as folder:
            scratch = Path(folder)
            aside = replace(self, git=scratch_git(self.git, scratch))
            return aside._against_files(scratch, revision, path)

    def _against_files(self, scratch: Path, revision: str, path: tuple[str, ...]) -> str:
        # What came about after the revision is compared with nothing.
        since = {item.path: Held("", "", item.path) for item in self._held(self.commit, path)}
        base = since | {item.path: item for item in self._held(revision, path)}
        compared = Compared(self.git, self.tree, self.deadline)
        compared.look(base.values())
        self.git.run("read-tree", self.commit)
        new = [shown(os.fsdecode(file)) for file in self._new_files(path) if file not in base]
        compared.take_back_conversions(base)
        self.git.run("read-tree", revision)
        compared.put_into_index(scratch, base)
        difference = self._difference(("diff-index", "--cached", revision), path)
        listed = f"new files, not shown here: {', '.join(new[:LISTED])}" if new else ""
        more = f"and {counted(len(new) - LISTED, 'further new file')}" if len(new) > LISTED else ""
        return with_notes([difference], [*compared.notes(), listed, more])

    def _held(self, revision: str, path: tuple[str, ...]) -> list[Held]:
        listed = self._bytes(("ls-tree", "-r", "-z", revision, "--", *_pathspecs(path)), _NAMES_BYTES)
        if listed.cut:
            raise FailedError("There are too many files to be compared. Name a `path`.")
        records = (record.partition(b"\t") for record in listed.data.split(b"\0") if record)
        return [Held(meta[:6].decode("ascii"), meta.split()[2].decode("ascii"), name) for meta, _, name in records]

    def _new_files(self, path: tuple[str, ...]) -> list[bytes]:
        """What git does not know yet. It is asked for names, and so reads no file but those that ignore some."""
        files = self.tree.root
        looking = replace(self, git=replace(self.git, directory=files, work_tree=files))
        asked = ("ls-files", "--others", "--exclude-standard", "-z", "--", *_pathspecs(path))
        return [name for name in looking._bytes(asked, _NAMES_BYTES).data.split(b"\0") if name]

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
        return with_notes([said.rstrip("\n") or "Nothing differs."], [note])

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

    def _text(self, asked: tuple[str, ...]) -> str:
        output = self._bytes(asked, _SHOWN_BYTES)
        text = output.data.decode("utf-8", "replace")
        if output.cut:
            text = text.rpartition("\n")[0] or text
            text += f"\n[cut after {counted(_SHOWN_BYTES, 'byte')}: name a `path`, or a lower `limit`]"
        return text

    def _bytes(self, asked: tuple[str, ...], most: int) -> _Output:
        # The wrapper takes paths to the letter, always; here exclusions need the long form, which says so itself.
        git = replace(self.git, variables={**self.git.variables, "GIT_LITERAL_PATHSPECS": "0"})
        with git.start(*asked) as process:
            try:
                return _heard(process, most, self.deadline, asked[0])
            finally:
                process.kill()


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


def ask(ground: Ground, deadline: Deadline, question: Callable[[History], str]) -> str:
    """The answer. That git cannot give one is a result like any other."""
    if ground.git is None or ground.commit is None:
        raise AssertionError("a toolbox offers history only where there is one")
    try:
        return question(History(ground.git, ground.commit, Tree(ground), deadline))
    except RepositoryError as error:
        raise FailedError(f"{error.message}.") from error


_HEAD: Final = 4
"""Lines before the message: id, author, date, and an empty one."""
_INDENT: Final = "    "
_EMPTY: Final = "Nothing differs."
_BREAK: Final = "\0"
"""Between lines that do not follow each other: a text that goes across is none."""


@dataclass(frozen=True)
class CommitText:
    message: str
    change: tuple[str, ...]
    """The lines of the difference to its first parent."""
    left_out: tuple[str, ...]
    """What was not shown, and why."""

    def says(self, text: str) -> Quoted:
        return quoted(text, self.message)

    def changes(self, text: str) -> Quoted:
        """As it was before, as it is now, or as it is shown, with the signs."""
        readings = (_without("-"), _without("+"), _as_shown)
        return next((found for reading in readings if (found := self._read(text, reading))), Quoted.NOT)

    def _read(self, text: str, reading: Callable[[str], str | None]) -> Quoted:
        lines = [(line, reading(line)) for line in self.change]
        whole = _joined(read for _, read in lines)
        around = _joined(read if line.startswith(" ") or read is None else _BREAK for line, read in lines)
        return quoted(text, whole, beside=around)


def commit_text(history: History, revision: str) -> CommitText:
    lines = history.show(GitShow(revision=revision)).split("\n")
    message = list(takewhile(lambda line: not line.strip() or line.startswith(_INDENT), lines[_HEAD:]))
    rest = lines[_HEAD + len(message) :]
    return CommitText(
        message="\n".join(line.removeprefix(_INDENT) for line in message).strip(),
        change=tuple(line for line in rest if line != _EMPTY and not line.startswith("[")),
        left_out=tuple(line.strip("[]") for line in rest if line.startswith("[")),
    )


def _joined(lines: Iterable[str | None]) -> str:
    return "\n".join(line for line in lines if line is not None)


def _without(sign: str) -> Callable[[str], str | None]:
    """The file of one side: lines of the other are not there, and what is no line of a file parts those around it."""

    def read(line: str) -> str | None:
        if line.startswith((sign, "\\")):
            return None
        return line[1:] if line.startswith((" ", "+", "-")) or not line else _BREAK

    return read


def _as_shown(line: str) -> str:
    """But not where a part begins: behind that stands a line from further up, which git takes for a heading."""
    return _BREAK if line.startswith("@@") else line
