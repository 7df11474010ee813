"""The pages about a check and about a run: where they may be written, and the diffs that they show."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from proofstone.app.context import ensure_private_home
from proofstone.check.models import CheckReport
from proofstone.check.rules.report_page import CheckEvidence, build_check_page
from proofstone.common.secrets import is_secret_path
from proofstone.config.settings import Settings
from proofstone.documents.diff import ShownDiff, parse_diff
from proofstone.documents.model import Document
from proofstone.errors import InputError, ProofstoneError
from proofstone.git.checkout import render_diff
from proofstone.git.program import Git
from proofstone.git.repository import open_repository
from proofstone.git.store import open_store
from proofstone.git.user_hooks import is_ignored
from proofstone.ledger.models import EventRow
from proofstone.ledger.opening import open_ledger

_ALL = 1 << 40
"""More characters than any diff has: the page decides what it shows."""


def load_check_page(report: CheckReport, repository: Path) -> Document:
    """Return the page about a check of this repository."""
    home = ensure_private_home()
    seq, digest, artifact = _find_verdict_row(report.run_id, home)
    try:
        git = open_store(open_repository(repository), home).git()
        diff = read_shown_diff(git, report.base, report.tree, report.changed)
    except ProofstoneError as error:
        diff = ShownDiff(problem=str(error))
    return build_check_page(report, CheckEvidence(diff, seq, digest, artifact))


def read_shown_diff(git: Git, old: str, new: str, changed: Iterable[str]) -> ShownDiff:
    """Return the diff between two trees. Of files that may hold secrets, only the names are shown."""
    patterns = Settings().tools.secret
    hidden = tuple(path for path in changed if is_secret_path(path, patterns))
    text = render_diff(git, old, new, hidden, _ALL, find_renames=True)
    return ShownDiff(*parse_diff(text, hidden))


def read_committed_diff(repository: str, commits: Sequence[str], changed: Iterable[str]) -> ShownDiff | None:
    """Return the diff of what a run has committed, as the repository holds it now; None if it committed nothing.
    `commits` are the first commit's parent and all commits."""
    if len(commits) < 2:
        return None
    try:
        return read_shown_diff(open_repository(Path(repository)).git, commits[0], commits[-1], changed)
    except ProofstoneError as error:
        return ShownDiff(problem=str(error))


def _find_verdict_row(run_id: str, home: Path) -> tuple[int | None, str, str]:
    """Return the row that holds the verdict, its hash, and the artifact of the report."""
    with closing(open_ledger(home, "read")) as ledger:
        for stored in ledger.read(EventRow, run_id=run_id, type="run.finished", newest=True, limit=1):
            return stored.seq, stored.link.hash, str(stored.row.payload.get("report") or "")
    return None, "", ""


def require_report_file(option: str, file: Path, repository: Path) -> Path:
    """Return the absolute path of a report. Refuse one that cannot be written, and one inside the work tree that git
    does not ignore: it would become part of the change."""
    try:
        target = file.absolute()
        parent = target.parent.resolve(strict=True)
        if target.is_dir():
            raise InputError(f"{option} {file}: is a folder", hint="name a file in it")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{option} {file}: its folder cannot be used: {getattr(error, 'strerror', None) or error}",
            hint="create the folder, or name another file",
        ) from error
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{option} {file}: its folder cannot be written to", hint="name another file")
    _refuse_part_of_change(option, file, parent / target.name, repository)
    return target


def _refuse_part_of_change(option: str, file: Path, target: Path, directory: Path) -> None:
    repository = open_repository(directory)
    if target.is_relative_to(repository.git_dir.resolve()):
        raise InputError(f"{option} {file}: is inside git's own folder", hint="name another file")
    root = repository.root.resolve()
    if target.is_relative_to(root) and not is_ignored(repository, repository.root / target.relative_to(root)):
        raise InputError(
            f"{option} {file}: is in the work tree, so the report would become part of the change",
            hint="name a file outside of the work tree, or one that git ignores",
        )
