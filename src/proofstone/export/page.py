"""One agent's definition as a page: the sections that every definition has, in the order that all of them share."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from proofstone.agents.roles.registry import ROLES
from proofstone.agents.rules.conversation import REPAIRS
from proofstone.check.rules.outcome import TITLES, Layer
from proofstone.common.models import Severity
from proofstone.documents.markdown import item, markdown_table, numbered, paragraph
from proofstone.export.definitions import Agent
from proofstone.export.pipeline import CASCADE, CONFIDENCE, DECISIONS, GATES, REDISPATCHED, STEPS, TIERS, TRANSIENT
from proofstone.export.prompts import Host
from proofstone.export.schemas import schema_text, schemas
from proofstone.export.sections import reverification, tool_access

SECTIONS: Final = (
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
"""In their order."""

_NOT_HERE: Final = ("run_id", "prompt", "deadline_seconds")
"""Fields of a request that only the runtime has a use for."""

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


def page(agent: Agent, host: Host) -> str:
    """Everything below the front matter."""
    links = _Links(agent, host)
    bodies = (
        agent.prompt.purpose,
        _input(agent, links),
        _output(agent, links),
        _workflow(agent, links),
        _completion(agent, links),
        f"{numbered(_rules(agent, links))}\n\n{reverification(agent)}",
        _self_verification(agent, links),
        tool_access(agent, host),
        _anchor(agent),
    )
    head = [
        f"# {agent.title}",
        "",
        "> **Type:** Agent definition",
        f"> **Pipeline Step:** {agent.place.step}",
        f"> **Inputs:** {'; '.join(agent.place.inputs)}",
        f"> **Outputs:** {links.filled('; '.join(agent.place.outputs))}",
        "",
        "---",
    ]
    sections = (f"## {name}\n\n{body.strip()}" for name, body in zip(SECTIONS, bodies, strict=True))
    return "\n".join(head) + "\n\n" + "\n\n".join(sections) + "\n"


class _Links:
    """Links from an agent's page to the references."""

    def __init__(self, agent: Agent, host: Host) -> None:
        self._host = host
        self._from = PurePosixPath(host.file(agent.name)).parent

    def to(self, topic: str, anchor: str = "") -> str:
        words = (
            f"`{anchor}` in `{self._host.references}/{topic}.md`" if anchor else f"`{self._host.references}/{topic}.md`"
        )
        return f"[{words}]({self.target(topic)}{'#' + anchor if anchor else ''})"

    def target(self, topic: str) -> str:
        up = "../" * len(self._from.relative_to(_common(self._from, self._host.references)).parts)
        down = PurePosixPath(self._host.references).relative_to(_common(self._from, self._host.references))
        return up + str(down / f"{topic}.md")

    def filled(self, text: str) -> str:
        return text.replace("{schemas}", self.target("schemas"))


def _common(one: PurePosixPath, other: str) -> PurePosixPath:
    """The innermost folder that holds both."""
    theirs = PurePosixPath(other)
    return next(folder for folder in (one, *one.parents) if theirs.is_relative_to(folder))


def _input(agent: Agent, links: _Links) -> str:
    typed = schema_text(schemas(ROLES), agent.input, _NOT_HERE)
    return f"{agent.prompt.given}\n\nThe dispatch holds, as YAML:\n\n```yaml\n{typed}```\n\n" + paragraph(
        "A file may be named by its path where a text or another agent's output is asked for. Schemas that are only "
        f"named are in {links.to('schemas')}."
    )


def _output(agent: Agent, links: _Links) -> str:
    schema = links.to("schemas", agent.schema.name)
    if agent.leads:
        return (
            paragraph(f"No file. The `completion` block of the last message is of {schema}.")
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
        paragraph(f"One YAML document, whose payload is of {schema}:")
        + f"\n\n```yaml\n{document}```\n\n{agent.prompt.answer}\n\n"
        + paragraph(
            "Write it to the first place under Outputs that is of this schema; a Markdown file beside it says the same "
            "to people. Return the `completion` block as your last message."
        )
    )


def _workflow(agent: Agent, links: _Links) -> str:
    parts = [agent.prompt.work]
    if agent.leads:
        parts += [
            "### Steps",
            "\n".join(item("- ", f"**Step {entry.id}, {entry.title}.** {entry.does}") for entry in STEPS),
        ]
        parts += ["### Decision table", markdown_table(("when", "then"), DECISIONS)]
        parts += [paragraph(f"Dispatch patterns and the budget of every loop are in {links.to('dispatch-patterns')}.")]
        parts += ["### Approval gates", _approvals()]
        parts += ["### Confidence", markdown_table(("confidence", "when"), CONFIDENCE.items())]
    if agent.name == "verifier":
        parts += ["### The cascade", _cascade()]
    return "\n\n".join(parts)


def _approvals() -> str:
    rows = [
        (f"`{gate.id}`", gate.step, f"`{option.id}`{' (default)' if number == 0 else ''}", option.means)
        for gate in GATES
        for number, option in enumerate(gate.options)
    ]
    return "\n\n".join(
        (
            markdown_table(("gate", "step", "option", "means"), rows),
            paragraph(
                "In autonomous mode take the default and record it as `auto_selected`; in interactive mode show the "
                "options and wait. A question that was not answered is asked again when the run goes on."
            ),
            _APPROVAL,
        )
    )


def _cascade() -> str:
    rows = [(str(tier), ", ".join(kinds), TIERS[tier]) for tier, kinds in CASCADE.items()]
    more = ", ".join(title for layer, title in TITLES.items() if layer is not Layer.REVIEW)
    return "\n\n".join(
        (
            markdown_table(("tier", "checks", "when"), rows),
            paragraph(
                "A tier that cannot be run is recorded as `unverifiable`, with the reason. A failed build makes the "
                "checks that need it unverifiable."
            ),
            paragraph(f"`proofstone check` runs all of this and looks further than you can by hand: {more}."),
        )
    )


def _completion(agent: Agent, links: _Links) -> str:
    lines = [f"- {status}: {text}" for status, text in agent.place.ends.items()]
    return (
        "\n".join(lines)
        + "\n\n"
        + paragraph(
            f"The block is of {links.to('schemas', 'completion-contract')}. Its `severity`, and every other, is one of "
            f"{', '.join(entry.capitalize() for entry in Severity)}, as {links.to('severity-taxonomy')} defines "
            f"them; in "
            "YAML they are written in small letters."
        )
    )


def _rules(agent: Agent, links: _Links) -> list[str]:
    return [
        *agent.prompt.rules,
        *agent.place.rules,
        f"A tool that fails for a reason that may pass is tried again at most {TRANSIENT} times; what is not there or "
        f"not allowed, never. An output that is not of its schema is corrected at most {REPAIRS} times, and an agent "
        f"that failed is dispatched again at most {REDISPATCHED} time. All budgets: {links.to('dispatch-patterns')}.",
        "Where these rules speak of the engine, it is Proofstone. Here it comes in when somebody runs "
        "`proofstone check`: what "
        "that says counts, and what an agent says does not.",
    ]


def _self_verification(agent: Agent, links: _Links) -> str:
    output = "The last message ends with" if agent.leads else "The output parses as YAML, and has"
    checks = (
        f"{output} every field that {links.to('schemas', agent.schema.name)} requires.",
        "`completion.summary` has at most 200 characters, and claims nothing that you have not seen.",
        *agent.place.checks,
    )
    items = "\n".join(item("- [ ] ", check) for check in checks)
    first = "Before you return, go through this list, and put right what does not hold:"
    return f"{first}\n\n{items}\n\n### What will be judged\n\n{agent.prompt.judged}"


def _anchor(agent: Agent) -> str:
    anchor = agent.place.anchor
    return paragraph(
        f"**REMEMBER:** You are the **{agent.title}**. You {anchor.does}. You never {anchor.never}. "
        f"Stay as {agent.title.lower()}."
    )
