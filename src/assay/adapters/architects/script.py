"""`script:FILE.yaml` as an architect: entries with `role: architect`."""

from __future__ import annotations

from dataclasses import dataclass

from assay.adapters.architects.review import Reviewed, cut_short, verdict_in
from assay.adapters.executors.script import Steps
from assay.adapters.executors.site import Site
from assay.adapters.script_file import Script, task_facts
from assay.contracts.gate import ReviewRequest


@dataclass(frozen=True)
class ScriptedArchitect:
    script: Script
    spec: str

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        entry = self.script.entry("architect", task_facts(request.task_id, request.task_name, request.attempt))
        work = Steps(self.script, site, request.deadline_seconds)
        for step in entry.steps:
            if ended := work.take(step):
                return cut_short(ended)
        return verdict_in(entry.said, self.spec)
