"""What is said to agents and shown of it reads as it is meant, and what a window holds is known."""

from __future__ import annotations

import pytest

from proofstone.agents.models import Completion, EngineMessage
from proofstone.agents.rules.conversation import format_message_line
from proofstone.common.context_windows import find_context_window
from proofstone.supervision.models.context import ContextItem, ContextReader, ContextSection, ContextVersion
from proofstone.supervision.models.events import TimePassed, TurnStarted
from proofstone.supervision.rules.context import prepare_update
from proofstone.supervision.rules.monitor import create_monitor, process_event
from proofstone.supervision.rules.monitor_state import AgentProfile, SupervisionLimits
from tests.rows import each_row


@pytest.mark.seed("continuity", "lines-shown")
def test_a_line_is_shown_as_it_is_meant() -> None:
    def shown(text: str) -> str:
        return format_message_line(EngineMessage(text=text, resumes=True), 200)

    update = "Acknowledged. Update your [PLAN]. File ownership expanded: a.py."
    assert shown(update) == f"» {update}"
    assert (
        shown("[REVERIFY] Phase 6 | Level 1 | Target: x | Reason: silence") == "» [REVERIFY] Level 1 | Reason: silence"
    )
    assert shown("[APPROVED]") == "» [APPROVED]"


@pytest.mark.seed("continuity", "lines-shown")
def test_a_context_that_is_sent_again_leads_from_the_version_before_it() -> None:
    def version(number: int) -> ContextVersion:
        item = ContextItem(key="r", text=f"text {number}")
        return ContextVersion(number=number, sections=(ContextSection(name="Scope", items=(item,)),))

    reader = ContextReader(agent="executor", knows=2, again=True)
    _, sent = prepare_update(reader, version(2), version(2))
    assert sent is not None
    assert (sent.update.before, sent.update.version) == (1, 2)


@pytest.mark.seed("continuity", "lines-shown")
@pytest.mark.parametrize(
    ("limit", "at", "said"), [(0.5, 1.0, "1 second"), (60, 70, "1 minute"), (900, 960, "16 minutes")]
)
def test_silence_is_told_in_a_unit_that_says_something(limit: float, at: float, said: str) -> None:
    agent = AgentProfile(agent="executor", role="executor", phase=6)
    monitor = create_monitor(agent, 0, SupervisionLimits(silence_seconds=limit))
    monitor, _ = process_event(monitor, TurnStarted(), 0)
    _, decisions = process_event(monitor, TimePassed(), at)
    assert f"the agent was silent for {said}" in str(decisions)


@pytest.mark.seed("continuity", "compact-risk")
@each_row(
    ("model", "window"),
    [
        ("openai:gpt-5-mini", 400_000),
        ("gpt-4.1", 1_047_576),
        ("anthropic:claude-sonnet-4-5", 200_000),
        ("openrouter:anthropic/claude-3", 200_000),
        ("a-model-of-mine", None),
        ("", None),
    ],
)
def test_the_window_of_a_model_is_known_by_its_name(model: str, window: int | None) -> None:
    assert find_context_window(model) == window


@pytest.mark.seed("pipeline", "completion-spellings")
def test_a_completion_is_read_as_the_protocol_writes_it() -> None:
    said = {
        "status": "DONE",
        "summary": "3 of 4",
        "severity": "Major",
        "evidence_summary": {"total_checks": 4, "passed": 3, "failed": 1, "security_blockers": 0},
    }
    read = Completion.model_validate(said)
    counts = "total_checks: 4, passed: 3, failed: 1, security_blockers: 0"
    assert (read.severity, read.evidence_summary) == ("major", counts)
    for none in ("null", "", None):
        assert Completion.model_validate({**said, "severity": none}).severity is None
    assert Completion.model_validate({**said, "evidence_summary": "3 of 4 pass"}).evidence_summary == "3 of 4 pass"
