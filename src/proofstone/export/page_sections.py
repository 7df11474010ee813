"""Two sections of an agent's page: the tools that it may use, and its re-verification.

Tools have the names of the program that the agent runs in. The bracketed lines are a wire format and must be kept
exactly.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from proofstone.agents.tools.models import Tool
from proofstone.documents.markdown import markdown_table, wrap_list_item, wrap_paragraph
from proofstone.export.definitions import AgentDefinition
from proofstone.export.pipeline_tables import BASELINE_TAG
from proofstone.export.prompts import ABILITY_BY_TOOL, Ability, Host
from proofstone.supervision.rules.wire import MESSAGE_FORMS, SCOPE


def build_tool_access(agent: AgentDefinition, host: Host) -> str:
    allowed = [
        _tool_line(host, ability, _describe_limit(agent, ability)) for ability in Ability if ability in agent.abilities
    ]
    forbidden = [_tool_line(host, ability, "") for ability in Ability if ability in agent.missing_abilities]
    rows = [(f"`{tool}`", _replacement(host, agent, ABILITY_BY_TOOL[tool])) for tool in Tool if tool in agent.tools]
    return "\n\n".join(
        (
            "Allowed:\n\n" + "\n".join(allowed),
            "Not allowed:\n\n" + "\n".join(forbidden),
            wrap_paragraph(host.limits),
            "Where this page names a tool of Proofstone's own runtime:\n\n" + markdown_table(("there", "here"), rows),
        )
    )


def _tool_line(host: Host, ability: Ability, limit: str) -> str:
    names = " ".join(
        filter(None, (_quote_names(host.tools[ability]), _parenthesize(host.other_tool_names.get(ability, ()))))
    )
    return wrap_list_item("- ", ": ".join(filter(None, (names, ability.value, limit))))


def _describe_limit(agent: AgentDefinition, ability: Ability) -> str:
    """Return the limit of an ability, or an empty string if it has none."""
    match agent.name, ability:
        case "orchestrator", Ability.RUN:
            return (
                "only `proofstone`, `date`, and of git `status`, `rev-parse`, `ls-files`, `log`, `show`, "
                "`diff`, `tag`, "
                "`switch -c`, and in step 9 `add` and `commit`. No builds, no tests, nothing that writes a file"
            )
        case "verifier", Ability.RUN:
            return (
                f"`proofstone check`, the project's own checks, and git to look at `{BASELINE_TAG}`; nothing that "
                f"changes a "
                "source file"
            )
        case "implementer", Ability.RUN:
            return (
                "what the task's commands and the project's own checks need; no network, and git only to look, or to "
                f"take a task back from `{BASELINE_TAG}`"
            )
        case "implementer", Ability.EDIT:
            return "only the files that the task declares, and its own report"
        case _, Ability.EDIT:
            return "only its own outputs, named above"
        case _:
            return ""


def _replacement(host: Host, agent: AgentDefinition, ability: Ability) -> str:
    if ability not in agent.abilities:
        return "nothing: say in your output what you could not look up"
    return _quote_names(host.tools[ability]) or f"whatever you {ability} with"


def _quote_names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _parenthesize(names: tuple[str, ...]) -> str:
    return f"({_quote_names(names)})" if names else ""


REVERIFICATION_HEADING: Final = "Mid-Execution Re-Verification (COA-4)"


class TriggerDescription(NamedTuple):
    cause: str
    level: int
    when: str


TRIGGERS: Final = (
    TriggerDescription("silence", 1, "nothing was heard of the agent for 15 minutes"),
    TriggerDescription("stale documents", 1, "`Docs: stale` twice in a row"),
    TriggerDescription("scope change", 2, "something changed that touches its files or criteria"),
    TriggerDescription("milestone", 2, "it goes from one task to the next, where you want to be sure"),
    TriggerDescription("no research", 2, "past half of a task without one look at the code or its documents"),
    TriggerDescription("deviation", 3, "the files that changed are not those of its task"),
    TriggerDescription("recovery", 1, "you have lost your own place; go up to level 3 where an answer does not fit"),
)


def _message_form(tag: str, level: int = 0) -> str:
    """Return the form of a message as the runtime writes and reads it."""
    return MESSAGE_FORMS[tag].replace("{L}", str(level)).replace("{response content}", "{answer}")


_ANSWERING: Final = f"""On `[REVERIFY]` from the orchestrator, stop at the next point where you can, answer, and go on:

- Level 1: respond with `[SELF-LOCATE]`, where you are now, on one line:
  `{_message_form("SELF-LOCATE")}`,
  where `Docs` is about what you write down for others
- Level 2: respond with `[REVERIFY-RESPONSE]` and an answer to the very question:
  `{_message_form("REVERIFY-RESPONSE", 2)}`
- Level 3: respond with `[REVERIFY-RESPONSE]` and an abbreviated impact analysis:

```
{_message_form("REVERIFY-RESPONSE", 3).removesuffix(" | {answer}")}

## Abbreviated Re-IA
- RC-01 (Task Understanding): {{the task as you understand it now; what is new about that}}
- RC-04 (File List): {{every file that you change or will change; which are new}}
- RC-07 (Downstream Chain): {{who is affected after you; whether that still holds}}

## Change Summary
- Original IA claimed: {{the point that matters}}
- Current reality: {{what differs, and why}}
- Impact: {{NONE | MINOR_ADJUSTMENT | SIGNIFICANT_DEVIATION}}
```

Your file list is compared with what really changed: a deviation that you name can be approved, one that you hide is
refused. Nobody asks without the orchestrator; between its questions, work as usual."""

_EXEMPT: Final = (
    "TIER 0 exempt: no `[REVERIFY]` is to be expected of this agent, because {why}. Should one come all the same, "
    "answer Level 1 with `[SELF-LOCATE]`, Level 2 with `[REVERIFY-RESPONSE]`, and Level 3 with a "
    "`[REVERIFY-RESPONSE]` on RC-01, RC-04 and RC-07."
)

_ASKING: Final = """You are the one who asks. An agent that understood its task can drift; find out before it is done:

{triggers}

- Level 1: `{ping}`, answered by `[SELF-LOCATE]`.
- Level 2: the same with `| Question: {{one question that only somebody who understands can answer}}`, answered by
  `[REVERIFY-RESPONSE]`.
- Level 3: the same with `| Scope: {scope}`, answered by `[REVERIFY-RESPONSE]`. Compare
  RC-04 with `git diff --name-only`: as claimed and justified, amend the task and go on; hidden, refuse it.

An answer that does not fit leads one level up. Level 1 as often as you like, but three without an answer mean a new
dispatch; level 2 at most once in 30 minutes for an agent; level 3 at most once in a task, and a second cause means a
new dispatch. The adversarial reviewer and the knowledge agent are exempt.

Many programs run a dispatched agent to its end before you can speak to it. Then ask with its next dispatch, and until
then go by what changed."""


def build_reverification(agent: AgentDefinition) -> str:
    return f"### {REVERIFICATION_HEADING}\n\n{_reverification_text(agent)}"


def _reverification_text(agent: AgentDefinition) -> str:
    if agent.is_orchestrator:
        return _ASKING.format(
            triggers=markdown_table(("cause", "level", "when"), TRIGGERS),
            ping=_message_form("REVERIFY", 1),
            scope=SCOPE,
        )
    return wrap_paragraph(_EXEMPT.format(why=agent.exempt)) if agent.exempt else _ANSWERING
