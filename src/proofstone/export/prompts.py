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


ABILITY: Final[Mapping[Tool, Ability]] = {
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
}
"""The ability that replaces each tool of Proofstone. Elsewhere only a shell reads the history, and a memory consists of
files.
"""
HISTORY: Final = (Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF)


@dataclass(frozen=True)
class Host:
    name: str
    tools: Mapping[Ability, tuple[str, ...]]
    """The tool names that its files list."""
    also: Mapping[Ability, tuple[str, ...]]
    """Further names for these tools."""
    agents: str
    """The folder of the agents, relative to the root of the export."""
    suffix: str
    references: str
    """The folder of the reference documents."""
    limits: str
    """How strictly the program keeps an agent to its tools."""

    def file(self, agent: str) -> str:
        return f"{self.agents}/{agent}{self.suffix}"

    def named(self, abilities: Collection[Ability]) -> list[str]:
        """Return the program's tool names for the abilities, in order."""
        return [name for ability in Ability if ability in abilities for name in self.tools[ability]]


_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^(?:- )", re.MULTILINE)
_ENGINE_ANSWER_MARK: Final = "JSON"
"""Rules with this word say how an answer reaches the engine. They are left out: here the answer is a file, as the
definition says.
"""
_EXPORTED_NAMES: Final[Mapping[str, str]] = {"executor": "implementer", "specifier": "spec agent"}


class Place(StrEnum):
    GIVEN = "given"
    WORK = "work"
    MORE_WORK = "more work"
    """A part of the work with its own heading."""
    JUDGED = "judged"
    ANSWER = "answer"
    RULES = "rules"


_PART_BY_HEADING: Final[Mapping[str, Place]] = {
    "What you are given": Place.GIVEN,
    "How to work": Place.WORK,
    "Pushback": Place.MORE_WORK,
    "What a challenge is": Place.MORE_WORK,
    "What is looked up": Place.MORE_WORK,
    "What will be judged": Place.JUDGED,
    "Your answer": Place.ANSWER,
    "How your words are taken": Place.RULES,
    "Tools": Place.RULES,
    "The answer": Place.RULES,
}


@dataclass(frozen=True)
class Prompt:
    purpose: str
    given: str
    work: str
    judged: str
    answer: str
    rules: tuple[str, ...]


def prompt_of(role: Role) -> Prompt:
    return taken_apart(role.instructions)


def own_prompt(name: str) -> Prompt:
    """Return the prompt of an agent that is not a role of the product: a file here, with the rules that all agents
    share.
    """
    own = (files("proofstone.export") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    common = (files("proofstone.agents.roles") / "prompts" / "common.md").read_text(encoding="utf-8")
    return taken_apart(f"{own.rstrip()}\n\n{common}")


def taken_apart(text: str) -> Prompt:
    purpose, *rest = _HEADING.split(text)
    bodies: dict[Place, list[str]] = {place: [] for place in Place}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        place = _PART_BY_HEADING.get(heading)
        if place is None:
            raise InternalError(f"a prompt has the heading {heading!r}, which has no place in a definition")
        bodies[place].append(f"### {heading}\n\n{body.strip()}" if place is Place.MORE_WORK else body.strip())
    rules = [rule for body in bodies[Place.RULES] for rule in _list_items(body) if _ENGINE_ANSWER_MARK not in rule]
    return Prompt(
        purpose=renamed(purpose.strip()),
        given=renamed("\n\n".join(bodies[Place.GIVEN])),
        work=renamed("\n\n".join((*bodies[Place.WORK], *bodies[Place.MORE_WORK]))),
        judged=renamed("\n\n".join(bodies[Place.JUDGED])),
        answer=renamed("\n\n".join(bodies[Place.ANSWER])),
        rules=tuple(map(renamed, rules)),
    )


def renamed(text: str) -> str:
    """Replace the names of roles that have another name among the exported agents."""
    return re.sub(r"\b(executor|specifier)\b", lambda name: _EXPORTED_NAMES[name[0]], text)


def _list_items(body: str) -> list[str]:
    """Return the items of a list, each on one line."""
    return [" ".join(item.split()) for item in _ITEM.split(body) if item.strip()]
