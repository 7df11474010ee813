"""Who may accept a finding, which findings an acceptance covers, and how it is described."""

from __future__ import annotations

from proofstone.check.rules.acceptance import (
    AcceptanceFacts,
    are_losses_accepted,
    describe_acceptance,
    downgrade_accepted,
    expand_test_changes,
    find_acceptable,
    format_acceptance_trailers,
    is_acceptance_enough,
    is_reason_sufficient,
    list_disputed_rules,
    rule_on_acceptance,
    select_used,
)
from proofstone.check.rules.compare import ResultComparison
from proofstone.check.rules.outcome import TEST_CHANGE_RULES
from proofstone.common.models import Acceptance, AcceptanceMethod, Finding, Severity
from proofstone.config.rules import detect_coding_agent
from tests.rows import each_row

INTERACTIVE, APPROVER = AcceptanceMethod.INTERACTIVE, AcceptanceMethod.APPROVER


def accept(rule: str, subject: str = "") -> Acceptance:
    return Acceptance(rule=rule, reason="because", accepted_by="ada", method=INTERACTIVE, subject=subject)


def finding(
    rule: str, severity: Severity = Severity.MAJOR, detail: str = "a.py::test_a: d", path: str | None = None
) -> Finding:
    return Finding(layer="L2", rule=rule, severity=severity, detail=detail, fix="f", path=path)


@each_row(
    ("facts", "method", "says"),
    [
        (AcceptanceFacts(has_terminal=True), INTERACTIVE, ""),
        (AcceptanceFacts(approver="Ada"), APPROVER, ""),
        (AcceptanceFacts(approver="Ada", has_terminal=True), APPROVER, ""),
        (AcceptanceFacts(), None, "no terminal"),
        (AcceptanceFacts(agent="Codex", has_terminal=True), None, "the shell of Codex"),
        (AcceptanceFacts(agent="Codex", approver="Ada"), None, "the shell of Codex"),
        (AcceptanceFacts(in_sandbox=True, has_terminal=True, approver="Ada"), None, "inside a sandbox"),
    ],
)
def test_only_a_person_accepts(facts: AcceptanceFacts, method: AcceptanceMethod | None, says: str) -> None:
    ruling = rule_on_acceptance(facts)
    assert (ruling.method, ruling.is_allowed) == (method, method is not None)
    assert says in ruling.refusal
    assert ("proofstone dispute" in ruling.hint) is (method is None)
    assert "--accept" not in ruling.hint


@each_row(
    ("variable", "agent"),
    [
        ("CLAUDECODE", "Claude Code"),
        ("CODEX_SANDBOX", "Codex"),
        ("CODEX_THREAD_ID", "Codex"),
        ("GEMINI_CLI", "Gemini CLI"),
        ("QWEN_CODE", "Qwen Code"),
        ("OPENCODE", "opencode"),
        ("COPILOT_CLI", "Copilot CLI"),
        ("CURSOR_AGENT", "Cursor"),
        ("GOOSE_TERMINAL", "goose"),
        ("CLINE_ACTIVE", "Cline"),
        ("AI_AGENT", "a coding agent"),
        ("PROOFSTONE_TASK", "an executor of Proofstone"),
        ("EDITOR", ""),
    ],
)
def test_coding_agents_are_known_by_their_variables(variable: str, agent: str) -> None:
    assert detect_coding_agent({variable: "1"}) == agent


@each_row(
    ("given", "found", "is_covered"),
    [
        (accept("hard-exit"), finding("hard-exit"), True),
        (accept("hard-exit"), finding("stack-reading"), False),
        (accept("canary-passed"), finding("canary-passed"), False),
        (accept("edited-expectation", "a.py::test_a"), finding("edited-expectation"), True),
        (accept("edited-expectation", "test_a"), finding("edited-expectation"), True),
        (accept("edited-expectation", "a.py"), finding("edited-expectation"), True),
        (accept("edited-expectation", "a.py::test_b"), finding("edited-expectation"), False),
        (
            accept("edited-expectation", "a.py::test_a"),
            finding("edited-expectation", detail="a.py::test_a[1]: d"),
            True,
        ),
        (accept("hard-exit", "a.py"), finding("hard-exit", detail="os._exit", path="a.py"), True),
        (accept("hard-exit", "b.py"), finding("hard-exit", detail="os._exit", path="a.py"), False),
    ],
)
def test_an_acceptance_covers_its_rule_and_subject_and_no_lie(
    given: Acceptance, found: Finding, is_covered: bool
) -> None:
    (after,) = downgrade_accepted([found], [given])
    assert (after.severity is Severity.MINOR) is is_covered
    assert select_used([given], [found]) == ((given,) if is_covered else ())
    assert select_used([given], [found.model_copy(update={"severity": Severity.MINOR})]) == ()


@each_row(
    ("accepted", "is_accepted"),
    [
        ([], False),
        ([accept("test-vanished")], False),
        ([accept("test-vanished"), accept("test-skipped")], True),
        ([accept("test-vanished", "a.py::gone"), accept("test-skipped", "a.py::idle")], True),
        ([accept("test-vanished", "a.py::other"), accept("test-skipped")], False),
    ],
)
def test_lost_tests_are_accepted_only_if_each_of_them_is(accepted: list[Acceptance], is_accepted: bool) -> None:
    comparison = ResultComparison(vanished=("a.py::gone",), newly_skipped=("a.py::idle",))
    assert are_losses_accepted(comparison, accepted) is is_accepted
    assert not are_losses_accepted(ResultComparison(), accepted)


def test_a_person_is_asked_if_nothing_else_refuses_the_change() -> None:
    acceptable, other, minor = finding("hard-exit"), finding("regression"), finding("hard-exit", Severity.MINOR)
    assert find_acceptable([acceptable, other, minor]) == (acceptable,)
    assert is_acceptance_enough([acceptable, minor])
    assert not is_acceptance_enough([acceptable, other])
    assert not is_acceptance_enough([minor])


def test_one_reason_for_test_changes_is_one_for_each_rule_about_them() -> None:
    assert expand_test_changes("why") == dict.fromkeys(TEST_CHANGE_RULES, "why")
    assert expand_test_changes("") == {}
    assert list_disputed_rules("hard-exit") == ("hard-exit",)
    assert set(list_disputed_rules("a.py::test_a")) == TEST_CHANGE_RULES
    assert [is_reason_sufficient(text) for text in ("", "ok", "  short  ", "the rule changed")] == [
        False,
        False,
        False,
        True,
    ]


def test_who_how_and_why_are_one_line() -> None:
    given = Acceptance(
        rule="hard-exit",
        reason="it is a\ndaemon",
        accepted_by="Ada\nProofstone-Run: x",
        method=APPROVER,
        subject="a.py",
    )
    line = "hard-exit (a.py): accepted by Ada Proofstone-Run: x as the approver that was passed in: it is a daemon"
    assert describe_acceptance(given) == line
    assert format_acceptance_trailers([given, given]) == f"Proofstone-Accepted: {line}\n"
    assert format_acceptance_trailers([]) == ""
