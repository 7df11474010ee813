"""What a maintainer accepts on the code host, and what looks like it."""

from __future__ import annotations

import pytest

from proofstone.ci.models import CiJob, CiProvider
from proofstone.ci.rules.approvals import Review, list_approvals
from tests.rows import each_row

PERMISSIONS = {"owner": "admin", "keeper": "maintain", "writer": "write", "author": "admin", "guest": "read"}
JOB = CiJob(provider=CiProvider.GITHUB, head="h", author="author", number=1)
LINE = "proofstone accept edited-expectation: the price changed in May"


def approve(job: CiJob, *reviews: Review) -> tuple[list[tuple[str, str]], list[str]]:
    result = list_approvals(job, reviews, lambda login: PERMISSIONS.get(login, "none"))
    return [(approval.rule, approval.by) for approval in result.approvals], list(result.ignored)


@pytest.mark.parametrize("by", ["owner", "keeper", "writer"])
def test_a_line_in_a_review_of_the_newest_commit_counts(by: str) -> None:
    found, ignored = approve(JOB, Review(by, f"Fine.\n{LINE}\r\nThanks", "h"))
    assert (found, ignored) == ([("edited-expectation", by)], [])


@each_row(
    ("review", "why"),
    [
        (Review("guest", LINE, "h"), "no write access"),
        (Review("stranger", LINE, "h"), "no write access"),
        (Review("author", LINE, "h"), "the author"),
        (Review("owner", LINE, "old"), "older commit"),
        (Review("owner", LINE, ""), "older commit"),
        (Review("owner", "proofstone accept edited-expectation: ok", "h"), "says too little"),
        (Review("owner", "proofstone accept new-failure: it is fine, believe me", "h"), "no finding of that rule"),
    ],
)
def test_anything_else_is_named_and_does_not_count(review: Review, why: str) -> None:
    found, ignored = approve(JOB, review)
    assert found == []
    assert [why in text for text in ignored] == [True], ignored


@pytest.mark.parametrize(
    "body", ["please proofstone accept edited-expectation: x", "> proofstone accept edited-expectation: x", "LGTM", ""]
)
def test_a_quoted_or_incomplete_line_is_no_approval(body: str) -> None:
    assert approve(JOB, Review("owner", body, "h")) == ([], [])


def test_a_label_counts_with_whoever_set_it() -> None:
    job = JOB.model_copy(update={"label": "proofstone-accept:edited-expectation", "sender": "keeper"})
    assert approve(job)[0] == [("edited-expectation", "keeper")]
    assert "the author" in approve(job.model_copy(update={"sender": "author"}))[1][0]
    assert approve(job.model_copy(update={"label": "bug"})) == ([], [])
    assert approve(job.model_copy(update={"head": ""}))[0] == [], "without a newest commit nothing counts"
