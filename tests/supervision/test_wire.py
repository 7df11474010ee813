"""Every line between brackets, as the seed and the definitions have it, and what agents make of it."""

from __future__ import annotations

import pytest

from proofstone.supervision.models.context import Ack, AckAction, ContextUpdate, DeltaLine, DeltaOperation
from proofstone.supervision.models.ladder import (
    Category,
    DeviationImpact,
    DocsStatus,
    MiniAnalysis,
    ReverifyLevel,
    SelfLocate,
)
from proofstone.supervision.models.messages import (
    ImpactChallenge,
    ImpactChallengeResponse,
    ImpactMessage,
    ImpactRejected,
    ImpactVerified,
    PlanApproved,
    PlanRejected,
    ProtocolMessage,
    ReverifyAnalysis,
    ReverifyRequest,
    ReverifyResponse,
    UnreadableMessage,
    WorkPlan,
)
from proofstone.supervision.models.understanding import ArtifactCitation, FileImpact, ImpactAnalysis, InterfaceClaim
from proofstone.supervision.rules.wire import MESSAGE_FORMS, read_messages, write_message
from tests.rows import each_row

QUESTION = "How does the rate limiting requirement change your implementation plan for the auth handler?"
ANSWER = (
    "Rate limiting requires adding middleware layer before auth handler. Original plan had auth handler as direct "
    "endpoint handler. New approach: auth handler delegates to rate limiter first. Affected files: src/auth/handler.py "
    "(original), src/auth/rate_limiter.py (NEW). Interface change: handler signature adds rate_config parameter."
)
MINI = """[REVERIFY-RESPONSE] Phase 6 | Level 3

## Abbreviated Re-IA
- RC-01 (Task Understanding): the auth handler, now behind the limiter
- RC-04 (File List): src/auth/handler.py, src/auth/rate_limiter.py (NEW)
- RC-07 (Downstream Chain): callers pass rate_config

## Change Summary
- Original IA claimed: the handler is the endpoint
- Current reality: the limiter comes first, as the new requirement asks
- Impact: MINOR_ADJUSTMENT"""
ANALYSIS = """[IMPACT-ANALYSIS] Phase 6 | Attempt 1/3

## Task Understanding
Tokens expire.

The second of three tasks.

## Upstream Context
- `design.md`: expiry is checked on read

## Files and Functions Impact Map
- `src/auth/handler.py`: `login`, `logout`
- `src/auth/rate_limiter.py` (NEW)

## Interface Contracts
- `src/auth/handler.py`: `login`: def login(user: str) -> Token
- `src/auth/rate_limiter.py`: `Limiter.allow` (NEW): def allow(self, key: str) -> bool

## Cross-Agent Impact
None.

## Risk
Old tokens."""

LINES: dict[str, ProtocolMessage] = {
    "[REVERIFY] Phase 6 | Level 1 | Target: implementer-1 | Reason: silence": ReverifyRequest(
        phase=6, level=ReverifyLevel.PING, target="implementer-1", reason="silence"
    ),
    "[REVERIFY] Phase 6 | Level 2 | Target: implementer-1 | Reason: scope change affects auth module | "
    f"Question: {QUESTION}": ReverifyRequest(
        phase=6,
        level=ReverifyLevel.QUESTION,
        target="implementer-1",
        reason="scope change affects auth module",
        question=QUESTION,
    ),
    "[REVERIFY] Phase 6 | Level 3 | Target: implementer-1 | Reason: deviation | "
    "Scope: Abbreviated IA (RC-01, RC-04, RC-07)": ReverifyRequest(
        phase=6, level=ReverifyLevel.ANALYSIS, target="implementer-1", reason="deviation"
    ),
    f"[REVERIFY-RESPONSE] Phase 6 | Level 2 | {ANSWER}": ReverifyResponse(
        phase=6, level=ReverifyLevel.QUESTION, content=ANSWER
    ),
    MINI: ReverifyAnalysis(
        phase=6,
        analysis=MiniAnalysis(
            task="the auth handler, now behind the limiter",
            files="src/auth/handler.py, src/auth/rate_limiter.py (NEW)",
            downstream="callers pass rate_config",
            claimed_before="the handler is the endpoint",
            reality="the limiter comes first, as the new requirement asks",
            impact=DeviationImpact.MINOR_ADJUSTMENT,
        ),
    ),
    "[SELF-LOCATE] Phase 6 | Task 2/3 | Step: write the handler | Progress: 40% | MCP: 7 | Docs: current": SelfLocate(
        phase=6, task=2, total=3, step="write the handler", progress=40, tool_calls=7, docs=DocsStatus.CURRENT
    ),
    '[CONTEXT-UPDATE] GC-v4 → GC-v5\nDelta: ADDED §Scope: new_requirement: "Rate limiting on auth endpoints"': (
        ContextUpdate(
            before=4,
            version=5,
            lines=(
                DeltaLine(
                    operation=DeltaOperation.ADDED,
                    section="Scope",
                    key="new_requirement",
                    text="Rate limiting on auth endpoints",
                ),
            ),
        )
    ),
    "[ACK-UPDATE] GC-v5 received. Items: 1/1. Impact: affects auth module I'm implementing. Action: PAUSE.": Ack(
        version=5, applied=1, total=1, impact="affects auth module I'm implementing", action=AckAction.PAUSE
    ),
    ANALYSIS: ImpactMessage(
        phase=6,
        attempt=1,
        of=3,
        analysis=ImpactAnalysis(
            task_understanding="Tokens expire.\n\nThe second of three tasks.",
            upstream=(ArtifactCitation(artifact="design.md", says="expiry is checked on read"),),
            files=(
                FileImpact(path="src/auth/handler.py", functions=("login", "logout")),
                FileImpact(path="src/auth/rate_limiter.py", new=True),
            ),
            interfaces=(
                InterfaceClaim(path="src/auth/handler.py", symbol="login", signature="def login(user: str) -> Token"),
                InterfaceClaim(
                    path="src/auth/rate_limiter.py",
                    symbol="Limiter.allow",
                    signature="def allow(self, key: str) -> bool",
                    new=True,
                ),
            ),
            cross_agent_impact="None.",
            risk="Old tokens.",
        ),
    ),
    "[IMPACT_VERIFIED]": ImpactVerified(),
    "[IMPACT_VERIFIED] Phase 6": ImpactVerified(phase=6),
    "[IMPACT_REJECTED]": ImpactRejected(),
    "[IMPACT_REJECTED] Phase 6 | Reason: RC-04 | RC-05": ImpactRejected(phase=6, reason="RC-04 | RC-05"),
    "[CHALLENGE] Phase 6 | Category: RIPPLE_TRACE | Question: Who calls login?": ImpactChallenge(
        phase=6, category=Category.RIPPLE_TRACE, question="Who calls login?"
    ),
    "[CHALLENGE-RESPONSE] Phase 6 | Only the router.\nNobody else.": ImpactChallengeResponse(
        phase=6, content="Only the router.\nNobody else."
    ),
    "[PLAN] Phase 6 | Files: src/auth/handler.py, src/auth/rate_limiter.py | Changes: limit first | Risk: 🟡 | "
    "Interface Impact: login takes rate_config": WorkPlan(
        phase=6,
        files=("src/auth/handler.py", "src/auth/rate_limiter.py"),
        changes="limit first",
        risk="🟡",
        interface_impact="login takes rate_config",
    ),
    "[APPROVED]": PlanApproved(),
    "[APPROVED] Phase 6": PlanApproved(phase=6),
    "[REJECTED]": PlanRejected(),
    "[REJECTED] Phase 6 | Reason: it hides a file": PlanRejected(phase=6, reason="it hides a file"),
}


@each_row("line", LINES)
@pytest.mark.seed("continuity", "levels")
def test_a_line_is_written_and_read_to_the_letter(line: str) -> None:
    assert write_message(LINES[line]) == line
    assert read_messages(line) == (LINES[line],)


@pytest.mark.seed("continuity", "format-strings")
def test_every_tag_has_its_line_here() -> None:
    assert {line[1:].split("]")[0] for line in LINES} == set(MESSAGE_FORMS)


SCENARIO = {
    "T+10:  User adds new requirement → Lead bumps GC-v4 → GC-v5": (),
    "T+12:  implementer-1: [ACK-UPDATE] GC-v5 received. Items: 1/1. Impact: affects auth module I'm implementing. "
    "Action: PAUSE.": (Ack,),
    "T+13:  Lead evaluates: rate limiting directly affects implementer-1's auth handler.\n"
    "       Triggers COA-4: [REVERIFY] Phase 6 | Level 2 | Target: implementer-1 | Reason: scope change affects auth "
    f"module | Question: {QUESTION}": (ReverifyRequest,),
    f"T+14:  implementer-1: [REVERIFY-RESPONSE] Phase 6 | Level 2 | {ANSWER}": (ReverifyResponse,),
    "T+15:  Lead evaluates: interface change detected (new parameter, new file).\n"
    "       → Lead updates task-context with rate limiting scope\n"
    '       → Lead sends: "Acknowledged. Update your [PLAN] to include rate_limiter.py. File ownership expanded."\n'
    "       → implementer-1 submits revised [PLAN] → Lead approves → work continues with updated scope": (),
}


@each_row(("told", "kinds"), SCENARIO.items())
@pytest.mark.seed("continuity", "scenario")
def test_the_seeds_scenario_is_read_as_it_is_told(told: str, kinds: tuple[type, ...]) -> None:
    found = read_messages(told)
    assert tuple(type(one) for one in found) == kinds
    assert all(one in LINES.values() for one in found)


@each_row(
    ("said", "meant"),
    [
        (
            "  [SELF-LOCATE]  Phase 6|Task 2 / 3|Step:write the handler|progress: 40 %|mcp: 7|Docs: Current",
            "[SELF-LOCATE] Phase 6 | Task 2/3 | Step: write the handler | Progress: 40% | MCP: 7 | Docs: current",
        ),
        (
            "I am here:\n`[SELF-LOCATE] Phase 6 | Task 2/3 | Step: write the handler | Progress: 40% | MCP: 7 | "
            "Docs: current`\nand go on.",
            "[SELF-LOCATE] Phase 6 | Task 2/3 | Step: write the handler | Progress: 40% | MCP: 7 | Docs: current",
        ),
        (
            "[SELF-LOCATE] Phase 6 | Docs: current | MCP: 7 | Task 2/3 | Step: a b c d e f g h i j k l | Progress: 40",
            "[SELF-LOCATE] Phase 6 | Task 2/3 | Step: a b c d e f g h i j | Progress: 40% | MCP: 7 | Docs: current",
        ),
        (
            "**[ACK-UPDATE]** GC-v5 received. Items: 1 / 1. Impact: none. Action: CONTINUE",
            "[ACK-UPDATE] GC-v5 received. Items: 1/1. Impact: none. Action: CONTINUE.",
        ),
        (
            "[PLAN] Phase 6\n  | Files: `a.py`, `b.py` (NEW)\n  | Changes: x\n  | Risk: medium\n"
            "  | Interface impact: none\nShall I?",
            "[PLAN] Phase 6 | Files: a.py, b.py | Changes: x | Risk: 🟡 | Interface Impact: none",
        ),
        (
            "[CONTEXT-UPDATE] GC-v1 -> GC-v2\n\n- REMOVED Scope: old: it is gone\n"
            '  CHANGED §Rules: style: "new"\n\nRead it.',
            '[CONTEXT-UPDATE] GC-v1 → GC-v2\nDelta: REMOVED §Scope: old: "it is gone"\n'
            'Delta: CHANGED §Rules: style: "new"',
        ),
        (
            "[REVERIFY-RESPONSE] Phase 6 | Level 2\nThe router calls it.",
            "[REVERIFY-RESPONSE] Phase 6 | Level 2 | The router calls it.",
        ),
        (
            "[REVERIFY-RESPONSE] Phase 6 | Level 3\n### Abbreviated re-IA\n1. **RC-01**: one,\n   wrapped\n"
            "2. RC-04: two\n3. RC-07 (Downstream): three\n### Change summary\n* original IA claimed: x\n"
            "* current reality: y\n* Impact: NONE, nothing changed\n\nI go on now.",
            "[REVERIFY-RESPONSE] Phase 6 | Level 3\n\n## Abbreviated Re-IA\n"
            "- RC-01 (Task Understanding): one, wrapped\n- RC-04 (File List): two\n"
            "- RC-07 (Downstream Chain): three\n\n## Change Summary\n"
            "- Original IA claimed: x\n- Current reality: y\n- Impact: NONE",
        ),
        (
            "[IMPACT-ANALYSIS] Phase 1 | Attempt 2/3\n# 1. Task understanding\nit\n# 2. Upstream\nNone.\n"
            "# 3. Files\nThese:\n- src/a.py (NEW) — `f`\n- b.py\n# 4. Interfaces / contracts\n- n/a\n"
            "# 5. Cross-agent impact:\n# 6. Risk assessment\n# 7. Notes\nmore",
            "[IMPACT-ANALYSIS] Phase 1 | Attempt 2/3\n\n## Task Understanding\nit\n\n## Upstream Context\n\n"
            "## Files and Functions Impact Map\n- `src/a.py` (NEW): `f`\n- `b.py`\n\n## Interface Contracts\n\n"
            "## Cross-Agent Impact\n\n## Risk",
        ),
    ],
)
def test_what_differs_in_nothing_that_matters_is_read_as_the_same(said: str, meant: str) -> None:
    (found,) = read_messages(said)
    assert not isinstance(found, UnreadableMessage), found
    assert write_message(found) == meant


@each_row(
    ("said", "tag", "why"),
    [
        ("[REVERIFY] Level 1", "REVERIFY", "`Phase` is missing"),
        ("[REVERIFY] Phase 6 | Level 4 | Target: x | Reason: y", "REVERIFY", "there is no level 4"),
        ("[REVERIFY] Phase 6 | Level 2 | Target: x | Reason: y", "REVERIFY", "level 2 has a question"),
        ("[REVERIFY-RESPONSE] Level 2 | yes", "REVERIFY-RESPONSE", "`Phase` with its number is missing"),
        ("[REVERIFY-RESPONSE] Phase 1 | Level 2 |", "REVERIFY-RESPONSE", "content"),
        ("[REVERIFY-RESPONSE] Phase 1 | Level 3\nAll is well.", "REVERIFY-RESPONSE", "RC-01 (Task Understanding)"),
        (
            MINI.replace("Impact: MINOR_ADJUSTMENT", "Impact: {NONE | MINOR_ADJUSTMENT | SIGNIFICANT_DEVIATION}"),
            "REVERIFY-RESPONSE",
            "`Impact:` is one of",
        ),
        (
            "[SELF-LOCATE] Phase 6 | Task: two | Step: x | Progress: 1% | MCP: 1 | Docs: stale",
            "SELF-LOCATE",
            "`Task` has the form",
        ),
        (
            "[SELF-LOCATE] Phase 6 | Task 1/2 | Step: x | Progress: much | MCP: 1 | Docs: stale",
            "SELF-LOCATE",
            "`Progress` is a number",
        ),
        (
            "[SELF-LOCATE] Phase 6 | Task 1/2 | Step: x | Progress: 101% | MCP: 1 | Docs: stale",
            "SELF-LOCATE",
            "progress:",
        ),
        (
            "[SELF-LOCATE] Phase 6 | Task 1/2 | Step: x | Progress: 1% | MCP: 1 | Docs: fine",
            "SELF-LOCATE",
            "`Docs` is one of current, stale, missing",
        ),
        ("[CONTEXT-UPDATE] version 5", "CONTEXT-UPDATE", "the old and the new version"),
        ("[CONTEXT-UPDATE] GC-v5 → GC-v4", "CONTEXT-UPDATE", "does not follow"),
        ("[CONTEXT-UPDATE] GC-v4 → GC-v5\nDelta: something", "CONTEXT-UPDATE", "`Delta: something` must be one of"),
        ("[ACK-UPDATE] GC-v5 received. Action: PAUSE.", "ACK-UPDATE", "must all be given"),
        ("[ACK-UPDATE] GC-v5 received. Items: 1/1. Impact: x. Action: RUN.", "ACK-UPDATE", "`Action` is one of"),
        (
            "[IMPACT-ANALYSIS] Phase 1 | Attempt 1/3\n## Risk\nx",
            "IMPACT-ANALYSIS",
            "section `## Task Understanding`",
        ),
        (
            ANALYSIS.replace("- `design.md`: expiry is checked on read", "see the design"),
            "IMPACT-ANALYSIS",
            "under `## Upstream Context`, each entry",
        ),
        (ANALYSIS.replace("`login`: def login(user: str) -> Token", "login"), "IMPACT-ANALYSIS", "is not an interface"),
        ("[IMPACT_VERIFIED] thank you", "IMPACT_VERIFIED", "`thank you` has no label"),
        ("[CHALLENGE] Phase 1 | Category: ODD | Question: x", "CHALLENGE", "`Category` is one of"),
        ("[PLAN] Phase 1 | Files: a.py | Changes: x | Risk: 🟡", "PLAN", "`Interface Impact` is missing"),
        ("[PLAN] Phase 1 | Files: a.py | Changes: x | Risk: some | Interface Impact: y", "PLAN", "risk:"),
    ],
)
def test_what_cannot_be_read_says_why_and_how_it_is_written(said: str, tag: str, why: str) -> None:
    (found,) = read_messages(said)
    assert isinstance(found, UnreadableMessage)
    assert found.tag == tag
    assert why in found.why
    assert MESSAGE_FORMS[tag] in found.why


@each_row(
    "said",
    [
        "I answer your [REVERIFY] Phase 6 | Level 1 when I am done.",
        "> [APPROVED]",
        "Gate A: [IMPACT-ANALYSIS] → [IMPACT_VERIFIED]. Gate B: [PLAN] → [APPROVED].",
        "- [APPROVED]",
        "[approved]",
        "[TODO] Phase 1",
        "See `[PLAN] Phase 1` above.",
    ],
)
def test_a_word_in_brackets_within_a_sentence_is_no_message(said: str) -> None:
    assert read_messages(said) == ()


def test_answers_of_several_kinds_in_one_text_are_all_found() -> None:
    text = f"""Of course.

```
{next(line for line in LINES if line.startswith("[SELF-LOCATE]"))}
```

This is my analysis.

{MINI}

[PLAN] is next."""
    kinds = [type(one) for one in read_messages(text)]
    assert kinds == [SelfLocate, ReverifyAnalysis, UnreadableMessage]


def test_an_answer_ends_with_its_fence() -> None:
    (found,) = read_messages("```\n[CHALLENGE-RESPONSE] Phase 1 | Nobody.\n```\nI go on.")
    assert found == ImpactChallengeResponse(phase=1, content="Nobody.")
