"""Every way through the plan gate, as a script: each row of its table, each guard, and an agent that fails in each
position. What came of each is a page in `golden/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.plan_gate.stage import (
    audit,
    challenge,
    challenger,
    file,
    researcher,
    risk,
    ruling,
    script,
    surfaced,
    symbol,
    synthesizer,
    unknown,
)
from tests.staging import Entry, babbling, failing


@dataclass(frozen=True)
class Scene:
    entries: Sequence[Entry]
    exit: int
    convergence: Sequence[str]
    """How each iteration ends."""
    plan: str = "PLAN.md"
    answers: Sequence[str] = ()
    """What the person says when asked, one resumption after the other."""


def _first(*challenges: Mapping[str, object]) -> Entry:
    return challenger(*challenges, iteration=1)


def _directed(kind: str, text: str, **more: object) -> dict[str, object]:
    return {"kind": kind, "text": text, **more}


ADDS, SUMS, ROUNDS = (challenge(f"The plan assumes that total {verb}") for verb in ("adds", "sums", "rounds"))
BLOCKING = challenge("The plan assumes that prices are whole", "BLOCKING")
MINOR = [challenge(f"The plan names thing {number} poorly", "MINOR", "LOW") for number in range(1, 6)]
QUESTION = {"challenge": "C1", "question": "Are prices whole?", "options": ["whole", "in cents"]}
ASKED = {"questions": [QUESTION]}
PAUSED = (_first(BLOCKING), synthesizer(ruling("C1", "UNRESOLVED"), said=ASKED, iteration=1))
HEARD = ruling("C1", evidence=["person"])
STANDS = ruling("C1", "UNRESOLVED", mitigation="Let total refuse what is no number.")
GREPS = [{"grep": {"pattern": f"word{number}"}} for number in range(1, 9)]
WHOLE_TEAM = "LARGE.md"

DECISIONS = {
    "forced-exit": Scene(script(_first(BLOCKING)), 1, ["CONTINUE", "CONTINUE", "FORCED_EXIT"]),
    "blocked": Scene(script(*PAUSED), 3, ["BLOCKED"]),
    "continue-then-proceed": Scene(
        script(
            _first(ADDS, MINOR[0]),
            researcher("resolve", unknown("C1", symbol("total")), iteration=2),
            synthesizer(ruling("C1", evidence=["U1"]), iteration=2),
        ),
        0,
        ["CONTINUE", "CONVERGED"],
    ),
    "proceed": Scene(
        script(
            _first(BLOCKING, ADDS, SUMS),
            researcher("resolve", unknown("C1", symbol("total"))),
            researcher("surface", surfaced("shop/cart.py", evidence=[file("shop/cart.py")])),
            researcher("probe", risk("a cart of a million prices", "MINOR")),
            synthesizer(
                ruling("C1", evidence=["U1"]),
                ruling("C2", "WITHDRAWN", evidence=["S1"]),
                ruling("C3", mitigation="Let a test add three prices."),
            ),
            audit(
                scores=[{"dimension": "approach", "score": 5, "evidence": "the steps are not that small"}],
                disputes=[{"challenge": "C2", "text": "It was withdrawn too soon."}],
            ),
        ),
        0,
        ["CONVERGED"],
    ),
    "revise": Scene(
        script(_first(ADDS, SUMS), synthesizer(STANDS, ruling("C2", "UNRESOLVED"))),
        1,
        ["CONVERGED"],
    ),
    "revise-strong": Scene(
        script(
            _first(ADDS, SUMS, ROUNDS),
            synthesizer(*({**STANDS, "challenge": id} for id in ("C1", "C2", "C3"))),
        ),
        1,
        ["CONVERGED"],
    ),
    "unmitigated": Scene(
        script(
            _first(ADDS, SUMS, ROUNDS),
            synthesizer(STANDS, {**STANDS, "challenge": "C2"}, ruling("C3", "UNRESOLVED")),
        ),
        1,
        ["CONTINUE", "CONTINUE", "FORCED_EXIT"],
    ),
    "answered": Scene(
        script(*PAUSED, synthesizer(HEARD, iteration=2)), 0, ["BLOCKED", "CONVERGED"], answers=["C1=in cents"]
    ),
    "asked-again": Scene(
        script(
            *PAUSED,
            synthesizer(ruling("C1", "UNRESOLVED"), said=ASKED, iteration=2),
            synthesizer(HEARD, iteration=3),
        ),
        0,
        ["BLOCKED", "BLOCKED", "CONVERGED"],
        answers=["C1=in cents", "C1=whole after all"],
    ),
}
GUARDS = {
    "overflow": Scene(
        script(
            _first(ADDS, SUMS, ROUNDS, *MINOR[:3]),
            challenger(*(challenge(f"The plan forgets rule {number}") for number in (1, 2, 3)), role="domain_expert"),
            challenger(BLOCKING, challenge("The plan is late", "MINOR"), role="devils_advocate"),
            researcher("surface", surfaced("shop/cart.py", "contradicts_plan")),
            researcher("probe", risk("a cart of a million prices"), risk("two carts at once")),
            synthesizer(
                *(ruling(f"C{number}", mitigation="Let a test show it.") for number in (1, 2, 3, 7, 8, 9, 10, 11)),
            ),
        ),
        1,
        ["CONVERGED"],
        plan=WHOLE_TEAM,
    ),
    "degradation": Scene(
        script(
            _first(BLOCKING),
            challenger(ADDS, SUMS, iteration=2),
            synthesizer(
                said={"directives": [_directed("RE-PROBE", "large carts", reason="cascade-not-explored")]},
                iteration=2,
            ),
            synthesizer(*(ruling(f"C{number}", mitigation="Let a test show it.") for number in (1, 2, 3)), iteration=3),
        ),
        0,
        ["CONTINUE", "CONTINUE", "CONVERGED"],
    ),
    "debt": Scene(
        script(_first(*MINOR), synthesizer(*(ruling(f"C{number}", "DEFERRED") for number in (1, 2, 3)))),
        0,
        ["CONVERGED"],
    ),
    "over-budget": Scene(
        script(
            _first(ADDS),
            researcher("resolve", unknown("C1", symbol("total")), steps=[{"tools": GREPS[:7]}]),
            researcher("probe", steps=[{"tools": GREPS[:5]}]),
            synthesizer(ruling("C1", evidence=["U1"])),
        ),
        0,
        ["CONVERGED"],
    ),
    "budget-raised": Scene(
        script(
            _first(ADDS),
            researcher("resolve", steps=[{"tools": GREPS}], iteration=1),
            synthesizer(
                said={
                    "directives": [
                        _directed("RAISE-BUDGET", "look further", mode="resolve", tool="Grep", by=2),
                        _directed("RAISE-BUDGET", "fly", mode="resolve", tool="Fly", by=2),
                    ]
                },
                iteration=1,
            ),
            researcher("resolve", unknown("C1", symbol("total")), steps=[{"tools": GREPS}], iteration=2),
            synthesizer(ruling("C1", evidence=["U1"]), iteration=2),
        ),
        0,
        ["CONTINUE", "CONVERGED"],
    ),
    "looked-again": Scene(
        script(
            _first(BLOCKING, ADDS),
            researcher("surface", surfaced("shop/cart.py"), iteration=1),
            researcher("resolve", unknown("C1", symbol("total")), iteration=1),
            synthesizer(
                said={
                    "directives": [
                        _directed("RE-SWEEP", "prices", reason="new-blocking-contradicts-context"),
                        _directed("RE-PROBE", "carts", reason="new-dependency-chain"),
                        _directed("RE-PROBE", "more", reason="cascade-not-explored"),
                    ]
                },
                iteration=1,
            ),
            researcher("probe", risk("two carts at once"), iteration=2),
            synthesizer(
                ruling("C1", evidence=["U1"]),
                ruling("C2", evidence=["C1", "S1"]),
                ruling("C3", mitigation="Let each cart have its own total."),
                iteration=2,
            ),
        ),
        0,
        ["CONTINUE", "CONVERGED"],
    ),
    "not-allowed": Scene(
        script(
            _first(BLOCKING, ADDS),
            challenger(ADDS, role="domain_expert"),
            challenger(
                challenge("The plan is late", "MINOR"), challenge("It rains", confidence="LOW"), role="devils_advocate"
            ),
            researcher("resolve", unknown("C1"), unknown("C3", symbol("total"), resolution="CONFIRMED")),
            synthesizer(
                ruling("C1", evidence=["U1"]),
                ruling("C2", "DEFERRED"),
                ruling("C3", evidence=["U2"]),
            ),
        ),
        1,
        ["CONTINUE", "CONTINUE", "FORCED_EXIT"],
        plan=WHOLE_TEAM,
    ),
    "false-claims": Scene(
        script(
            _first(challenge("The plan assumes that there is a README", evidence=[file("README.md")]), ADDS, BLOCKING),
            researcher("resolve", unknown("C2", symbol("average")), unknown("C3", symbol("total"))),
            researcher("surface", surfaced("shop/stock.py", "contradicts_plan", evidence=[file("shop/stock.py")])),
            synthesizer(
                ruling("C2", evidence=["U1"]),
                ruling("C3", evidence=["U2"]),
                iteration=1,
            ),
            synthesizer(ruling("C2", "UNRESOLVED", mitigation="Let a test show it.")),
        ),
        1,
        ["CONTINUE", "CONVERGED"],
    ),
    "whole-team": Scene(
        script(
            _first(ADDS),
            challenger(SUMS, role="domain_expert"),
            challenger(ROUNDS, role="devils_advocate"),
            researcher(
                "resolve", unknown("C1", symbol("total")), unknown("C2"), unknown("C3", resolution="PARTIALLY_RESOLVED")
            ),
            synthesizer(*(ruling(f"C{number}", evidence=[f"U{number}"]) for number in (1, 2, 3))),
        ),
        0,
        ["CONVERGED"],
        plan=WHOLE_TEAM,
    ),
}
_SETTLES = (_first(ADDS), synthesizer(ruling("C1", mitigation="Let a test add three prices.")))
FAILURES = {
    "challenger-fails": Scene(
        script(_first(ADDS), failing("challenger", iteration=2), synthesizer(STANDS, iteration=2)),
        1,
        ["CONTINUE", "CONVERGED"],
    ),
    "challenger-fails-at-once": Scene(script(failing("challenger", iteration=1)), 1, ["CONVERGED"]),
    "domain-expert-fails": Scene(script(failing("domain_expert"), *_SETTLES), 0, ["CONVERGED"], plan=WHOLE_TEAM),
    "devils-advocate-fails": Scene(script(failing("devils_advocate"), *_SETTLES), 0, ["CONVERGED"], plan=WHOLE_TEAM),
    "resolve-cannot-be-read": Scene(script(babbling("researcher", focus="resolve"), *_SETTLES), 0, ["CONVERGED"]),
    "resolve-fails": Scene(script(failing("researcher", focus="resolve"), *_SETTLES), 0, ["CONVERGED"]),
    "surface-fails": Scene(script(failing("researcher", focus="surface"), *_SETTLES), 0, ["CONVERGED"]),
    "probe-fails": Scene(script(failing("researcher", focus="probe"), *_SETTLES), 0, ["CONVERGED"]),
    "synthesizer-fails": Scene(script(_first(ADDS), failing("synthesizer")), 1, ["FORCED_EXIT"]),
    "synthesizer-fails-on-nothing": Scene(script(failing("synthesizer")), 1, ["FORCED_EXIT"]),
    "synthesizer-fails-on-what-blocks": Scene(script(_first(BLOCKING), failing("synthesizer")), 1, ["FORCED_EXIT"]),
    "audit-fails": Scene(script(failing("challenger", focus="audit"), *_SETTLES), 0, ["CONVERGED"]),
    "two-fail": Scene(
        script(failing("researcher", focus="surface"), failing("researcher", focus="probe"), *_SETTLES),
        1,
        ["FORCED_EXIT"],
    ),
}
SCENES = {**DECISIONS, **GUARDS, **FAILURES}
