"""Split the prompts of roles into the parts of a definition, and describe the programs that read definitions.

Every heading of a prompt is in the table below. An unknown heading is an internal error, so that no part of a prompt is
lost because its heading was renamed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Final

from proofstone.agents.roles.role import Role
from proofstone.agents.tools.models import Tool
from proofstone.errors import InternalError


class Ability(StrEnum):
    """What an agent can do, independent of the program's tool names."""

    DISPATCH = "dispatch agents"
    READ = "read files"
    SEARCH = "search"
    EDIT = "write files"
    RUN = "run commands"
    WEB = "look on the web"


ABILITY_BY_TOOL: Final[Mapping[Tool, Ability]] = {
    Tool.READ: Ability.READ,
    Tool.LIST: Ability.SEARCH,
    Tool.GLOB: Ability.SEARCH,
    Tool.GREP: Ability.SEARCH,
    Tool.SYMBOLS: Ability.SEARCH,
    Tool.WRITE: Ability.EDIT,
    Tool.EDIT: Ability.EDIT,
    Tool.DELETE: Ability.EDIT,
    Tool.RUN: Ability.RUN,
    Tool.GIT_LOG: Ability.RUN,
    Tool.GIT_SHOW: Ability.RUN,
    Tool.GIT_DIFF: Ability.RUN,
    Tool.MEMORY_SEARCH: Ability.SEARCH,
    Tool.WEB_SEARCH: Ability.WEB,
    Tool.WEB_FETCH: Ability.WEB,
    Tool.DISPUTE: Ability.RUN,
}
"""The ability that replaces each tool of Proofstone. Elsewhere only a shell reads the history, and a memory consists of
files.
"""
HISTORY_TOOLS: Final = (Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF)


@dataclass(frozen=True)
class Host:
    name: str
    tools: Mapping[Ability, tuple[str, ...]]
    """The tool names that its files list."""
    other_tool_names: Mapping[Ability, tuple[str, ...]]
    """Further names for these tools."""
    agents: str
    """The folder of the agents, relative to the root of the export."""
    suffix: str
    references: str
    """The folder of the reference documents."""
    limits: str
    """How strictly the program keeps an agent to its tools."""

    def agent_path(self, agent: str) -> str:
        return f"{self.agents}/{agent}{self.suffix}"

    def list_tools(self, abilities: Collection[Ability]) -> list[str]:
        """Return the program's tool names for the abilities, in order."""
        return [name for ability in Ability if ability in abilities for name in self.tools[ability]]


_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^(?:- )", re.MULTILINE)
_ENGINE_ANSWER_MARK: Final = "JSON"
"""Rules with this word say how an answer reaches the engine. They are left out: here the answer is a file, as the
definition says.
"""
_EXPORTED_NAMES: Final[Mapping[str, str]] = {"executor": "implementer", "specifier": "spec agent"}


class PromptSection(StrEnum):
    GIVEN = "given"
    WORK = "work"
    MORE_WORK = "more work"
    """A part of the work with its own heading."""
    JUDGED = "judged"
    ANSWER = "answer"
    RULES = "rules"


_PART_BY_HEADING: Final[Mapping[str, PromptSection]] = {
    "What you get": PromptSection.GIVEN,
    "What you return": PromptSection.ANSWER,
    "Rules": PromptSection.WORK,
    "What happens with your answer": PromptSection.JUDGED,
    "What you are given": PromptSection.GIVEN,
    "How to work": PromptSection.WORK,
    "What a challenge is": PromptSection.MORE_WORK,
    "What is looked up": PromptSection.MORE_WORK,
    "What will be judged": PromptSection.JUDGED,
    "Your answer": PromptSection.ANSWER,
    "Tools": PromptSection.RULES,
    "Every agent": PromptSection.RULES,
}


@dataclass(frozen=True)
class DefinitionPrompt:
    purpose: str
    given: str
    work: str
    judged: str
    answer: str
    rules: tuple[str, ...]


def read_role_prompt(role: Role) -> DefinitionPrompt:
    return split_prompt(role.instructions)


def read_own_prompt(name: str) -> DefinitionPrompt:
    """Return the prompt of an agent that is not a role of the product: a file here, with the rules that all agents
    share.
    """
    own = (files("proofstone.export") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    folder = files("proofstone.agents.roles") / "prompts"
    shared = "\n\n".join((folder / part).read_text(encoding="utf-8").rstrip() for part in ("tools.md", "common.md"))
    return split_prompt(f"{own.rstrip()}\n\n{shared}\n")


def split_prompt(text: str) -> DefinitionPrompt:
    purpose, *rest = _HEADING.split(text)
    bodies: dict[PromptSection, list[str]] = {place: [] for place in PromptSection}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        place = _PART_BY_HEADING.get(heading)
        if place is None:
            raise InternalError(f"a prompt has the heading {heading!r}, which has no place in a definition")
        bodies[place].append(f"### {heading}\n\n{body.strip()}" if place is PromptSection.MORE_WORK else body.strip())
    rules = [
        rule for body in bodies[PromptSection.RULES] for rule in _list_items(body) if _ENGINE_ANSWER_MARK not in rule
    ]
    return DefinitionPrompt(
        purpose=rename_roles(purpose.strip()),
        given=rename_roles("\n\n".join(bodies[PromptSection.GIVEN])),
        work=rename_roles("\n\n".join((*bodies[PromptSection.WORK], *bodies[PromptSection.MORE_WORK]))),
        judged=rename_roles("\n\n".join(bodies[PromptSection.JUDGED])),
        answer=rename_roles("\n\n".join(bodies[PromptSection.ANSWER])),
        rules=tuple(map(rename_roles, rules)),
    )


def rename_roles(text: str) -> str:
    """Replace the names of roles that have another name among the exported agents."""
    return re.sub(r"\b(executor|specifier)\b", lambda name: _EXPORTED_NAMES[name[0]], text)


def _list_items(body: str) -> list[str]:
    """Return the items of a list, each on one line."""
    return [" ".join(item.split()) for item in _ITEM.split(body) if item.strip()]
