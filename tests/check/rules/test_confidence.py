"""How sure an outcome is, why it is not surer, and what would raise it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from proofstone.check.models import CheckKind, CheckLine, MutantResult, MutantStatus, TestStrength
from proofstone.check.rules.confidence import CheckGrounds, list_failing_without, rate_check
from proofstone.common.models import (
    Acceptance,
    AcceptanceMethod,
    Assurance,
    Confidence,
    ConfidenceReason,
    Finding,
    Outcome,
    Severity,
    Verdict,
    rate_confidence,
)
from tests.rows import each_row

FLAKY = Finding(layer="L3", rule="flaky", severity=Severity.MINOR, detail="t: failed, then passed", fix="mend it")
ACCEPTED = Acceptance(rule="hard-exit", reason="a daemon", accepted_by="ann", method=AcceptanceMethod.INTERACTIVE)
GAP = ConfidenceReason(reason="tests: no canary", remedy="plant one")
UNCOVERED = ConfidenceReason(reason="tests: no test covers it", remedy="add one")


def line(name: str = "tests:pytest", **fields: object) -> CheckLine:
    values: dict[str, Any] = {
        "name": name,
        "kind": CheckKind.TESTS,
        "tier": 2,
        "verdict": Verdict.PASS,
        "baseline": Verdict.PASS,
        "duration_ms": 1,
        "reused": False,
        "required": True,
        "decides": True,
        "reason": "",
        "command": "pytest",
        "assurance": Assurance.BUBBLEWRAP,
        "tests": 3,
        "seq": None,
        "artifact": None,
        **fields,
    }
    return CheckLine(**values)


def lint(**fields: object) -> CheckLine:
    reason = "ruff is not installed (pip install ruff)"
    missing = {"verdict": Verdict.UNVERIFIABLE, "reason": reason, "remedy": "pip install ruff", "assurance": None}
    return line("lint:ruff", kind=CheckKind.LINT, required=False, tests=None, **{**missing, **fields})


FRAMES = Finding(layer="L6", rule="stack-reading", severity=Severity.MINOR, detail="_getframe", fix="pass it")
SPECIAL = Finding(layer="L6", rule="special-casing", severity=Severity.MINOR, detail="900 for 10", fix="compute it")
MUTANT = MutantResult(path="a.py", line=1, operator="boundary", before="a < b", after="a <= b")
WEAK = TestStrength(
    mutants=(
        MUTANT.model_copy(update={"status": MutantStatus.KILLED}),
        MUTANT.model_copy(update={"status": MutantStatus.SURVIVED, "line": 2}),
    )
)
WEAK_REASON = "the tests notice 1 of 2 mistakes in the changed lines (50 %, and 51 % are needed): a.py:2 `<` → `<=`"
WEAK_REMEDY = "add assertions that fail with the mistakes that are listed as not noticed"
HELD_OUT = line("heldout", kind=CheckKind.HELD_OUT, tests=None)
SURE = CheckGrounds(Outcome.PASSED, "", [line()], failing_without=["test_a"])
HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW
UNRUN = "lint:ruff could not run: ruff is not installed"
SYNTAX = line("syntax", kind=CheckKind.SYNTAX, verdict=Verdict.UNVERIFIABLE, reason="no language", assurance=None)
ROWS: list[tuple[str, dict[str, Any], Confidence | None, list[tuple[str, str]]]] = [
    ("all of it", {}, HIGH, []),
    ("nothing to check", {"outcome": Outcome.NOTHING_TO_CHECK, "failing_without": ()}, None, []),
    (
        "failed",
        {"outcome": Outcome.FAILED, "reason": "why"},
        LOW,
        [("why", "resolve the findings and the failing checks")],
    ),
    (
        "unverifiable for want of a tool",
        {
            "outcome": Outcome.UNVERIFIABLE,
            "reason": "why",
            "checks": [line(verdict=Verdict.UNVERIFIABLE, remedy="pip install pytest")],
        },
        LOW,
        [("why", "pip install pytest")],
    ),
    ("disputed", {"outcome": Outcome.NEEDS_DECISION, "reason": "why"}, LOW, [("why", "a person decides")]),
    (
        "a weaker sandbox",
        {"checks": [line(), line("b", assurance=Assurance.LANDLOCK)]},
        MEDIUM,
        [("checks ran in a weaker sandbox (landlock instead of bubblewrap)", "proofstone doctor")],
    ),
    (
        "nothing was executed, so no sandbox is to blame",
        {"checks": [], "documentation_only": True},
        MEDIUM,
        [("no check executed anything of the project", "--verify")],
    ),
    ("a linter that is not installed", {"checks": [line(), lint()]}, MEDIUM, [(UNRUN, "pip install ruff")]),
    ("the syntax of an unknown language", {"checks": [line(), SYNTAX]}, MEDIUM, [("syntax could not run", "")]),
    ("the syntax of prose", {"checks": [line(), SYNTAX], "documentation_only": True}, HIGH, []),
    (
        "a check that does not decide fails",
        {"checks": [line(), lint(verdict=Verdict.FAIL, reason="2 complaints", decides=False)]},
        MEDIUM,
        [("lint:ruff fails, and the settings let it not decide: 2 complaints", "make lint:ruff pass")],
    ),
    (
        "a check that could not run on the base",
        {"checks": [line(baseline=Verdict.UNVERIFIABLE)]},
        MEDIUM,
        [("tests:pytest could not run on the base", "--base")],
    ),
    ("a layer without an answer", {"gaps": [GAP]}, MEDIUM, [("tests: no canary", "plant one")]),
    ("a flaky test", {"findings": [FLAKY]}, MEDIUM, [("flaky: t: failed, then passed", "mend it")]),
    ("frames are read", {"findings": [FRAMES]}, MEDIUM, [("stack-reading: _getframe", "pass it")]),
    ("frames are read, with a held-out check", {"findings": [FRAMES], "checks": [line(), HELD_OUT]}, HIGH, []),
    ("weak tests", {"strength": WEAK, "strength_threshold": 51}, MEDIUM, [(WEAK_REASON, WEAK_REMEDY)]),
    ("tests at the threshold", {"strength": WEAK, "strength_threshold": 50}, HIGH, []),
    ("a special case", {"findings": [SPECIAL]}, MEDIUM, [("special-casing: 900 for 10", "compute it")]),
    ("a special case, with a held-out check", {"findings": [SPECIAL], "checks": [line(), HELD_OUT]}, HIGH, []),
    (
        "a special case, with a held-out check that could not run",
        {"findings": [SPECIAL], "checks": [line(), HELD_OUT.model_copy(update={"verdict": Verdict.UNVERIFIABLE})]},
        MEDIUM,
        [("heldout could not run", ""), ("special-casing: 900 for 10", "compute it")],
    ),
    (
        "an accepted finding",
        {"accepted": [ACCEPTED]},
        MEDIUM,
        [("hard-exit: accepted by ann at a terminal: a daemon", "instead of accepting")],
    ),
    ("an amended scope", {"amended": ["auth.py"]}, MEDIUM, [("auth.py was added to the scope", "plan the change")]),
    ("no test fails without it", {"failing_without": ()}, MEDIUM, [("no test was seen to fail", "add a test")]),
    (
        "a layer knows better why no test fails without it",
        {"failing_without": (), "uncovered": [UNCOVERED]},
        MEDIUM,
        [("tests: no test covers it", "add one")],
    ),
    ("one check covers it, another does not", {"uncovered": [UNCOVERED]}, HIGH, []),
    ("only tests changed", {"failing_without": (), "source_changed": False}, MEDIUM, [("touches no source", "")]),
    ("only tests changed, and one passes now", {"source_changed": False}, MEDIUM, [("touches no source", "")]),
    ("documentation needs no test", {"failing_without": (), "documentation_only": True}, HIGH, []),
    (
        "every reason is named",
        {"checks": [line(), lint()], "gaps": [GAP], "failing_without": ()},
        MEDIUM,
        [(UNRUN, ""), ("tests: no canary", ""), ("no test was seen", "")],
    ),
]


@each_row(("what", "grounds", "confidence", "reasons"), ROWS)
def test_each_condition_of_high_confidence(
    what: str, grounds: dict[str, Any], confidence: Confidence | None, reasons: list[tuple[str, str]]
) -> None:
    rating = rate_check(replace(SURE, **grounds))
    assert rating.confidence is confidence, what
    assert len(rating.reasons) == len(reasons), rating.reasons
    for found, (reason, remedy) in zip(rating.reasons, reasons, strict=True):
        assert reason in found.reason
        assert remedy in found.remedy


def test_a_check_without_ids_that_fails_on_the_base_is_a_test_that_fails_without_the_change() -> None:
    made = line("tests:make", tests=None, baseline=Verdict.FAIL)
    by_id = line(baseline=Verdict.FAIL)
    assert list_failing_without(["b"], ["a"], [made, by_id, lint(baseline=Verdict.FAIL)]) == ["a", "b", "tests:make"]


def test_what_is_low_does_not_list_what_would_be_medium() -> None:
    assert rate_confidence(["grave"], ["slight"]) == (LOW, (ConfidenceReason(reason="grave"),))
    assert rate_confidence([], ["slight", "slight", GAP]) == (MEDIUM, (ConfidenceReason(reason="slight"), GAP))
    assert rate_confidence() == (HIGH, ())
