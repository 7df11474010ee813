"""`cmd:<shell command line>` as an architect: it reads `ASSAY_REVIEW` and writes its verdict to `ASSAY_VERDICT`.

An exit code approves nothing. A verdict that approves beside an exit code other than 0 does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.adapters.architects.review import Reviewed, cut_short, verdict_in
from assay.adapters.executors.cmd import fresh_file, ran
from assay.adapters.executors.result import Tail, read_written
from assay.adapters.executors.site import ShellJob, Site
from assay.contracts.gate import ArchitectDecision, ArchitectVerdict, NoVerdict, ReviewRequest

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
                env={"ASSAY_ATTEMPT": str(request.attempt), "ASSAY_TASK_ID": request.task_id},
                reads={"ASSAY_REVIEW": asked},
                writes={"ASSAY_VERDICT": answer},
                on_output=tail.add,
            )
        )
        if ended := ran(execution):
            return cut_short(ended)
        written = read_written(answer)
        if written is None:
            said = tail.lines(_SHOWN_LINES)
            why = f"nothing was written to $ASSAY_VERDICT (exit code {execution.exit_code})"
            return NoVerdict(why=why + (f":\n{said}" if said else ""))
        verdict = verdict_in(written, self.spec)
        if execution.exit_code and _approves(verdict):
            return NoVerdict(why=f"it approves but ended with exit code {execution.exit_code}")
        return verdict


def _approves(verdict: ArchitectVerdict | NoVerdict) -> bool:
    return isinstance(verdict, ArchitectVerdict) and verdict.verdict is ArchitectDecision.APPROVED
