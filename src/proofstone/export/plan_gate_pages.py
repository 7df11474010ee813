"""The agents of the plan gate as pages, for use without Proofstone's runtime: prompts, contracts and the decision
table.

They are not part of the feature pipeline and have their own severities, so they are in a separate folder.
"""

from __future__ import annotations

from typing import Final

from proofstone.agents.roles.registry import PLAN_GATE_ROLES, ROLES
from proofstone.agents.roles.role import Role
from proofstone.agents.tools.models import Tool
from proofstone.documents.markdown import markdown_table, numbered_list, wrap_paragraph
from proofstone.export.prompts import ABILITY_BY_TOOL, Host, read_role_prompt
from proofstone.export.schemas import write_schema
from proofstone.plan_gate.rules.decision import DECISION_TABLE, DecisionRow

FOLDER: Final = "plan-gate"
OVERVIEW: Final = f"{FOLDER}/README.md"

_ORDER: Final = (
    "challenger",
    "domain_expert",
    "devils_advocate",
    "researcher:resolve",
    "researcher:surface",
    "researcher:probe",
    "synthesizer",
    "challenger:audit",
)
"""The order in which the agents are asked."""


def list_plan_gate_roles() -> dict[str, Role]:
    """Return the roles by name, in the order in which they are asked."""
    return {name: PLAN_GATE_ROLES.get(name) or ROLES[name] for name in _ORDER}


def build_plan_gate_pages(host: Host) -> dict[str, str]:
    """Return the files by path."""
    rows = [(f"[{_title(name)}]({_file(name)})", role.title) for name, role in list_plan_gate_roles().items()]
    overview = _OVERVIEW.format(
        roster=markdown_table(("agent", "what it does"), rows),
        decisions=markdown_table(("the first that holds", "status", "verdict"), map(_decision_cells, DECISION_TABLE)),
        limits=wrap_paragraph(f"{host.limits} {_COUNTED}"),
    )
    return {
        OVERVIEW: overview,
        **{f"{FOLDER}/{_file(name)}": _page(name, role) for name, role in list_plan_gate_roles().items()},
    }


def _page(name: str, role: Role) -> str:
    prompt = read_role_prompt(role)
    return _PAGE.format(
        title=_title(name),
        purpose=prompt.purpose,
        given=prompt.given,
        input=write_schema((), role.input),
        work=prompt.work,
        judged=prompt.judged,
        answer=prompt.answer,
        output=write_schema((), role.output),
        rules=numbered_list((*prompt.rules, _ENGINE)),
        tools=_tools_section(role),
    )


def _tools_section(role: Role) -> str:
    if not role.tools:
        return "None: everything that is needed is in the dispatch."
    rows = [(f"`{tool}`", f"whatever you {ABILITY_BY_TOOL[tool]} with") for tool in Tool if tool in role.tools]
    listing = markdown_table(("there", "here"), rows)
    return f"None that writes. Where this page names a tool of Proofstone's own runtime:\n\n{listing}"


def _decision_cells(row: DecisionRow) -> tuple[str, str, str]:
    return row.when, row.status, f"{row.verdict or '–'}{' (strong)' if row.is_strong else ''}"


def _title(name: str) -> str:
    """Turn `researcher:resolve` into `Researcher Resolve`."""
    return name.replace(":", " ").replace("_", " ").title()


def _file(name: str) -> str:
    return f"{name.replace(':', '-').replace('_', '-')}.md"


_ENGINE: Final = (
    "Where these rules speak of the engine, it is Proofstone. Here whoever leads the discussion takes its "
    "place: gives the "
    "ids, keeps to the caps, and looks up every claim before it counts."
)
_COUNTED: Final = (
    "`proofstone verify-plan PLAN.md` does all of this by itself: it finds without any model what code can "
    "find, gives the "
    "ids, counts tool calls and challenges, looks up every claim about the repository, and keeps the record."
)
_OVERVIEW: Final = """# The plan gate

Before work starts, a plan is attacked until nothing grave stands against it, or it is sent back.

## The agents

{roster}

## An iteration, of at most three

1. **Challenge.** The challenger; in the first iteration of a complex plan also the domain expert and the devil's
   advocate. At most eight challenges are active; of more, the gravest stay and the rest is only reported.
2. **Research.** Resolve takes the open challenges. Surface and Probe look further, in the first iteration and when the
   synthesizer directs it; together they bring at most two new challenges.
3. **Synthesis.** The synthesizer rules on each challenge. What is settled stays settled.
4. **Decision**, by the table below. A pause asks the person; the answer begins the next iteration.

In the end the challenger audits what was decided, and what is MINOR and still open is deferred.

## The table

{decisions}

## What holds here, and what does not

{limits}
"""
_PAGE: Final = """# {title}

> **Type:** Agent of the [plan gate](README.md)

{purpose}

## What you are given

{given}

```yaml
{input}```

## How to work

{work}

## What will be judged

{judged}

## Your answer

{answer}

```yaml
{output}```

## Operating rules

{rules}

## Tools

{tools}
"""
