"""Which change a CI job is about."""

from __future__ import annotations

from typing import Any

from proofstone.ci.models import CiProvider
from proofstone.ci.rules.job import read_job
from tests.rows import each_row

GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7"}
ZEROS = "0" * 40


@each_row(
    ("variables", "event", "base", "number"),
    [
        (GITHUB, {"pull_request": {"number": 3, "base": {"sha": "b"}, "head": {"sha": "h"}}}, "b", 3),
        (GITHUB, {"merge_group": {"base_sha": "q"}}, "q", None),
        (GITHUB, {"before": "p", "after": "n"}, "p", None),
        (GITHUB, {"before": ZEROS}, "", None),
        (GITHUB, {}, "", None),
        (GITHUB, {"pull_request": [1], "before": 5}, "", None),
        (GITHUB, {"pull_request": {"number": "3", "base": "b"}}, "", None),
        ({"GITLAB_CI": "true", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "d", "CI_MERGE_REQUEST_IID": "4"}, {}, "d", 4),
        ({"GITLAB_CI": "true", "CI_COMMIT_BEFORE_SHA": "p"}, {}, "p", None),
        ({"GITLAB_CI": "true", "CI_COMMIT_BEFORE_SHA": ZEROS, "CI_MERGE_REQUEST_IID": "x"}, {}, "", None),
        ({}, {"before": "p"}, "", None),
    ],
)
def test_the_base_is_what_the_service_names(
    variables: dict[str, str], event: dict[str, Any], base: str, number: int | None
) -> None:
    job = read_job(variables, event)
    assert (job.base, job.number) == (base, number)
    assert bool(job.base_source) == bool(base)


def test_a_label_counts_only_in_the_event_that_sets_it() -> None:
    event = {"action": "labeled", "label": {"name": "x"}, "sender": {"login": "ann"}}
    assert read_job(GITHUB, event).label == "x"
    assert read_job(GITHUB, {**event, "action": "synchronize"}).label == ""
    assert read_job(GITHUB, event).run_url == "https://github.com/o/r/actions/runs/7"
    assert read_job({}, event).provider is CiProvider.OTHER
