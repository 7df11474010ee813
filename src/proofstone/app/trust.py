"""Write grants into the person's own `trust.json`, atomically."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from proofstone.config.rules import RequestedPermission
from proofstone.config.trust import Grant, Grants, PermissionRecord, compute_grant_digest, load_grants
from proofstone.errors import InputError
from proofstone.machine.files import write_atomic


def add_grant(file: Path, repository: Path, needs: Iterable[RequestedPermission]) -> Grant:
    """Grant exactly these needs to the repository. Replace an equal grant."""
    sorted_needs = sorted(set(needs))
    grant = Grant(
        repository=str(repository),
        digest=compute_grant_digest(sorted_needs),
        granted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        needs=tuple(PermissionRecord(setting=need.setting, value=need.value) for need in sorted_needs),
    )
    with _lock(file):
        others = [
            other
            for other in load_grants(file).grants
            if (other.repository, other.digest) != (grant.repository, grant.digest)
        ]
        _write(file, Grants(grants=(*others, grant)))
    return grant


def remove_grants(file: Path, repository: str) -> tuple[Grant, ...]:
    """Remove every grant of the repository, and return them."""
    if not file.exists():
        return ()
    with _lock(file):
        grants = load_grants(file, checked=False).grants
        removed = tuple(grant for grant in grants if grant.repository == repository)
        if removed:
            _write(file, Grants(grants=tuple(grant for grant in grants if grant not in removed)))
    return removed


def _write(file: Path, grants: Grants) -> None:
    write_atomic(file, (grants.model_dump_json(indent=2) + "\n").encode(), mode=0o600)


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    """Lock the folder, so that two grants given at the same time are both kept."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(
            f"{file.parent}: cannot be opened: {error.strerror}", hint="set PROOFSTONE_CONFIG to a file of your own"
        ) from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
