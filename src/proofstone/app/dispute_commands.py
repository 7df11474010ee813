"""Raise, list and decide disputes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.app.caller import demand_acceptance, find_login_name, gather_facts
from proofstone.app.context import build_check_run, ensure_private_home, new_run_id, open_writable_ledger
from proofstone.check.context import CheckRequest, NullProgress
from proofstone.check.dispute_records import find_disputes, record_decision, record_dispute
from proofstone.check.recording import find_recorded_checks
from proofstone.check.rules.acceptance import is_reason_sufficient
from proofstone.check.rules.disputes import DisputeDecision, RecordedDispute
from proofstone.config.rules import detect_coding_agent
from proofstone.errors import InputError
from proofstone.git.pending_commit import find_work_tree_roots
from proofstone.git.repository import open_repository
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.opening import open_ledger
from proofstone.ledger.query import find_any_run
from proofstone.sandbox.job import SANDBOX_VARIABLE

_MAX_EVIDENCE_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class DisputeRequest:
    """What somebody disputes, and why."""

    subject: str
    because: str
    run: str | None = None
    evidence: Path | None = None
    staged: bool = False


def raise_dispute(repo: Path, request: DisputeRequest, home: Path | None = None) -> RecordedDispute:
    """Record a dispute about the work tree as it is now. It changes no verdict: a person decides."""
    _refuse_in_sandbox()
    subject, claim = _require_words("SUBJECT", request.subject), _require_words("--because", request.because)
    if not is_reason_sufficient(claim):
        raise InputError(
            "--because: say in a few words why it is wrong; a person reads it",
            hint="for instance --because 'the test expects 5, and the README says that the sum is 6'",
        )
    evidence = _read_evidence(request.evidence)
    with build_check_run(repo, CheckRequest(staged=request.staged), NullProgress(), home=home) as run:
        context, tree = run.context, run.subject.frozen_snapshot.tree
        artifact = context.artifacts.put(context.secrets(evidence)) if evidence is not None else None
        if artifact is not None:
            context.ledger.append(artifact.to_row())
        dispute = RecordedDispute(
            id=new_run_id(),
            tree=tree,
            repository=str(context.repository.root),
            subject=subject,
            claim=claim,
            raised_by=_describe_caller(),
            run=_find_disputed_run(repo, request.run, tree, context.home),
            evidence=artifact.hash if artifact else "",
        )
        record_dispute(context.ledger, dispute)
    return dispute


def list_disputes(repo: Path, home: Path | None = None) -> tuple[RecordedDispute, ...]:
    """Return the disputes of this repository's work trees, oldest first."""
    home = ensure_private_home(home)
    if not ledger_path(home).is_file():
        return ()
    roots = find_work_tree_roots(open_repository(repo))
    with closing(open_ledger(home, "read")) as ledger:
        return tuple(dispute for dispute in find_disputes(ledger) if dispute.repository in roots)


def decide_dispute(
    repo: Path,
    dispute_id: str,
    decision: DisputeDecision,
    reason: str,
    accepted_by: str | None = None,
    home: Path | None = None,
) -> RecordedDispute:
    """Record what a person decides about a dispute. A coding agent cannot decide."""
    facts = gather_facts(accepted_by)
    method = demand_acceptance("decide", facts)
    words = _require_words("--reason", reason)
    if not is_reason_sufficient(words):
        raise InputError("--reason: say in a few words why you decide so; it is recorded with your name")
    dispute = _find_dispute(list_disputes(repo, home), dispute_id)
    if not dispute.is_open:
        raise InputError(f"{dispute.id}: {dispute.decided_by} decided it already: {dispute.decision}")
    by = facts.approver or find_login_name()
    with open_writable_ledger(ensure_private_home(home), open_repository(repo)) as ledger:
        record_decision(ledger, dispute, decision, words, by, method)
    return dispute.model_copy(update={"decision": decision, "reason": words, "decided_by": by, "method": method})


def _find_dispute(disputes: Sequence[RecordedDispute], text: str) -> RecordedDispute:
    """Return the dispute that the text names: its id, the end of its id, or `last`."""
    if text == "last":
        found = [dispute for dispute in disputes if dispute.is_open][-1:]
    else:
        found = [dispute for dispute in disputes if text and dispute.id.endswith(text)]
    if len(found) != 1:
        raise InputError(
            f"{text}: no open dispute here is called so" if not found else f"{text}: names {len(found)} disputes",
            hint="`proofstone dispute --list` lists them",
        )
    return found[0]


def _find_disputed_run(repo: Path, name: str | None, tree: str, home: Path) -> str:
    """Return the id of the named run, or of the last check of this tree; empty if there was none."""
    repository = open_repository(repo)
    if name is not None:
        return find_any_run(ledger_path(home), name, repository.root)
    checks = find_recorded_checks(ledger_path(home), find_work_tree_roots(repository), tree)
    return checks[0].run_id if checks else ""


def _refuse_in_sandbox() -> None:
    if SANDBOX_VARIABLE in os.environ:
        raise InputError(
            "this runs inside a sandbox of Proofstone, from which nothing can be recorded",
            hint="write the dispute into `disputes` of your result: subject and because",
        )


def _describe_caller() -> str:
    agent = detect_coding_agent(os.environ)
    return f"{agent} ({find_login_name()})" if agent else find_login_name()


def _require_words(what: str, text: str) -> str:
    """Return the text on one line. Refuse text that is empty or cannot be recorded as it is."""
    if not text.strip() or "\0" in text or text.encode("utf-8", "ignore").decode("utf-8") != text:
        raise InputError(f"{what} {text!r}: not a text", hint="say what is wrong, and why")
    return " ".join(text.split())


def _read_evidence(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"--evidence {path}: cannot be read ({error.strerror})", hint="name a file") from error
    if len(data) > _MAX_EVIDENCE_BYTES:
        raise InputError(f"--evidence {path}: larger than 1 MiB", hint="keep what a person needs to see")
    return data
