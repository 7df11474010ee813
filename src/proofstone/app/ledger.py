"""Verify a ledger with its artifacts and anchors, and choose who keeps the ledger and its key.

A problem in one place does not stop the verification of the others: each problem is named.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofstone.config.home import find_proofstone_home
from proofstone.errors import InputError, LedgerCorruptError, LedgerError, ProofstoneError
from proofstone.git.program import Git, git_environment
from proofstone.git.repository import LEDGER_REF, Repository, open_repository, read_anchor_blob
from proofstone.ledger import Ledger, Verification
from proofstone.ledger.anchors import AnchorFiles, parse_anchors, path_to_text, text_to_path
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.daemon import DATABASE_MODE, DaemonConfig, LedgerDaemon
from proofstone.ledger.daemon_setup import (
    DEFAULT_SOCKET_FOLDER,
    DEFAULT_STATE_FOLDER,
    listen_as_account,
    move_to_account,
    read_config,
)
from proofstone.ledger.keys import add_to_keyring, key_path, publish_key, read_key, use_keyring_key
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.query import run_query
from proofstone.ledger.repository_anchors import reanchor
from proofstone.ledger.rules.anchors import Anchor, AnchorFault, AnchorFinding, compare_anchors
from proofstone.ledger.rules.chain import ChainBreak
from proofstone.ledger.schema import json_field
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.ledger.verification import verify_with_artifacts

_MAX_REPOSITORIES: Final = 100_000
_REPOSITORIES: Final = f"""
SELECT DISTINCT {json_field("payload", "$.repository")} AS repository FROM events
WHERE type = 'run.started' AND repository IS NOT NULL
"""  # noqa: S608  our own names
_FAULTS_WITHOUT_ROWS: Final = (AnchorFault.MISSING, AnchorFault.FOREIGN, AnchorFault.REPLACED)
"""Faults that comparing an anchor with the rows does not find."""


@dataclass(frozen=True)
class LedgerVerification:
    """The result of verifying a ledger."""

    verification: Verification
    anchors: int
    """The number of anchors that the ledger was compared with."""
    note: str = ""
    """Why the next verification cannot start where this one ended."""


@dataclass
class _AnchorCollection:
    """The anchors of all places, and the problems with the places themselves."""

    found: list[Anchor] = field(default_factory=list)
    problems: list[ChainBreak] = field(default_factory=list)

    def add(self, anchors: Sequence[Anchor]) -> None:
        self.found += [anchor for anchor in anchors if anchor not in self.found]

    def complain(self, where: str, why: str) -> None:
        self.problems.append(ChainBreak(None, f"{where}: {why}"))


def verify_ledger(
    home: Path,
    anchors: Sequence[Anchor] = (),
    repositories: Sequence[Path] = (),
    *,
    full: bool = False,
    current: Path | None = None,
) -> LedgerVerification | LedgerCorruptError:
    """Verify the ledger of a state directory: since the last verified checkpoint, or in full. Return the error if the
    file is so damaged that it cannot be opened.

    `current` is the root of the repository that the person is in. Its anchors are compared as a check would compare
    them, because a ledger that was emptied no longer knows the repository.
    """
    opened = [open_repository(directory) for directory in repositories]
    try:
        with closing(open_ledger(home, "read")) as ledger:
            collected = _AnchorCollection()
            collected.add(anchors)
            head = ledger.head()
            _collect_named(collected, opened)
            _collect_kept(collected, ledger, home, head)
            if current is not None:
                _collect_current(collected, ledger, home, head, current)
            if full:
                _collect_recorded(collected, home, head, {repository.root for repository in opened})
            since = None if full else ledger.checkpoint()
            proof = verify_with_artifacts(ledger, ArtifactStore(artifacts_path(home)), collected.found, since=since)
            proof = proof.with_problems(collected.problems)
            note = ledger.record_checkpoint(proof.head) if proof.ok else ""
            return LedgerVerification(proof, len(collected.found), note)
    except LedgerCorruptError as error:
        return error


def reanchor_repository(
    directory: Path, reason: str, by: str, home: Path | None = None
) -> tuple[tuple[AnchorFinding, ...], Anchor]:
    """Accept the ledger as it is, on the person's responsibility, and record that."""
    from proofstone.app.context import ensure_private_home, new_run_id

    if not reason.strip():
        raise InputError("--reason: say why the ledger is right as it is", hint='--reason "restored from the backup"')
    repository, home = open_repository(directory), ensure_private_home(home)
    with closing(open_ledger(home, "create")) as ledger:
        return reanchor(ledger, home, repository, new_run_id(), " ".join(reason.split()), by)


def _collect_named(known: _AnchorCollection, repositories: Sequence[Repository]) -> None:
    """Add the anchors of the repositories that the person names."""
    for repository in repositories:
        known.add(_read_anchors_at(repository.git, str(repository.root)))


def _collect_kept(known: _AnchorCollection, ledger: Ledger, home: Path, head: Anchor) -> None:
    """Add the anchors of the state directory, and of every repository that holds the copy of one."""
    try:
        entries = list(AnchorFiles(home).list_last())
    except LedgerError as error:
        known.complain("the anchors of the state directory", error.message)
        return
    known.add([kept_anchor.anchor for kept_anchor in entries if kept_anchor.anchor.ledger_id == head.ledger_id])
    for finding in compare_anchors((), entries, None, head, ledger.hash_at):
        if finding.fault in _FAULTS_WITHOUT_ROWS:
            known.problems.append(ChainBreak(None, finding.detail))
    for entry in entries:
        place = text_to_path(entry.repository)
        if place.exists():  # otherwise the repository is gone with its anchor; the copy counts
            _compare_place(known, ledger, home, head, place)


def _collect_current(known: _AnchorCollection, ledger: Ledger, home: Path, head: Anchor, root: Path) -> None:
    """Add the anchors of a repository that the state directory does not know."""
    try:
        place = open_repository(root).common_dir
        is_known = AnchorFiles(home).find_last(place) is not None
    except ProofstoneError as error:
        known.complain(str(root), f"its anchor cannot be read: {error.message}")
        return
    if not is_known:
        _compare_place(known, ledger, home, head, place)


def _compare_place(known: _AnchorCollection, ledger: Ledger, home: Path, head: Anchor, place: Path) -> None:
    """Add the anchors in a git directory, and report those that contradict the ledger's identity."""
    name = path_to_text(place)
    try:
        anchors = _read_anchors_at(_open_git(place), name)
        own = AnchorFiles(home).find_last(place)
    except ProofstoneError as error:
        known.complain(name, f"its anchor cannot be read: {error.message}")
        return
    known.add([anchor for anchor in anchors if anchor.ledger_id == head.ledger_id])
    for finding in compare_anchors(anchors, (), own, head, ledger.hash_at):
        if finding.fault in _FAULTS_WITHOUT_ROWS:
            known.complain(name, finding.detail)


def _collect_recorded(known: _AnchorCollection, home: Path, head: Anchor, done: set[Path]) -> None:
    """Add the anchors of the repositories that rows name. Report one that cannot be read; skip one that is gone."""
    for name in _list_repositories(home):
        root = Path(name)
        if root in done or not (root / ".git").exists():
            continue
        try:
            anchors = _read_anchors_at(open_repository(root).git, name)
        except ProofstoneError as error:
            known.complain(name, f"its anchor cannot be read: {error.message}")
            continue
        known.add([anchor for anchor in anchors if anchor.ledger_id == head.ledger_id])


def _list_repositories(home: Path) -> Iterator[str]:
    """Yield the repositories that rows name."""
    try:
        rows = run_query(ledger_path(home), _REPOSITORIES, limit=_MAX_REPOSITORIES).rows
    except ProofstoneError:
        return  # verifying the rows reports the damage
    yield from sorted(str(name) for (name,) in rows)


def _read_anchors_at(git: Git, name: str) -> tuple[Anchor, ...]:
    return parse_anchors(read_anchor_blob(git).data, source=f"{name}, {LEDGER_REF}")


def _open_git(git_directory: Path) -> Git:
    return Git(git_directory, git_dir=git_directory, variables={"PATH": git_environment().get("PATH", os.defpath)})


def move_ledger_to_account(
    home: Path | None, account: str, socket_path: Path | None, state: Path | None
) -> tuple[DaemonConfig, Path]:
    """Let a daemon of another account keep the ledger. Return its configuration and the folder that holds it."""
    home = home or find_proofstone_home()
    uid = home.stat().st_uid if home.is_dir() else 0
    folder = state or DEFAULT_STATE_FOLDER / str(uid)
    listen_at = socket_path or DEFAULT_SOCKET_FOLDER / f"{uid}.sock"
    if not listen_at.is_absolute() or not listen_at.parent.resolve().is_relative_to("/run"):
        raise InputError(
            f"--socket {listen_at}: must lie below /run, which no sandbox sees",
            hint=f"{DEFAULT_SOCKET_FOLDER}/NAME.sock",
        )
    return move_to_account(home, account, listen_at, folder), folder


def run_daemon(state: Path, ready: Callable[[DaemonConfig], None]) -> None:
    """Keep a ledger until a signal ends the process."""
    config = read_config(state)
    listener = listen_as_account(config)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: listener.shutdown(socket.SHUT_RDWR))
    with listener, SqliteLedger(Path(config.database), "write", file_mode=DATABASE_MODE) as ledger:
        ready(config)
        LedgerDaemon(ledger, listener, config.client_uid).serve()
    Path(config.socket).unlink(missing_ok=True)


def move_key_to_keyring(home: Path | None, copy: Path) -> str:
    """Move the ledger's key from its file to the kernel's keyring, or load it there again from a copy. Return the name
    of the key in the keyring."""
    home = home or find_proofstone_home()
    path = key_path(ledger_path(home))
    if not path.is_file():
        raise InputError(
            f"{path}: there is no key yet", hint="run `proofstone check` first: it creates the ledger and its key"
        )
    if path.read_text("ascii", "replace").startswith("keyring:"):
        name, text = path.read_text("ascii").strip().removeprefix("keyring:"), _read_key_text(copy)
        add_to_keyring(name, text)
        return name
    text, name = _read_key_text(path), f"proofstone-ledger-{secrets.token_hex(4)}"
    if copy.exists():
        raise InputError(f"{copy}: exists already", hint="name a new file for the copy of the key")
    publish_key(copy, text)
    add_to_keyring(name, text)
    use_keyring_key(path, name)
    return name


def _read_key_text(path: Path) -> str:
    key = read_key(path)
    if key is None:
        raise InputError(f"{path}: contains no key")
    return key.value.hex()
