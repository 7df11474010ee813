"""The per-agent checks hold for what is exported, and each of them can fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proofstone.export.targets import EXPORT_TARGETS
from tests.export import checks
from tests.export.checks import OF_ALL, Check
from tests.export.reading import HOSTS, exported, fences, front_matter, parsed
from tests.rows import each_row

A = ".github/agents"


@each_row("kind", EXPORT_TARGETS)
@each_row("check", OF_ALL.values())
def test_it_holds(check: Check, kind: str) -> None:
    assert list(check(HOSTS[kind], exported(kind))) == []


def test_the_fourteen_files_are_in_their_places_ac_14() -> None:
    assert list(checks.layout(HOSTS["copilot"], exported("copilot"))) == []
    assert len(exported("copilot")) == 14


@each_row(
    ("check", "path", "old", "new", "problem"),
    [
        (checks.agent_count, f"{A}/spec.agent.md", r"\*\*Type:\*\* Agent definition", "", "agents:"),
        (
            checks.completion_contracts,
            f"{A}/spec.agent.md",
            "- NEEDS_REVISION: ",
            "- ",
            "spec: no condition for NEED",
        ),
        (checks.completion_contracts, f"{A}/planner.agent.md", "## Completion Contract", "## End", "planner: no cond"),
        (checks.unified_severity, f"{A}/severity-taxonomy.md", "Major", "High", "the taxonomy has"),
        (checks.unified_severity, f"{A}/schemas.md", r"critical \| major", "critical | high", "schemas: severity:"),
        (checks.unified_severity, f"{A}/verifier.agent.md", "Blocker, Critical", "Severe", "verifier: does not refer"),
        (
            checks.unified_severity,
            f"{A}/planner.agent.md",
            "## Workflow",
            "## Workflow\n\nGive each a severity from low to high.",
            "planner: low as a severity",
        ),
        (checks.typed_outputs, f"{A}/designer.agent.md", "#design-output", "#another", "designer: another is not in"),
        (checks.typed_outputs, f"{A}/designer.agent.md", r"schemas\.md#", "s.md#", "designer: refers to no schema"),
        (checks.typed_outputs, f"{A}/schemas.md", "## spec-output", "## gone", "spec: spec-output is not in"),
        (checks.self_verification, f"{A}/researcher.agent.md", r"- \[ \]", "-", "researcher: nothing to verify"),
        (checks.layout, "README.md", "```mermaid", "```", "README.md: no diagram"),
        (checks.bounded_retries, f"{A}/dispatch-patterns.md", r"3 \| the run is", "9 | the run is", "Steps 5 and 6"),
        (checks.bounded_retries, f"{A}/dispatch-patterns.md", r"\| Rounds of code.*\n", "", "Rounds of code review"),
        (checks.bounded_retries, "README.md", r"<br/>\(max 3\)", "", "the diagram has a way back"),
        (checks.bounded_retries, f"{A}/spec.agent.md", "at most 2", "some", "spec: does not say how often"),
        (checks.anti_drift_anchors, f"{A}/implementer.agent.md", "You never", "You rarely", "implementer: no anchor"),
        (checks.anti_drift_anchors, f"{A}/verifier.agent.md", r"\*\*Verifier\*\*", "**Fixer**", "verifier: no anchor"),
        (checks.orchestrators_tools, f"{A}/orchestrator.agent.md", '"read", ', '"read", "edit", ', "edit is allowed"),
        (
            checks.orchestrators_tools,
            f"{A}/orchestrator.agent.md",
            "`create_file`, ",
            "",
            "create_file is not",
        ),
        (checks.template, f"{A}/planner.agent.md", "## Tool Access", "## Tools", "planner: sections"),
        (checks.template, f"{A}/planner.agent.md", r"> \*\*Inputs:.*\n", "", "planner: the header"),
        (checks.reverification, f"{A}/designer.agent.md", "RC-07", "RC-08", "designer: RC-07 is missing"),
        (checks.reverification, f"{A}/designer.agent.md", "Level 3", "", "designer: a level is missing"),
        (checks.reverification, f"{A}/adversarial-reviewer.agent.md", "TIER 0 exempt", "", "who is exempt"),
        (checks.front_matters, f"{A}/spec.agent.md", "description: .*\n", "", "spec: "),
    ],
)
def test_it_can_fail(check: Check, path: str, old: str, new: str, problem: str) -> None:
    files = exported("copilot")
    broken = {**files, path: re.sub(old, new, files[path])}
    assert broken != files
    found = list(check(HOSTS["copilot"], broken))
    assert any(problem in one for one in found), found


@each_row("missing", checks.LAYOUT)
def test_a_missing_file_is_found(missing: str) -> None:
    files = {path: text for path, text in exported("copilot").items() if path != missing}
    assert any(missing in problem for problem in checks.layout(HOSTS["copilot"], files))


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_every_yaml_block_parses(kind: str) -> None:
    blocks = [block for text in exported(kind).values() for block in fences(text, "yaml")]
    assert len(blocks) > 30
    assert all(isinstance(parsed(block), dict) for block in blocks)


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_every_link_leads_to_a_file_and_a_heading(kind: str) -> None:
    files = exported(kind)
    for path, text in files.items():
        for name, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
            target = (Path("/") / path).parent / name if name else Path("/") / path
            resolved = str(target.resolve()).removeprefix("/")
            assert resolved in files, (path, name)
            assert not anchor or f"## {anchor}\n" in files[resolved], (path, name, anchor)


def test_copilot_takes_no_reference_for_an_agent_and_no_page_is_too_long_for_it() -> None:
    for path, text in exported("copilot").items():
        assert len(text) <= 30_000, path
        if path.startswith(f"{A}/") and not path.endswith(".agent.md"):
            about = front_matter(text)
            assert about["user-invocable"] is False
            assert about["disable-model-invocation"] is True
            assert about["tools"] == []


def test_the_orchestrator_may_dispatch_the_eight_others_and_nobody_dispatches_it() -> None:
    about = front_matter(exported("copilot")[f"{A}/orchestrator.agent.md"])
    assert sorted([*about["agents"], "orchestrator"]) == sorted(checks.AGENTS)
    assert about["disable-model-invocation"] is True


def test_the_prompt_leads_to_the_orchestrator() -> None:
    about = front_matter(exported("copilot")[".github/prompts/feature-workflow.prompt.md"])
    assert about["agent"] == "orchestrator"


def test_claudes_agents_use_its_tools_and_the_sessions_model() -> None:
    known = {"Agent", "Read", "Grep", "Glob", "Write", "Edit", "Bash"}
    files = exported("claude")
    for name in checks.AGENTS:
        about = front_matter(files[f".claude/agents/{name}.md"])
        assert set(about["tools"].split(", ")) <= known
        assert about["model"] == "inherit"
    assert {path for path in files if path.startswith(".claude/agents/")} == {
        f".claude/agents/{name}.md" for name in checks.AGENTS
    }
    assert "$ARGUMENTS" in files[".claude/commands/feature-workflow.md"]


def test_generic_pages_have_no_front_matter() -> None:
    assert not any(text.startswith("---") for text in exported("generic").values())


@pytest.mark.parametrize("kind", ["copilot", "claude"])
def test_whoever_only_reads_cannot_run_commands(kind: str) -> None:
    host = HOSTS[kind]
    for name in ("researcher", "spec", "designer", "planner", "adversarial-reviewer", "knowledge-agent"):
        tools = front_matter(exported(kind)[host.agent_path(name)])["tools"]
        assert not {"execute", "Bash", "agent", "Agent"} & set(tools if isinstance(tools, list) else tools.split(", "))


@pytest.mark.parametrize("kind", EXPORT_TARGETS)
def test_it_says_what_is_advice_and_what_verifies(kind: str) -> None:
    files = exported(kind)
    for name in checks.AGENTS:
        assert "advice, not a lock" in files[HOSTS[kind].agent_path(name)]
        assert "`proofstone check`" in files[HOSTS[kind].agent_path(name)]
