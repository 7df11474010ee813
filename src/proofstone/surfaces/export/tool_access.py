"""What an agent may use and what not, in the words of the program that it runs in; and how far that holds there."""

from __future__ import annotations

from proofstone.contracts.tools import Tool
from proofstone.surfaces.export.definitions import Agent
from proofstone.surfaces.export.hosts import ABILITY, Ability, Host
from proofstone.surfaces.export.markdown import item, paragraph, table
from proofstone.surfaces.export.pipeline import BASELINE


def tool_access(agent: Agent, host: Host) -> str:
    allowed = [_line(host, one, _only(agent, one)) for one in Ability if one in agent.abilities]
    forbidden = [_line(host, one, "") for one in Ability if one in agent.forbidden]
    rows = [(f"`{tool}`", _instead(host, agent, ABILITY[tool])) for tool in Tool if tool in agent.tools]
    return "\n\n".join(
        (
            "Allowed:\n\n" + "\n".join(allowed),
            "Not allowed:\n\n" + "\n".join(forbidden),
            paragraph(host.limits),
            "Where this page names a tool of Proofstone's own runtime:\n\n" + table(("there", "here"), rows),
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
