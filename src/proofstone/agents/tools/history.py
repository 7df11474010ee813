"""The tools that show history: `git_log`, `git_show` and `git_diff`.

Git runs in the engine's own store, where nothing that an agent wrote is run or stored; `comparison.py` compares files
with it. That store also holds drafts of other tasks, so a revision is accepted only if it belongs to the history of the
commit that the work started from. Files that may hold secrets are not shown.

`CommitText` splits the output of `git_show` into the message, the change and the notes. Lines of a difference have a
sign, those of a message are indented, and a line that begins with a square bracket is a note of the tool: none can be
taken for another, whatever a commit contains. A commit changes a text if the text is in an added or removed line; the
context lines were there before and still are.
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

from proofstone.agents.rules.tool_rules import (
    ToolFailedError,
    append_notes,
    format_path,
    outside_project_error,
    require_revision,
    secret_file_error,
    split_path,
)
from proofstone.agents.tools.comparison import FileComparison, build_scratch_git
from proofstone.agents.tools.definitions import QuoteMatch, match_quote
from proofstone.agents.tools.files import render_page
from proofstone.agents.tools.models import MAX_LISTED, GitDiffArguments, GitLogArguments, GitShowArguments, Tool
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.common.text import pluralize
from proofstone.errors import RepositoryError
from proofstone.git.objects import GitEntry
from proofstone.git.program import Git

_MAX_SHOWN_BYTES: Final = 64 << 10
_MAX_NAMES_BYTES: Final = 16 << 20
_MAX_FILE_BYTES: Final = 16 << 20
_DIFF_OPTIONS: Final = ("--text", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
"""Options for everything that shows differences: every file is text, whatever attributes say, no program is run, and
no submodule is entered."""
_COMMIT_FORMAT: Final = "commit %H%nauthor %an <%ae>%ndate   %aI%n%n%w(0,4,4)%B"
_TICK: Final = 0.1
_MAX_SECRETS: Final = 1000


@dataclass(frozen=True)
class History:
    """The history of a commit, as the tools show it."""

    git: Git
    commit: str
    tree: FileTree
    deadline: ToolDeadline

    def log(self, wanted: GitLogArguments) -> str:
        revision = self._resolve_revision(Tool.GIT_LOG, wanted.revision)
        path = split_path(wanted.path)
        arguments = (
            "log",
            "--no-color",
            "--no-show-signature",
            f"--max-count={wanted.limit + 1}",
            "--format=%h %as %an: %s",
        )
        output = self._read_text((*arguments, revision, "--", *(_build_pathspecs(path) if path else ()))).removesuffix(
            "\n"
        )
        if not output:
            return "No commit changed it." if path else "There is no commit."
        lines = output.split("\n")  # not `splitlines`: a subject may contain other line separators
        if len(lines) <= wanted.limit:
            return output
        older = lines[wanted.limit].partition(" ")[0]
        note = f"there are older commits; raise `limit`, or continue from revision {older}"
        return append_notes(lines[: wanted.limit], [note])

    def show(self, wanted: GitShowArguments) -> str:
        revision = self._resolve_revision(Tool.GIT_SHOW, wanted.revision)
        if wanted.path:
            return self._show_file(wanted, revision)
        header = self._read_text(
            ("show", "--no-patch", "--no-color", "--no-show-signature", f"--format={_COMMIT_FORMAT}", revision)
        )
        # Compare with the first parent; compare a root commit with the empty tree.
        parent = self.git.try_line("rev-parse", "--verify", "--quiet", f"{revision}^1")
        revisions = (parent, revision) if parent else ("--root", "--no-commit-id", revision)
        return f"{header.rstrip()}\n\n{self._render_difference(('diff-tree', '-r', *revisions), ())}"

    def diff(self, wanted: GitDiffArguments) -> str:
        revision = self._resolve_revision(Tool.GIT_DIFF, wanted.revision)
        path = split_path(wanted.path)
        if wanted.to:
            other = self._resolve_revision(Tool.GIT_DIFF, wanted.to)
            return self._render_difference(("diff-tree", "-r", revision, other), path)
        with tempfile.TemporaryDirectory(prefix="proofstone-diff-") as folder:
            scratch = Path(folder)
            scratch_history = replace(self, git=build_scratch_git(self.git, scratch))
            return scratch_history._compare_with_files(scratch, revision, path)

    def _compare_with_files(self, scratch: Path, revision: str, path: tuple[str, ...]) -> str:
        # Files that were added after the revision are compared with nothing.
        later = {held.path: GitEntry("", "", held.path) for held in self._list_tree(self.commit, path)}
        base = later | {held.path: held for held in self._list_tree(revision, path)}
        comparison = FileComparison(self.git, self.tree, self.deadline)
        comparison.compare(base.values())
        self.git.run("read-tree", self.commit)
        new = [format_path(os.fsdecode(file)) for file in self._list_new_files(path) if file not in base]
        comparison.undo_conversions(base)
        self.git.run("read-tree", revision)
        comparison.update_index(scratch, base)
        difference = self._render_difference(("diff-index", "--cached", revision), path)
        new_note = f"new files, not shown here: {', '.join(new[:MAX_LISTED])}" if new else ""
        more_note = f"and {pluralize(len(new) - MAX_LISTED, 'further new file')}" if len(new) > MAX_LISTED else ""
        return append_notes([difference], [*comparison.notes(), new_note, more_note])

    def _list_tree(self, revision: str, path: tuple[str, ...]) -> list[GitEntry]:
        listing = self._read_bytes(("ls-tree", "-r", "-z", revision, "--", *_build_pathspecs(path)), _MAX_NAMES_BYTES)
        if listing.cut:
            raise ToolFailedError("There are too many files to compare. Name a `path`.")
        records = (record.partition(b"\t") for record in listing.data.split(b"\0") if record)
        return [GitEntry(meta[:6].decode("ascii"), meta.split()[2].decode("ascii"), name) for meta, _, name in records]

    def _list_new_files(self, path: tuple[str, ...]) -> list[bytes]:
        """Return the files that git does not know yet. Git lists names only, and so reads no files but `.gitignore`."""
        files = self.tree.root
        in_tree = replace(self, git=replace(self.git, directory=files, work_tree=files))
        arguments = ("ls-files", "--others", "--exclude-standard", "-z", "--", *_build_pathspecs(path))
        return [name for name in in_tree._read_bytes(arguments, _MAX_NAMES_BYTES).data.split(b"\0") if name]

    def _render_difference(self, arguments: tuple[str, ...], path: tuple[str, ...]) -> str:
        command, *rest = arguments
        pathspecs = ("--", *_build_pathspecs(path))
        changed = self._read_bytes((command, "--name-only", "-z", *_DIFF_OPTIONS, *rest, *pathspecs), _MAX_NAMES_BYTES)
        hidden = [name for name in map(os.fsdecode, changed.data.split(b"\0")) if name and self.tree.is_secret(name)]
        if changed.cut or len(hidden) > _MAX_SECRETS:
            raise ToolFailedError("Too many files changed to show them. Name a `path`.")
        shown_pathspecs = (*pathspecs, *(f":(top,exclude,literal){name}" for name in hidden))
        patch = self._read_text((command, "--patch", *_DIFF_OPTIONS, *rest, *shown_pathspecs))
        note = f"not shown because they may hold secrets: {', '.join(map(format_path, hidden[:20]))}" if hidden else ""
        return append_notes([patch.rstrip("\n") or "Nothing differs."], [note])

    def _show_file(self, wanted: GitShowArguments, revision: str) -> str:
        path = "/".join(split_path(wanted.path))  # git does not follow links
        if self.tree.is_secret(path):
            raise secret_file_error(path)
        object_name = f"{revision}:{path}"
        kind = self.git.try_line("cat-file", "-t", object_name)
        if kind == "tree":
            entries = self._read_bytes(("ls-tree", "--name-only", "-z", object_name), _MAX_NAMES_BYTES).data.split(
                b"\0"
            )
            entry_names = [format_path(os.fsdecode(name)) for name in entries if name]
            hidden_note = f"not shown: {len(entry_names) - MAX_LISTED:,} more" if len(entry_names) > MAX_LISTED else ""
            return append_notes(entry_names[:MAX_LISTED], [hidden_note])
        if kind != "blob":
            raise ToolFailedError(f"{format_path(path)} is not in {wanted.revision}.")
        content = self._read_bytes(("cat-file", "blob", object_name), _MAX_FILE_BYTES)
        if content.cut:
            raise ToolFailedError(
                f"{format_path(path)} is too large for this tool: {pluralize(_MAX_FILE_BYTES, 'byte')} at most."
            )
        return render_page(path, content.data, wanted.offset, wanted.limit)

    def _resolve_revision(self, tool: Tool, revision: str) -> str:
        """Return the id of a revision."""
        require_revision(tool, revision)
        head, _, _ = revision.partition("^")[0].partition("~")
        expression = self.commit + revision[len(head) :] if head in ("HEAD", "@") else revision
        commit_id = self.git.try_line("rev-parse", "--verify", "--quiet", f"{expression}^{{commit}}")
        if commit_id is None:
            raise ToolFailedError(f"There is no commit {format_path(revision)}. Use `git_log` to list the commits.")
        if self.git.run("merge-base", "--is-ancestor", commit_id, self.commit, accept=(0, 1)).returncode:
            raise outside_project_error(revision, "it is not in the history of the commit that the work started from")
        return commit_id

    def _read_text(self, arguments: tuple[str, ...]) -> str:
        output = self._read_bytes(arguments, _MAX_SHOWN_BYTES)
        text = output.data.decode("utf-8", "replace")
        if output.cut:
            text = text.rpartition("\n")[0] or text
            text += f"\n[cut after {pluralize(_MAX_SHOWN_BYTES, 'byte')}: name a `path`, or a lower `limit`]"
        return text

    def _read_bytes(self, arguments: tuple[str, ...], limit: int) -> _Output:
        # The Git wrapper takes all paths literally. Exclusions need the long form, which marks literal paths itself.
        git = replace(self.git, variables={**self.git.variables, "GIT_LITERAL_PATHSPECS": "0"})
        with git.start(*arguments) as process:
            try:
                return _read_output(process, limit, self.deadline, arguments[0])
            finally:
                process.kill()


@dataclass(frozen=True)
class _Output:
    data: bytes
    cut: bool


def _build_pathspecs(path: Iterable[str]) -> tuple[str, ...]:
    joined = "/".join(path)
    return (f":(top,literal){joined}",) if joined else (":(top)",)


def _read_output(process: subprocess.Popen[bytes], limit: int, deadline: ToolDeadline, command: str) -> _Output:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("git is always started with pipes")
    process.stdin.close()
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(data) <= limit:
            if deadline.is_over:
                raise ToolFailedError(f"git {command} took too long. Name a `path`, or a lower `limit`.")
            if selector.select(_TICK):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                data += piece
    if len(data) <= limit and process.wait() != 0:
        raise ToolFailedError(f"git {command} failed with exit code {process.returncode}.")
    return _Output(bytes(data[:limit]), cut=len(data) > limit)


def query_history(ground: ToolContext, deadline: ToolDeadline, question: Callable[[History], str]) -> str:
    """Answer a question about the history. An error of git becomes a failed result."""
    if ground.git is None or ground.commit is None:
        raise AssertionError("a toolbox offers history only where there is one")
    try:
        return question(History(ground.git, ground.commit, FileTree(ground), deadline))
    except RepositoryError as error:
        raise ToolFailedError(f"{error.message}.") from error


_HEADER_LINES: Final = 4
"""Lines before the message: id, author, date, and an empty line."""
_INDENT: Final = "    "
_EMPTY: Final = "Nothing differs."
_BREAK: Final = "\0"
"""Separates lines that do not follow each other: a text across a break does not count."""


@dataclass(frozen=True)
class CommitText:
    """The output of `git_show` for a commit, split into its parts."""

    message: str
    change: tuple[str, ...]
    """The lines of the difference to the first parent."""
    left_out: tuple[str, ...]
    """What was not shown, and why."""

    def find_in_message(self, text: str) -> QuoteMatch:
        return match_quote(text, self.message)

    def find_in_change(self, text: str) -> QuoteMatch:
        """Return whether the change contains the text: as it was before, as it is now, or as shown, with the signs."""
        readings = (_build_side_reading("-"), _build_side_reading("+"), _read_as_shown)
        return next((match for reading in readings if (match := self._match_reading(text, reading))), QuoteMatch.NOT)

    def _match_reading(self, text: str, reading: Callable[[str], str | None]) -> QuoteMatch:
        lines = [(line, reading(line)) for line in self.change]
        changed_text = _join_lines(text_read for _, text_read in lines)
        context = _join_lines(
            text_read if line.startswith(" ") or text_read is None else _BREAK for line, text_read in lines
        )
        return match_quote(text, changed_text, beside=context)


def read_commit_text(history: History, revision: str) -> CommitText:
    lines = history.show(GitShowArguments(revision=revision)).split("\n")
    message = list(takewhile(lambda line: not line.strip() or line.startswith(_INDENT), lines[_HEADER_LINES:]))
    rest = lines[_HEADER_LINES + len(message) :]
    return CommitText(
        message="\n".join(line.removeprefix(_INDENT) for line in message).strip(),
        change=tuple(line for line in rest if line != _EMPTY and not line.startswith("[")),
        left_out=tuple(line.strip("[]") for line in rest if line.startswith("[")),
    )


def _join_lines(lines: Iterable[str | None]) -> str:
    return "\n".join(line for line in lines if line is not None)


def _build_side_reading(sign: str) -> Callable[[str], str | None]:
    """Read the file of one side: lines of the other side are dropped, and lines that are not of the file are breaks."""

    def read(line: str) -> str | None:
        if line.startswith((sign, "\\")):
            return None
        return line[1:] if line.startswith((" ", "+", "-")) or not line else _BREAK

    return read


def _read_as_shown(line: str) -> str:
    """Read a line as shown, except for hunk headers: git appends a line from further up to them."""
    return _BREAK if line.startswith("@@") else line
