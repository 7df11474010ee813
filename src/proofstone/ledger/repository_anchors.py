"""Compare the anchors with the ledger before anything is written, and write them after a run.

Anchors are in two places: a ref of the repository, and a file in the state directory. The ref is written first: a crash
in between leaves a ref without its counterpart, which is harmless, and never the opposite.
"""

from __future__ import annotations

from pathlib import Path

from proofstone.errors import AnchorError, InputError, LedgerError
from proofstone.git.program import GitCommandError
from proofstone.git.repository import LEDGER_REF, Repository, read_anchor_blob, replace_anchor_blob
from proofstone.ledger import Ledger
from proofstone.ledger.anchors import AnchorFiles, parse_anchors, path_to_text
from proofstone.ledger.models import OverrideRow
from proofstone.ledger.rules.anchors import Anchor, AnchorFinding, compare_anchors, describe_fault

_MAX_TRIES = 5


def find_anchor_faults(ledger: Ledger, home: Path, repository: Repository | None) -> tuple[AnchorFinding, ...]:
    """Return the contradictions between the ledger and its anchors: those of the repository, if one is given, and those
    in the state directory.
    """
    files = AnchorFiles(home)
    in_repository = () if repository is None else read_repository_anchors(repository)
    own = None if repository is None else files.find_last(repository.common_dir)
    return compare_anchors(in_repository, files.list_last(), own, ledger.head(), ledger.hash_at)


def demand_valid_anchors(ledger: Ledger, home: Path, repository: Repository | None = None) -> None:
    """Raise AnchorError if the anchors contradict the ledger, so that nothing is appended to it unnoticed."""
    findings = find_anchor_faults(ledger, home, repository)
    if findings:
        raise AnchorError(_explain_findings(findings, repository), hint=_recovery_hint(repository))


def anchor_head(ledger: Ledger, home: Path, repository: Repository) -> str | None:
    """Write the ledger's head to both places if the existing anchors hold. Return the reason if that fails."""
    try:
        findings = find_anchor_faults(ledger, home, repository)
        if findings:
            return f"the ledger contradicts an earlier anchor: {findings[0].detail}"
        _write_anchor(ledger.head(), home, repository)
    except (GitCommandError, LedgerError, InputError) as error:
        return error.message
    return None


def reanchor(
    ledger: Ledger, home: Path, repository: Repository, run_id: str, reason: str, by: str
) -> tuple[tuple[AnchorFinding, ...], Anchor]:
    """Accept the ledger as it is: record the problems and the person's reason, then anchor the ledger again."""
    try:
        findings = find_anchor_faults(ledger, home, repository)
        unreadable = ""
    except InputError as error:
        findings, unreadable = (), error.message
    if not findings and not unreadable:
        return (), ledger.head()
    faults: list[dict[str, str]] = [{"fault": finding.fault.value, "detail": finding.detail} for finding in findings]
    if unreadable:
        faults.append({"fault": "unreadable", "detail": unreadable})
    ledger.append(
        OverrideRow(
            run_id=run_id,
            task_id="ledger",
            action="reanchor",
            reason=reason,
            decided_by=by,
            payload={"repository": str(repository.root), "found": [dict(entry) for entry in faults]},
        )
    )
    head = ledger.head()
    _write_anchor(head, home, repository, replaces_unreadable=bool(unreadable))
    files = AnchorFiles(home)
    for stored in list(files.list_last()):
        if stored.repository != path_to_text(repository.common_dir):
            files.append_stored(stored.model_copy(update={"anchor": head}))
    return findings, head


def read_repository_anchors(repository: Repository) -> tuple[Anchor, ...]:
    return parse_anchors(read_anchor_blob(repository.git).data, source=f"{repository.root}, {LEDGER_REF}")


def _write_anchor(head: Anchor, home: Path, repository: Repository, *, replaces_unreadable: bool = False) -> None:
    for _ in range(_MAX_TRIES):
        blob = read_anchor_blob(repository.git)
        try:
            anchors = parse_anchors(blob.data, source=f"{repository.root}, {LEDGER_REF}")
        except InputError:
            if not replaces_unreadable:
                raise
            anchors = ()
        others = [anchor for anchor in anchors if anchor.ledger_id != head.ledger_id]
        if replace_anchor_blob(repository.git, blob, [anchor.to_bytes() for anchor in (*others, head)]):
            break
    else:
        raise LedgerError(f"{repository.root}: {LEDGER_REF} keeps changing", hint="try again")
    AnchorFiles(home).append_anchor(repository.common_dir, head)


def _explain_findings(findings: tuple[AnchorFinding, ...], repository: Repository | None) -> str:
    where = "the ledger is" if repository is None else f"{repository.root}: the ledger is"
    lines = [f"{where} not the one that was anchored; nothing was checked or recorded"]
    for finding in findings:
        lines.append(f"  {finding.fault.value}: {finding.detail}")
        lines.append(f"    possible cause: {describe_fault(finding.fault)}")
    return "\n".join(lines)


def _recovery_hint(repository: Repository | None) -> str:
    command = 'proofstone ledger reanchor --reason "…"'
    if repository is not None:
        command += f" --repo {repository.root}"
    return f"restore the ledger or the ref; if you know the cause, accept the ledger with {command} (this is recorded)"
