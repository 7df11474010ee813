"""Where the definitions are read: what each program calls its tools, and where it looks for files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from proofstone.contracts.tools import Tool


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
