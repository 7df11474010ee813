"""The checks that every set of definitions must pass, each as a function that says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from proofstone.export.prompts import Ability, Host
from tests.export.reading import (
    Files,
    agent_pages,
    fences,
    flowing,
    front_matter,
    headings,
    parsed,
    reference,
    section,
    sentences,
)

TEMPLATE = [
    "Role & Purpose",
    "Input Schema",
    "Output Schema",
    "Workflow",
    "Completion Contract",
    "Operating Rules",
    "Self-Verification",
    "Tool Access",
    "Anti-Drift Anchor",
]
AGENTS = [
    "orchestrator",
    "researcher",
    "spec",
    "designer",
    "planner",
    "implementer",
    "verifier",
    "adversarial-reviewer",
    "knowledge-agent",
]
SEVERITIES = ["Blocker", "Critical", "Major", "Minor"]
OTHER_SCALES = re.compile(
    r"\b(high|medium|low|info|warning|severe|trivial|significant|blocking|moderate|p[0-4]|sev-?\d)\b", re.IGNORECASE
)
LAYOUT = [
    *(f".github/agents/{name}.agent.md" for name in AGENTS),
    *(f".github/agents/{topic}.md" for topic in ("schemas", "dispatch-patterns", "severity-taxonomy")),
    ".github/prompts/feature-workflow.prompt.md",
    "README.md",
]
BUDGETS = {
    "Retries of a tool inside an agent": 2,
    "Further dispatches of an agent": 1,
    "Steps 5 and 6 with a new plan": 3,
    "Revisions of the design": 1,
    "Rounds of code review": 2,
}
FORBIDDEN_TO_THE_ORCHESTRATOR = (Ability.EDIT, Ability.SEARCH)
Problems = Iterator[str]


def agent_count(host: Host, files: Files) -> Problems:
    """AC-2: nine definitions, no more and no fewer."""
    if sorted(agent_pages(host, files)) != sorted(AGENTS):
        yield f"agents: {sorted(agent_pages(host, files))}"


def completion_contracts(host: Host, files: Files) -> Problems:
    """AC-3: every agent says when it is DONE, NEEDS_REVISION and ERROR."""
    for name, text in agent_pages(host, files).items():
        body = section(text, "Completion Contract")
        for status in ("DONE", "NEEDS_REVISION", "ERROR"):
            if not re.search(rf"^- {status}: \S", body, re.MULTILINE):
                yield f"{name}: no condition for {status}"


def unified_severity(host: Host, files: Files) -> Problems:
    """AC-7: Blocker, Critical, Major and Minor, and no other scale."""
    rows = re.findall(r"^\| (\w+) \| `(\w+)` \|", reference(host, files, "severity-taxonomy"), re.MULTILINE)
    if rows != [(one, one.lower()) for one in SEVERITIES]:
        yield f"the taxonomy has {rows}"
    pages = agent_pages(host, files)
    for name, text in pages.items():
        if not all(re.search(rf"\b{one}\b", text) for one in SEVERITIES) or "severity-taxonomy.md)" not in text:
            yield f"{name}: does not refer to the taxonomy"
    for name, text in {**pages, "schemas": reference(host, files, "schemas")}.items():
        for said in re.findall(r"^ *(?:- )?severity: (.+?)(?:  #.*)?$", text, re.MULTILINE):
            if not {word.strip() for word in said.split("|")} <= {*map(str.lower, SEVERITIES), "null", "''"}:
                yield f"{name}: severity: {said}"
        for sentence in sentences(text):
            if re.search(r"\bseverit(?:y|ies)\b", sentence, re.IGNORECASE) and (other := OTHER_SCALES.search(sentence)):
                yield f"{name}: {other[0]} as a severity: {flowing(sentence)}"


def typed_outputs(host: Host, files: Files) -> Problems:
    """AC-8: every agent refers to a schema, and the schema is there."""
    page = reference(host, files, "schemas")
    for name, text in agent_pages(host, files).items():
        named = re.findall(r"schemas\.md#([\w-]+)\)", section(text, "Output Schema"))
        if not named:
            yield f"{name}: refers to no schema"
        for schema in named:
            blocks = fences(section(page, schema), "yaml")
            if len(blocks) != 2 or not all(isinstance(parsed(block), dict) for block in blocks):
                yield f"{name}: {schema} is not in schemas.md, with an example"


def self_verification(host: Host, files: Files) -> Problems:
    """AC-12: every agent has something to go through before it returns."""
    for name, text in agent_pages(host, files).items():
        if len(re.findall(r"^- \[ \] \S", section(text, "Self-Verification"), re.MULTILINE)) < 3:
            yield f"{name}: nothing to verify"


def layout(host: Host, files: Files) -> Problems:
    """AC-14: the fourteen files in their places, and the diagram in the README."""
    if sorted(files) != sorted(LAYOUT):
        yield f"files: {sorted(set(files) ^ set(LAYOUT))}"
    if not any(block.startswith("flowchart") for block in fences(files.get("README.md", ""), "mermaid")):
        yield "README.md: no diagram"


def bounded_retries(host: Host, files: Files) -> Problems:
    """AC-15: every loop has its budget, and every way back in the diagram its bound."""
    rows = dict(re.findall(r"^\| (.+?) \| (\d+) \|", reference(host, files, "dispatch-patterns"), re.MULTILINE))
    for loop, most in BUDGETS.items():
        if [number for name, number in rows.items() if name.startswith(loop)] != [str(most)]:
            yield f"{loop}: not bounded by {most}"
    for name, text in agent_pages(host, files).items():
        rules = flowing(section(text, "Operating Rules"))
        if "at most 2 times" not in rules or "dispatch-patterns.md)" not in rules:
            yield f"{name}: does not say how often it may try again"
    for text in files.values():
        for edge in re.findall(r"-- \"(.*?)\" -->", "\n".join(fences(text, "mermaid"))):
            if re.match("NEEDS_REVISION|expand|revise", edge) and "(max " not in edge:
                yield f"the diagram has a way back without an end: {edge}"


def anti_drift_anchors(host: Host, files: Files) -> Problems:
    """CR-12: every agent is reminded of who it is."""
    for name, text in agent_pages(host, files).items():
        title = name.replace("-", " ").title()
        wanted = (
            rf"\*\*REMEMBER:\*\* You are the \*\*{title}\*\*\. You [^.]+\. You never [^.]+\. Stay as {title.lower()}\."
        )
        if not re.fullmatch(wanted, flowing(section(text, "Anti-Drift Anchor"))):
            yield f"{name}: no anchor"


def orchestrators_tools(host: Host, files: Files) -> Problems:
    """FR-1.6: the orchestrator can neither write nor search, and is told so."""
    page = agent_pages(host, files).get("orchestrator", "")
    listed = front_matter(page).get("tools", [])
    listed = [one.strip() for one in listed.split(",")] if isinstance(listed, str) else listed
    allowed, _, forbidden = section(page, "Tool Access").partition("Not allowed:")
    forbidden = forbidden.partition("\n\nWhere this page")[0]
    for ability in FORBIDDEN_TO_THE_ORCHESTRATOR:
        names = (*host.tools[ability], *host.other_tool_names.get(ability, ())) or (ability.value,)
        for name in names:
            if name in listed or f"`{name}`" in allowed:
                yield f"{name} is allowed"
            if name not in forbidden:
                yield f"{name} is not forbidden"
    if front_matter(page) and sorted(listed) != sorted(host.list_tools({Ability.DISPATCH, Ability.READ, Ability.RUN})):
        yield f"tools: {listed}"


def template(host: Host, files: Files) -> Problems:
    """Every definition has the same sections, in the same order, below the same header."""
    for name, text in agent_pages(host, files).items():
        if headings(text) != TEMPLATE:
            yield f"{name}: sections {headings(text)}"
        if empty := [one for one in TEMPLATE if not section(text, one)]:
            yield f"{name}: nothing in {empty}"
        title = name.replace("-", " ").title()
        wanted = (
            rf"(?:---\n.+\n---\n\n)?# {title}\n\n> \*\*Type:\*\* Agent definition\n> \*\*Pipeline Step:\*\* \S.*\n"
            r"> \*\*Inputs:\*\* \S.*\n> \*\*Outputs:\*\* \S.*\n\n---\n"
        )
        if not re.match(wanted, text, re.DOTALL):
            yield f"{name}: the header is not as it should be"
        if not fences(section(text, "Input Schema"), "yaml"):
            yield f"{name}: no schema of the input"


def reverification(host: Host, files: Files) -> Problems:
    """Every agent knows what to answer when it is asked in the middle of its work, or that it is exempt."""
    for name, text in agent_pages(host, files).items():
        body = section(text, "Operating Rules").partition("### Mid-Execution Re-Verification")[2]
        for wire in ("[REVERIFY]", "[SELF-LOCATE]", "[REVERIFY-RESPONSE]", "RC-01", "RC-04", "RC-07"):
            if wire not in body:
                yield f"{name}: {wire} is missing"
        if not all(f"Level {level}" in body for level in (1, 2, 3)):
            yield f"{name}: a level is missing"
        if ("TIER 0 exempt" in body) != (name in ("adversarial-reviewer", "knowledge-agent")):
            yield f"{name}: who is exempt"


def front_matters(host: Host, files: Files) -> Problems:
    """What the program reads first is as it wants it."""
    for name, text in agent_pages(host, files).items():
        about = front_matter(text)
        if host.suffix == ".agent.md" and not {"name", "description", "tools"} <= set(about):
            yield f"{name}: {about}"
        if about and (about.get("name") != name or not about.get("description")):
            yield f"{name}: {about}"


Check = Callable[[Host, Files], Problems]

OF_ALL: Mapping[str, Check] = {
    "AC-2 agent count": agent_count,
    "AC-3 completion contract": completion_contracts,
    "AC-7 unified severity": unified_severity,
    "AC-8 typed outputs": typed_outputs,
    "AC-12 self-verification": self_verification,
    "AC-15 bounded retries": bounded_retries,
    "CR-12 anti-drift anchor": anti_drift_anchors,
    "FR-1.6 orchestrator's tools": orchestrators_tools,
    "template": template,
    "re-verification": reverification,
    "front matter": front_matters,
}
