"""Whether a plan may reach implementation: what was said last about exactly these bytes."""

from __future__ import annotations

from proofstone.plan_gate.models import PlanVerdict
from proofstone.plan_gate.rules.admission import MitigatedPlan, PlanJudgement, explain_not_admitted
from tests.rows import each_row

PROCEED, REVISE, RETHINK = PlanVerdict.PROCEED, PlanVerdict.REVISE, PlanVerdict.RETHINK
NEVER = "it has not gone through the plan gate as it is"
SAYS_REVISE = "the plan gate says REVISE (run r1)"


def judged(*verdicts: PlanVerdict | None, digest: str = "plan") -> list[PlanJudgement]:
    """By runs `r1`, `r2` …"""
    return [PlanJudgement(f"r{number}", digest, verdict) for number, verdict in enumerate(verdicts, 1)]


TABLE: list[tuple[str, list[PlanJudgement], list[MitigatedPlan], str]] = [
    ("nothing was said", [], [], NEVER),
    ("it may proceed", judged(PROCEED), [], ""),
    ("it is to be revised", judged(REVISE), [], SAYS_REVISE),
    ("it is to be thought over", judged(RETHINK), [], "the plan gate says RETHINK (run r1)"),
    ("a question waits", judged(None), [], "a question about it is waiting (run r1)"),
    ("another plan may proceed", judged(PROCEED, digest="another"), [], NEVER),
    ("the last word is the good one", judged(RETHINK, PROCEED), [], ""),
    ("the last word is the bad one", judged(PROCEED, REVISE), [], "the plan gate says REVISE (run r2)"),
    ("the last word is a question", judged(PROCEED, None), [], "a question about it is waiting (run r2)"),
    ("mitigations were taken in", judged(REVISE, digest="before"), [MitigatedPlan("r1", "plan")], ""),
    ("mitigations of what may proceed", judged(PROCEED, digest="before"), [MitigatedPlan("r1", "plan")], ""),
    (
        "it may proceed, with mitigations that are not in it",
        [PlanJudgement("r1", "plan", PROCEED, has_mitigations=True)],
        [],
        "its mitigations are not in the plan yet",
    ),
    (
        "a REVISE that had to end early",
        [PlanJudgement("r1", "before", REVISE, is_forced=True)],
        [MitigatedPlan("r1", "plan")],
        NEVER,
    ),
    (
        "somebody was asked, and then the rules alone",
        [PlanJudgement("r1", "plan", REVISE), PlanJudgement("r2", "plan", PROCEED, is_by_rules_alone=True)],
        [],
        SAYS_REVISE,
    ),
    (
        "the rules alone, and then somebody was asked",
        [PlanJudgement("r1", "plan", RETHINK, is_by_rules_alone=True), PlanJudgement("r2", "plan", PROCEED)],
        [],
        "",
    ),
    ("the rules alone", [PlanJudgement("r1", "plan", PROCEED, is_by_rules_alone=True)], [], ""),
    (
        "the rules alone said REVISE last",
        [
            PlanJudgement("r0", "plan", PROCEED, is_by_rules_alone=True),
            PlanJudgement("r1", "plan", REVISE, is_by_rules_alone=True),
        ],
        [],
        SAYS_REVISE,
    ),
    ("into another text", judged(REVISE, digest="before"), [MitigatedPlan("r1", "another")], NEVER),
    ("after another run", judged(REVISE, digest="before"), [MitigatedPlan("r2", "plan")], NEVER),
    ("of a RETHINK", judged(RETHINK, digest="before"), [MitigatedPlan("r1", "plan")], NEVER),
    ("of what waits", judged(None, digest="before"), [MitigatedPlan("r1", "plan")], NEVER),
    (
        "taken in, then judged anew",
        [*judged(REVISE, digest="before"), PlanJudgement("r2", "plan", RETHINK)],
        [MitigatedPlan("r1", "plan")],
        "the plan gate says RETHINK (run r2)",
    ),
    ("what it was before stays to be revised", judged(REVISE), [MitigatedPlan("r1", "revised")], SAYS_REVISE),
    (
        "one of two runs said REVISE",
        judged(RETHINK, REVISE, digest="before"),
        [MitigatedPlan("r1", "plan"), MitigatedPlan("r2", "plan")],
        "",
    ),
]


@each_row(("said", "taken_in", "why"), [row[1:] for row in TABLE])
def test_the_last_word_about_these_bytes_counts(
    said: list[PlanJudgement], taken_in: list[MitigatedPlan], why: str
) -> None:
    refused = explain_not_admitted("plan", said, taken_in)
    assert (refused.why if refused else "") == why


@each_row(
    ("said", "next_step"),
    [
        (PlanJudgement("r1", "plan", PROCEED, has_mitigations=True), "proofstone verify-plan --apply-mitigations r1"),
        (PlanJudgement("r1", "plan", None), "proofstone verify-plan --resume r1"),
        (PlanJudgement("r1", "plan", REVISE, has_mitigations=True), "proofstone verify-plan --apply-mitigations r1"),
        (PlanJudgement("r1", "plan", REVISE, has_mitigations=True, is_forced=True), ""),
        (PlanJudgement("r1", "plan", REVISE), ""),
        (PlanJudgement("r1", "plan", RETHINK, has_mitigations=True), ""),
    ],
)
def test_whoever_is_refused_is_told_what_to_do_if_a_command_does_it(said: PlanJudgement, next_step: str) -> None:
    refused = explain_not_admitted("plan", [said], [])
    assert refused is not None
    assert refused.next_command.startswith(next_step) if next_step else not refused.next_command
