"""Decide who may accept findings, which findings an acceptance covers, and how an acceptance is described.

A finding is accepted by a person. Who asks for it decides how it counts:

| first match                                    | acceptance                                      |
|------------------------------------------------|-------------------------------------------------|
| the variables of a known coding agent are set  | refused                                         |
| the caller runs inside a sandbox of Proofstone | refused                                         |
| the identity of an approver is passed in       | `approver`: it counts with that name            |
| there is a terminal                            | `interactive`: a question there is answered     |
| otherwise                                      | refused: nobody can be asked                    |

The settings of the base accept findings too (`setting`), whoever runs the check: a person committed them before.

This is no security boundary. Whoever owns the account can unset a variable or open a terminal. The record says how each
acceptance was given, and `hook.accepts` says which kinds count for a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.rules.compare import ResultComparison
from proofstone.check.rules.outcome import ACCEPTABLE_RULES, TEST_CHANGE_RULES
from proofstone.common.models import Acceptance, AcceptanceMethod, Finding, Severity

MIN_REASON_LENGTH: Final = 8
"""The least number of characters of a reason. Anything shorter says nothing."""
_DISPUTE_HINT: Final = (
    'if a test, a rule or a requirement is wrong, dispute it: `proofstone dispute SUBJECT --because "…"` puts it to a '
    "person"
)


@dataclass(frozen=True)
class AcceptanceFacts:
    """The facts about the caller that decide whether it may accept findings."""

    agent: str = ""
    """The coding agent in whose shell the caller runs; empty if it is none."""
    in_sandbox: bool = False
    has_terminal: bool = False
    """Whether a person can be asked at a terminal."""
    approver: str = ""
    """The identity of an approver, if the caller passed one in."""


@dataclass(frozen=True)
class AcceptanceRuling:
    """Whether the caller may accept findings, and how that counts."""

    method: AcceptanceMethod | None
    refusal: str = ""
    """Why it may not."""
    hint: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.method is not None


def rule_on_acceptance(facts: AcceptanceFacts) -> AcceptanceRuling:
    """Decide whether the caller may accept findings, or decide a dispute."""
    if facts.agent:
        return AcceptanceRuling(
            None, f"this is the shell of {facts.agent}, and only a person may decide this", _DISPUTE_HINT
        )
    if facts.in_sandbox:
        return AcceptanceRuling(
            None, "this runs inside a sandbox of Proofstone, and only a person may decide this", _DISPUTE_HINT
        )
    if facts.approver:
        return AcceptanceRuling(AcceptanceMethod.APPROVER)
    if facts.has_terminal:
        return AcceptanceRuling(AcceptanceMethod.INTERACTIVE)
    return AcceptanceRuling(
        None,
        "there is no terminal at which a person could be asked",
        f"a person runs it in a terminal; the manual says how CI passes on what a person approved; {_DISPUTE_HINT}",
    )


def is_reason_sufficient(reason: str) -> bool:
    """Return whether a reason says enough to be recorded."""
    return len(reason.strip()) >= MIN_REASON_LENGTH


def expand_test_changes(reason: str) -> dict[str, str]:
    """Return every rule about changed tests with this reason; nothing if there is no reason."""
    return dict.fromkeys(sorted(TEST_CHANGE_RULES), reason) if reason else {}


def build_acceptances(reasons: Mapping[str, str], by: str, method: AcceptanceMethod) -> tuple[Acceptance, ...]:
    """Return an acceptance for each rule with its reason."""
    return tuple(
        Acceptance(rule=rule, reason=reason, accepted_by=by, method=method) for rule, reason in reasons.items()
    )


def accepts_finding(acceptance: Acceptance, finding: Finding) -> bool:
    """Return whether the acceptance covers the finding. Findings of some rules nobody can accept."""
    if acceptance.rule != finding.rule or finding.rule not in ACCEPTABLE_RULES:
        return False
    return not acceptance.subject or _covers(acceptance.subject, finding)


def are_losses_accepted(comparison: ResultComparison, accepted: Sequence[Acceptance]) -> bool:
    """Return whether a person accepted the loss of every test that ran on the base and does not run now."""
    lost = [("test-vanished", test) for test in comparison.vanished]
    lost += [("test-skipped", test) for test in comparison.newly_skipped]
    return bool(lost) and all(_accepts_loss(accepted, rule, test) for rule, test in lost)


def _accepts_loss(accepted: Sequence[Acceptance], rule: str, test: str) -> bool:
    return any(
        acceptance.rule == rule and (not acceptance.subject or _names_test(acceptance.subject, test))
        for acceptance in accepted
    )


def is_about(finding: Finding, subject: str) -> bool:
    """Return whether a finding is about the subject: a rule, a file, a check or a test."""
    if subject in (finding.rule, finding.path, finding.check):
        return True
    return any(_names_test(subject, test) for test in _list_tests(finding))


def _covers(subject: str, finding: Finding) -> bool:
    """Return whether the subject is all that the finding is about: one finding may be about many tests."""
    if subject in (finding.rule, finding.path, finding.check):
        return True
    return all(_names_test(subject, test) for test in _list_tests(finding))


def _list_tests(finding: Finding) -> tuple[str, ...]:
    """Return the tests that a finding is about. One that lists none may begin with the name of its test."""
    return finding.tests or (finding.detail.partition(": ")[0],)


def _names_test(subject: str, test: str) -> bool:
    """Return whether the subject is this test: by its id, its id without parameters, or its file."""
    bare = test.partition("[")[0]
    return subject in (test, bare, test.partition("::")[0]) or bare.endswith(f"::{subject}")


def list_disputed_rules(subject: str) -> tuple[str, ...]:
    """Return the rules whose findings about a disputed subject a person accepts by agreeing: the rule itself, or the
    rules about changed tests."""
    if subject in ACCEPTABLE_RULES:
        return (subject,)
    return tuple(sorted(TEST_CHANGE_RULES))


def is_serious(finding: Finding) -> bool:
    """Return whether the finding refuses the change."""
    return finding.severity is not Severity.MINOR


def find_acceptable(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that refuse the change and that a person may accept."""
    return tuple(finding for finding in findings if is_serious(finding) and finding.rule in ACCEPTABLE_RULES)


def is_acceptance_enough(findings: Iterable[Finding]) -> bool:
    """Return whether nothing but acceptable findings refuses the change."""
    serious = [finding for finding in findings if is_serious(finding)]
    return bool(serious) and all(finding.rule in ACCEPTABLE_RULES for finding in serious)


def downgrade_accepted(findings: Iterable[Finding], acceptances: Sequence[Acceptance]) -> list[Finding]:
    """Return the findings, with those that a person accepted downgraded to `minor`."""
    return [
        finding.model_copy(update={"severity": Severity.MINOR})
        if any(accepts_finding(acceptance, finding) for acceptance in acceptances)
        else finding
        for finding in findings
    ]


def select_used(acceptances: Iterable[Acceptance], findings: Sequence[Finding]) -> tuple[Acceptance, ...]:
    """Return the acceptances that cover a finding which refuses the change."""
    return tuple(
        acceptance
        for acceptance in acceptances
        if any(is_serious(finding) and accepts_finding(acceptance, finding) for finding in findings)
    )


_METHOD_WORDS: Final[Mapping[AcceptanceMethod, str]] = {
    AcceptanceMethod.INTERACTIVE: "at a terminal",
    AcceptanceMethod.SETTING: "by a setting of the base",
    AcceptanceMethod.APPROVER: "as the approver that was passed in",
}


def describe_acceptance(acceptance: Acceptance) -> str:
    """Describe an acceptance on one line: what, who, how and why. No reason can look like a line of its own."""
    what = f"{acceptance.rule} ({acceptance.subject})" if acceptance.subject else acceptance.rule
    reason = " ".join(acceptance.reason.split())
    return f"{what}: accepted by {_one_line(acceptance.accepted_by)} {_METHOD_WORDS[acceptance.method]}: {reason}"


def format_acceptance_trailers(acceptances: Iterable[Acceptance]) -> str:
    """Return a trailer of a commit message for each acceptance."""
    lines = dict.fromkeys(f"Proofstone-Accepted: {describe_acceptance(acceptance)}\n" for acceptance in acceptances)
    return "".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())
