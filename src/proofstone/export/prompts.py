"""Where the definitions are read: what each program calls its tools, and where it looks for files.

A role's prompt taken apart, so that each part finds its place in a definition.

Every heading has its place in the table below. One that has none is our own fault: a part of a prompt must not be lost
on the way because somebody gave it a new name.
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
    """What an agent can do, whatever the program calls it."""

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
"""What stands in for a tool of Proofstone's. Elsewhere only a shell reads the history, and a memory is files."""
HISTORY: Final = (Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF)


@dataclass(frozen=True)
class Host:
    name: str
    tools: Mapping[Ability, tuple[str, ...]]
    """By the names that its files list them under."""
    also: Mapping[Ability, tuple[str, ...]]
    """Further names under which an agent may meet them."""
    agents: str
    """Folder of the agents, from the root of the export."""
    suffix: str
    references: str
    """Folder of the reference documents."""
    limits: str
    """How far it keeps an agent to its tools."""

    def file(self, agent: str) -> str:
        return f"{self.agents}/{agent}{self.suffix}"

    def named(self, abilities: Collection[Ability]) -> list[str]:
        """Its names for the tools, in their order."""
        return [name for ability in Ability if ability in abilities for name in self.tools[ability]]


_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^(?:- )", re.MULTILINE)
_ANOTHER_WAY: Final = "JSON"
"""The rule that speaks of it says how an answer reaches the engine. Here it is a file, and the definition says so."""
_THEIR_NAMES: Final[Mapping[str, str]] = {"executor": "implementer", "specifier": "spec agent"}


class Place(StrEnum):
    GIVEN = "given"
    WORK = "work"
    MORE_WORK = "more work"
    """A part of the work with a heading of its own."""
    JUDGED = "judged"
    ANSWER = "answer"
    RULES = "rules"


_PLACES: Final[Mapping[str, Place]] = {
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
    """Of an agent that is no role of the product: a file here, with the rules that all have in common."""
    own = (files("proofstone.export") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    common = (files("proofstone.agents.roles") / "prompts" / "common.md").read_text(encoding="utf-8")
    return taken_apart(f"{own.rstrip()}\n\n{common}")


def taken_apart(text: str) -> Prompt:
    purpose, *rest = _HEADING.split(text)
    found: dict[Place, list[str]] = {place: [] for place in Place}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        place = _PLACES.get(heading)
        if place is None:
            raise InternalError(f"a prompt has the heading {heading!r}, which has no place in a definition")
        found[place].append(f"### {heading}\n\n{body.strip()}" if place is Place.MORE_WORK else body.strip())
    rules = [rule for body in found[Place.RULES] for rule in _items(body) if _ANOTHER_WAY not in rule]
    return Prompt(
        purpose=renamed(purpose.strip()),
        given=renamed("\n\n".join(found[Place.GIVEN])),
        work=renamed("\n\n".join((*found[Place.WORK], *found[Place.MORE_WORK]))),
        judged=renamed("\n\n".join(found[Place.JUDGED])),
        answer=renamed("\n\n".join(found[Place.ANSWER])),
        rules=tuple(map(renamed, rules)),
    )


def renamed(text: str) -> str:
    """Roles that go by another name among the exported agents."""
    return re.sub(r"\b(executor|specifier)\b", lambda name: _THEIR_NAMES[name[0]], text)


def _items(body: str) -> list[str]:
    """The items of a list, each on one line."""
    return [" ".join(item.split()) for item in _ITEM.split(body) if item.strip()]
