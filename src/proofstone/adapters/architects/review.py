"""What an architect is: somebody who sees the candidate and what was found out about it, and gives a verdict.

Whatever is not a verdict of the schema approves nothing.
"""

from __future__ import annotations

from typing import Protocol

from proofstone.adapters.executors.site import Ran, Site
from proofstone.contracts.gate import ArchitectVerdict, NoVerdict, ReviewRequest, Waiting
from proofstone.core.agent.answer import Malformed, parse

Reviewed = ArchitectVerdict | Waiting | NoVerdict


class Architect(Protocol):
    @property
    def spec(self) -> str:
        """As the person wrote it."""
        ...

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        """`site` holds the candidate; what is written there is thrown away."""
        ...


def verdict_in(written: bytes | Malformed | None, spec: str) -> ArchitectVerdict | NoVerdict:
    """The verdict that was written. Whose it is, is known here and not said by them."""
    if written is None:
        return NoVerdict(why="no verdict was given")
    verdict = written if isinstance(written, Malformed) else parse(written, ArchitectVerdict)
    if isinstance(verdict, Malformed):
        return NoVerdict(why=f"the verdict is malformed: {verdict.why}")
    return verdict.model_copy(update={"by": spec})


def cut_short(ended: Ran) -> NoVerdict:
    """A review that did not come to its own end."""
    why = ended.claim.error if ended.claim and ended.claim.error else ended.ended
    return NoVerdict(why=why, timed_out=ended.timed_out, cancelled=ended.cancelled)
