"""What an agent may use and what not, in the words of the program that it runs in; and how far that holds there.

Being asked in the middle of the work whether one still knows what one is doing: the section of each definition.

The lines between brackets are a wire format, written and read exactly so.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from proofstone.agents.tools.models import Tool
from proofstone.documents.markdown import item, markdown_table, paragraph
from proofstone.export.definitions import Agent
from proofstone.export.pipeline import BASELINE
from proofstone.export.prompts import ABILITY, Ability, Host
from proofstone.supervision.rules.wire import FORMS, SCOPE


def tool_access(agent: Agent, host: Host) -> str:
    allowed = [_line(host, entry, _only(agent, entry)) for entry in Ability if entry in agent.abilities]
    forbidden = [_line(host, entry, "") for entry in Ability if entry in agent.forbidden]
    rows = [(f"`{tool}`", _instead(host, agent, ABILITY[tool])) for tool in Tool if tool in agent.tools]
    return "\n\n".join(
        (
            "Allowed:\n\n" + "\n".join(allowed),
            "Not allowed:\n\n" + "\n".join(forbidden),
            paragraph(host.limits),
            "Where this page names a tool of Proofstone's own runtime:\n\n" + markdown_table(("there", "here"), rows),
        )
    )


def _line(host: Host, ability: Ability, only: str) -> str:
    names = " ".join(filter(None, (_quoted(host.tools[ability]), _in_brackets(host.also.get(ability, ())))))
    return item("- ", ": ".join(filter(None, (names, ability.value, only))))


def _only(agent: Agent, ability: Ability) -> str:
    """How far the ability goes, where it does not go all the way."""
    match agent.name, ability:
        case "orchestrator", Ability.RUN:
            return (
                "only `proofstone`, `date`, and of git `status`, `rev-parse`, `ls-files`, `log`, `show`, "
                "`diff`, `tag`, "
                "`switch -c`, and in step 9 `add` and `commit`. No builds, no tests, nothing that writes a file"
            )
        case "verifier", Ability.RUN:
            return (
                f"`proofstone check`, the project's own checks, and git to look at `{BASELINE}`; nothing that "
                f"changes a "
                "source file"
            )
        case "implementer", Ability.RUN:
            return (
                "what the task's commands and the project's own checks need; no network, and git only to look, or to "
                f"take a task back from `{BASELINE}`"
            )
        case "implementer", Ability.EDIT:
            return "only the files that the task declares, and its own report"
        case _, Ability.EDIT:
            return "only its own outputs, named above"
        case _:
            return ""


def _instead(host: Host, agent: Agent, ability: Ability) -> str:
    if ability not in agent.abilities:
        return "nothing: say in your output what you could not look up"
    return _quoted(host.tools[ability]) or f"whatever you {ability} with"


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _in_brackets(names: tuple[str, ...]) -> str:
    return f"({_quoted(names)})" if names else ""


HEADING: Final = "Mid-Execution Re-Verification (COA-4)"


class Trigger(NamedTuple):
    cause: str
    level: int
    when: str


TRIGGERS: Final = (
    Trigger("silence", 1, "nothing was heard of the agent for 15 minutes"),
    Trigger("stale documents", 1, "`Docs: stale` twice in a row"),
    Trigger("scope change", 2, "something changed that touches its files or criteria"),
    Trigger("milestone", 2, "it goes from one task to the next, where you want to be sure"),
    Trigger("no research", 2, "past half of a task without one look at the code or its documents"),
    Trigger("deviation", 3, "the files that changed are not those of its task"),
    Trigger("recovery", 1, "you have lost your own place; go up to level 3 where an answer does not fit"),
)


def _form(tag: str, level: int = 0) -> str:
    """How the runtime itself writes and reads it."""
    return FORMS[tag].replace("{L}", str(level)).replace("{response content}", "{answer}")


_ASKED: Final = f"""On `[REVERIFY]` from the orchestrator, stop at the next point where you can, answer, and go on:

- Level 1: respond with `[SELF-LOCATE]`, where you are now, on one line:
  `{_form("SELF-LOCATE")}`,
  where `Docs` is about what you write down for others
- Level 2: respond with `[REVERIFY-RESPONSE]` and an answer to the very question:
  `{_form("REVERIFY-RESPONSE", 2)}`
- Level 3: respond with `[REVERIFY-RESPONSE]` and an abbreviated impact analysis:

```
{_form("REVERIFY-RESPONSE", 3).removesuffix(" | {answer}")}

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

_ASKS: Final = """You are the one who asks. An agent that understood its task can drift; find out before it is done:

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


def reverification(agent: Agent) -> str:
    return f"### {HEADING}\n\n{_text(agent)}"


def _text(agent: Agent) -> str:
    if agent.leads:
        return _ASKS.format(
            triggers=markdown_table(("cause", "level", "when"), TRIGGERS), ping=_form("REVERIFY", 1), scope=SCOPE
        )
    return paragraph(_EXEMPT.format(why=agent.exempt)) if agent.exempt else _ASKED
