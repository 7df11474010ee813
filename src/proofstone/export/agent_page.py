"""Build the page of one agent's definition. All pages have the same sections in the same order."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.conversation import MAX_REPAIRS
from proofstone.check.rules.outcome import LAYER_TITLES, EvidenceLayer
from proofstone.common.models import Severity
from proofstone.documents.markdown import markdown_table, numbered_list, wrap_list_item, wrap_paragraph
from proofstone.export.definitions import AgentDefinition
from proofstone.export.page_sections import build_reverification, build_tool_access
from proofstone.export.pipeline_tables import (
    CHECKS_BY_TIER,
    CONFIDENCE,
    DECISIONS,
    GATES,
    MAX_REDISPATCHES,
    MAX_TRANSIENT_RETRIES,
    STEPS,
    TIER_CONDITIONS,
)
from proofstone.export.prompts import Host
from proofstone.export.schemas import list_schemas, write_schema

PAGE_SECTIONS: Final = (
    "Role & Purpose",
    "Input Schema",
    "Output Schema",
    "Workflow",
    "Completion Contract",
    "Operating Rules",
    "Self-Verification",
    "Tool Access",
    "Anti-Drift Anchor",
)

_RUNTIME_FIELDS: Final = ("run_id", "prompt", "deadline_seconds")
"""Fields of a request that only the runtime uses."""

_APPROVAL: Final = """```yaml
approval_request:
  gate_id: text
  pipeline_step: text
  question: text
  context: text  # two or three sentences
  options:
    - id: text
      label: text  # at most 50 characters
      description: text
      is_default: true | false
  metadata:
    risk_summary: 🟢 | 🟡 | 🔴
    findings_count: integer
    elapsed_time: text
approval_log:
  - gate_id: text
    timestamp: text
    mode: autonomous | interactive
    selected_option: text
    auto_selected: true | false
    user_response_raw: text
```"""


def build_page(agent: AgentDefinition, host: Host) -> str:
    """Return everything below the front matter."""
    links = _Links(agent, host)
    bodies = (
        agent.prompt.purpose,
        _input_section(agent, links),
        _output_section(agent, links),
        _workflow_section(agent, links),
        _completion_section(agent, links),
        f"{numbered_list(_rules_section(agent, links))}\n\n{build_reverification(agent)}",
        _self_verification_section(agent, links),
        build_tool_access(agent, host),
        _anchor_section(agent),
    )
    head = [
        f"# {agent.title}",
        "",
        "> **Type:** Agent definition",
        f"> **Pipeline Step:** {agent.place.step}",
        f"> **Inputs:** {'; '.join(agent.place.inputs)}",
        f"> **Outputs:** {links.fill('; '.join(agent.place.outputs))}",
        "",
        "---",
    ]
    sections = (f"## {name}\n\n{body.strip()}" for name, body in zip(PAGE_SECTIONS, bodies, strict=True))
    return "\n".join(head) + "\n\n" + "\n\n".join(sections) + "\n"


class _Links:
    """Links from an agent's page to the references."""

    def __init__(self, agent: AgentDefinition, host: Host) -> None:
        self._host = host
        self._from = PurePosixPath(host.agent_path(agent.name)).parent

    def to(self, topic: str, anchor: str = "") -> str:
        label = (
            f"`{anchor}` in `{self._host.references}/{topic}.md`" if anchor else f"`{self._host.references}/{topic}.md`"
        )
        return f"[{label}]({self.target(topic)}{'#' + anchor if anchor else ''})"

    def target(self, topic: str) -> str:
        up = "../" * len(self._from.relative_to(_common_folder(self._from, self._host.references)).parts)
        down = PurePosixPath(self._host.references).relative_to(_common_folder(self._from, self._host.references))
        return up + str(down / f"{topic}.md")

    def fill(self, text: str) -> str:
        return text.replace("{schemas}", self.target("schemas"))


def _common_folder(start: PurePosixPath, other_path: str) -> PurePosixPath:
    """Return the innermost folder that contains both."""
    other_folder = PurePosixPath(other_path)
    return next(folder for folder in (start, *start.parents) if other_folder.is_relative_to(folder))


def _input_section(agent: AgentDefinition, links: _Links) -> str:
    typed = write_schema(list_schemas(ROLES), agent.input, _RUNTIME_FIELDS)
    return f"{agent.prompt.given}\n\nThe dispatch holds, as YAML:\n\n```yaml\n{typed}```\n\n" + wrap_paragraph(
        "A file may be named by its path where a text or another agent's output is asked for. Schemas that are only "
        f"named are in {links.to('schemas')}."
    )


def _output_section(agent: AgentDefinition, links: _Links) -> str:
    schema = links.to("schemas", agent.schema.name)
    if agent.is_orchestrator:
        return (
            wrap_paragraph(f"No file. The `completion` block of the last message is of {schema}.")
            + f"\n\n{agent.prompt.answer}"
        )
    document = (
        f"agent: {agent.name}\n"
        f"instance: {agent.place.instance or agent.name}\n"
        f'step: "{agent.place.step.split(",")[0].split(" ")[0]}"\n'
        "started_at: text\n"
        "completed_at: text\n"
        'schema_version: "1"\n'
        f"payload: {agent.schema.name}\n"
    )
    return (
        wrap_paragraph(f"One YAML document, whose payload is of {schema}:")
        + f"\n\n```yaml\n{document}```\n\n{agent.prompt.answer}\n\n"
        + wrap_paragraph(
            "Write it to the first place under Outputs that is of this schema; a Markdown file beside it says the same "
            "to people. Return the `completion` block as your last message."
        )
    )


def _workflow_section(agent: AgentDefinition, links: _Links) -> str:
    parts = [agent.prompt.work]
    if agent.is_orchestrator:
        parts += [
            "### Steps",
            "\n".join(wrap_list_item("- ", f"**Step {step.id}, {step.title}.** {step.does}") for step in STEPS),
        ]
        parts += ["### Decision table", markdown_table(("when", "then"), DECISIONS)]
        parts += [
            wrap_paragraph(f"Dispatch patterns and the budget of every loop are in {links.to('dispatch-patterns')}.")
        ]
        parts += ["### Approval gates", _approval_section()]
        parts += ["### Confidence", markdown_table(("confidence", "when"), CONFIDENCE.items())]
    if agent.name == "verifier":
        parts += ["### The cascade", _cascade_section()]
    return "\n\n".join(parts)


def _approval_section() -> str:
    rows = [
        (f"`{gate.id}`", gate.step, f"`{option.id}`{' (default)' if number == 0 else ''}", option.means)
        for gate in GATES
        for number, option in enumerate(gate.options)
    ]
    return "\n\n".join(
        (
            markdown_table(("gate", "step", "option", "means"), rows),
            wrap_paragraph(
                "In autonomous mode take the default and record it as `auto_selected`; in interactive mode show the "
                "options and wait. A question that was not answered is asked again when the run goes on."
            ),
            _APPROVAL,
        )
    )


def _cascade_section() -> str:
    rows = [(str(tier), ", ".join(kinds), TIER_CONDITIONS[tier]) for tier, kinds in CHECKS_BY_TIER.items()]
    further_layers = ", ".join(title for layer, title in LAYER_TITLES.items() if layer is not EvidenceLayer.REVIEW)
    return "\n\n".join(
        (
            markdown_table(("tier", "checks", "when"), rows),
            wrap_paragraph(
                "A tier that cannot be run is recorded as `unverifiable`, with the reason. A failed build makes the "
                "checks that need it unverifiable."
            ),
            wrap_paragraph(
                f"`proofstone check` runs all of this and looks further than you can by hand: {further_layers}."
            ),
        )
    )


def _completion_section(agent: AgentDefinition, links: _Links) -> str:
    lines = [f"- {status}: {text}" for status, text in agent.place.ends.items()]
    return (
        "\n".join(lines)
        + "\n\n"
        + wrap_paragraph(
            f"The block is of {links.to('schemas', 'completion-contract')}. Its `severity`, and every other, is one of "
            f"{', '.join(severity.capitalize() for severity in Severity)}, as {links.to('severity-taxonomy')} defines "
            f"them; in "
            "YAML they are written in small letters."
        )
    )


def _rules_section(agent: AgentDefinition, links: _Links) -> list[str]:
    return [
        *agent.prompt.rules,
        *agent.place.rules,
        f"A tool that fails for a reason that may pass is tried again at most {MAX_TRANSIENT_RETRIES} times; "
        f"what is not there or "
        f"not allowed, never. An output that is not of its schema is corrected at most {MAX_REPAIRS} times, and "
        f"an agent "
        f"that failed is dispatched again at most {MAX_REDISPATCHES} time. All budgets: "
        f"{links.to('dispatch-patterns')}.",
        "Where these rules speak of the engine, it is Proofstone. Here it comes in when somebody runs "
        "`proofstone check`: what "
        "that says counts, and what an agent says does not.",
    ]


def _self_verification_section(agent: AgentDefinition, links: _Links) -> str:
    output = "The last message ends with" if agent.is_orchestrator else "The output parses as YAML, and has"
    checks = (
        f"{output} every field that {links.to('schemas', agent.schema.name)} requires.",
        "`completion.summary` has at most 200 characters, and claims nothing that you have not seen.",
        *agent.place.checks,
    )
    items = "\n".join(wrap_list_item("- [ ] ", check) for check in checks)
    first = "Before you return, go through this list, and put right what does not hold:"
    return f"{first}\n\n{items}\n\n### What will be judged\n\n{agent.prompt.judged}"


def _anchor_section(agent: AgentDefinition) -> str:
    anchor = agent.place.anchor
    return wrap_paragraph(
        f"**REMEMBER:** You are the **{agent.title}**. You {anchor.does}. You never {anchor.never}. "
        f"Stay as {agent.title.lower()}."
    )
