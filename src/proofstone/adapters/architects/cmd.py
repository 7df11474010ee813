"""`cmd:<shell command line>` as an architect: it reads `PROOFSTONE_REVIEW` and writes its verdict to
`PROOFSTONE_VERDICT`.

An exit code approves nothing. A verdict that approves beside an exit code other than 0 does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.adapters.architects.review import Reviewed, cut_short, verdict_in
from proofstone.adapters.executors.cmd import fresh_file, ran
from proofstone.adapters.executors.result import Tail, read_written
from proofstone.adapters.executors.site import ShellJob, Site
from proofstone.contracts.gate import ArchitectDecision, ArchitectVerdict, NoVerdict, ReviewRequest

_SHOWN_LINES = 10


@dataclass(frozen=True)
class CommandArchitect:
    command: str

    @property
    def spec(self) -> str:
        return f"cmd:{self.command}"

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        asked, answer = site.scratch / "review.json", fresh_file(site.scratch / "verdict", "verdict.json")
        asked.write_text(f"{request.model_dump_json(indent=2)}\n", "utf-8")
        tail = Tail()
        execution = site.run(
            ShellJob(
                command=self.command,
                seconds=request.deadline_seconds,
                env={"PROOFSTONE_ATTEMPT": str(request.attempt), "PROOFSTONE_TASK_ID": request.task_id},
                reads={"PROOFSTONE_REVIEW": asked},
                writes={"PROOFSTONE_VERDICT": answer},
                on_output=tail.add,
            )
        )
        if ended := ran(execution):
            return cut_short(ended)
        written = read_written(answer)
        if written is None:
            said = tail.lines(_SHOWN_LINES)
            why = f"nothing was written to $PROOFSTONE_VERDICT (exit code {execution.exit_code})"
            return NoVerdict(why=why + (f":\n{said}" if said else ""))
        verdict = verdict_in(written, self.spec)
        if execution.exit_code and _approves(verdict):
            return NoVerdict(why=f"it approves but ended with exit code {execution.exit_code}")
        return verdict


def _approves(verdict: ArchitectVerdict | NoVerdict) -> bool:
    return isinstance(verdict, ArchitectVerdict) and verdict.verdict is ArchitectDecision.APPROVED
