"""What runs of the pipeline leave for people: the log of decisions of all runs, and the proposals for the files that
instruct agents. Both are rows of the ledger; only a person adopts a proposal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.app.context import ensure_private_home, open_writable_ledger
from proofstone.common.models import AcceptanceMethod
from proofstone.errors import InputError
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, EventRow
from proofstone.ledger.opening import open_ledger
from proofstone.machine.files import write_atomic
from proofstone.pipeline.journal import DECISION_EVENT, PROPOSAL_EVENT, PROPOSAL_GATE

_INSTRUCTION_SUFFIXES: Final = (".md", ".mdc", ".txt")
_INSTRUCTION_NAMES: Final = (".cursorrules", ".windsurfrules", ".clinerules", ".goosehints")
_CLOSED_FOLDERS: Final = (".git", ".proofstone")


class ProposalState(StrEnum):
    OPEN = "open"
    ADOPTED = "adopted"
    DECLINED = "declined"


@dataclass(frozen=True)
class InstructionProposal:
    """A text that the knowledge role proposes for a file that instructs agents."""

    id: str
    run_id: str
    repository: str
    path: str
    content: str
    reason: str
    state: ProposalState
    decided_by: str = ""


def read_decisions(repository: Path | None, home: Path | None = None) -> list[dict[str, JsonValue]]:
    """Return the decisions of all runs in this repository, the newest first; of all repositories if it is None."""
    with closing(open_ledger(ensure_private_home(home), "read")) as ledger:
        rows = [stored.row for stored in ledger.read(EventRow, type=DECISION_EVENT, newest=True)]
    return [
        {"run_id": row.run_id, **row.payload}
        for row in rows
        if repository is None or row.payload.get("repository") == str(repository)
    ]


def read_proposals(repository: Path | None, home: Path | None = None) -> list[InstructionProposal]:
    """Return the proposals of all runs in this repository, the oldest first; of all repositories if it is None."""
    with closing(open_ledger(ensure_private_home(home), "read")) as ledger:
        return [proposal for proposal in _list_proposals(ledger) if repository in (None, Path(proposal.repository))]


def decide_proposal(
    id: str, by: str, method: AcceptanceMethod, *, adopt: bool, reason: str = "", home: Path | None = None
) -> InstructionProposal:
    """Record what a person decides about a proposal. An adopted one is added at the end of its file."""
    with open_writable_ledger(ensure_private_home(home)) as ledger:
        proposal = find_proposal(list(_list_proposals(ledger)), id)
        if proposal.state is not ProposalState.OPEN:
            raise InputError(
                f"{id}: is already {proposal.state} by {proposal.decided_by}",
                hint="`proofstone memory proposals` lists the open ones",
            )
        if adopt:
            _append_to_file(find_instruction_file(proposal), proposal.content)
        ledger.append(
            ApprovalRow(
                run_id=proposal.run_id,
                gate=f"{PROPOSAL_GATE}/{proposal.id}",
                option="adopted" if adopt else "declined",
                decided_by=by,
                reason=reason,
                payload={"method": method.value, "path": proposal.path},
            )
        )
    return proposal


def find_proposal(proposals: list[InstructionProposal], id: str) -> InstructionProposal:
    """Return the proposal with this id."""
    for proposal in proposals:
        if proposal.id == id:
            return proposal
    known = ", ".join(proposal.id for proposal in proposals if proposal.state is ProposalState.OPEN)
    raise InputError(f"{id}: there is no such proposal", hint=f"open: {known or 'none'}")


def find_instruction_file(proposal: InstructionProposal) -> Path:
    """Return the file that a proposal is for. Refuse a path that is no file of instructions in its repository."""
    root, relative = Path(proposal.repository), Path(proposal.path)
    is_text = relative.suffix in _INSTRUCTION_SUFFIXES or relative.name in _INSTRUCTION_NAMES
    file = (root / relative).resolve()
    is_closed = not file.is_relative_to(root.resolve()) or any(part in _CLOSED_FOLDERS for part in relative.parts)
    if not proposal.path or relative.is_absolute() or not is_text or is_closed:
        raise InputError(
            f"{proposal.id}: {proposal.path or 'no file'} is not a file of instructions in {root}",
            hint=f"copy what you want from {proposal.id} yourself, and decline it",
        )
    return file


def _list_proposals(ledger: Ledger) -> Iterator[InstructionProposal]:
    for stored in ledger.read(EventRow, type=PROPOSAL_EVENT):
        payload: Mapping[str, JsonValue] = stored.row.payload
        id = str(payload["id"])
        decided = ledger.read(ApprovalRow, run_id=stored.row.run_id, gate=f"{PROPOSAL_GATE}/{id}", newest=True, limit=1)
        yield InstructionProposal(
            id=id,
            run_id=stored.row.run_id,
            repository=str(payload["repository"]),
            path=str(payload["path"]),
            content=str(payload["content"]),
            reason=str(payload["reason"]),
            state=ProposalState(decided[0].row.option) if decided else ProposalState.OPEN,
            decided_by=decided[0].row.decided_by if decided else "",
        )


def _append_to_file(file: Path, content: str) -> None:
    """Add the text at the end of the file, unless it already ends with it, as after a crash."""
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    text = f"{content.strip()}\n"
    if before.endswith(text):
        return
    between = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, f"{before}{between}{text}".encode())
