"""A role's prompt taken apart, so that each part finds its place in a definition.

Every heading has its place in the table below. One that has none is our own fault: a part of a prompt must not be lost
on the way because somebody gave it a new name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Final

from proofstone.errors import InternalError
from proofstone.roles import Role

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
    own = (files("proofstone.surfaces.export") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    common = (files("proofstone.roles") / "prompts" / "common.md").read_text(encoding="utf-8")
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
