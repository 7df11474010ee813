"""The fields of a message's first line: `Phase 6 | Level 2 | Target: implementer-1`."""

from __future__ import annotations

import re
from typing import Final

from proofstone.core.reverify.found import Block


class MalformedError(ValueError):
    """What a message lacks, in words for whoever wrote it."""


_FIELD: Final = re.compile(r"\s*([A-Za-z][A-Za-z ]*?)\s*(?::|\s(?=\d))\s*(.*?)\s*", re.DOTALL)
_NUMBER: Final = re.compile(r"([0-9]{1,9})\s*%?")
_OF: Final = re.compile(r"([0-9]{1,9})\s*/\s*([0-9]{1,9})")


class Fields:
    """`Phase 6 | Level 2 | Target: …` by label. The last one may hold bars of its own."""

    def __init__(self, block: Block, last: str = "") -> None:
        head = " ".join((block.head, *_going_on(block.rest)))
        self._said: dict[str, str] = {}
        if last:
            label = last.replace(" ", r"\s+")
            found = re.search(rf"(?:^|\|)\s*{label}\s*:", head, re.IGNORECASE)
            if found:
                self._said[last.casefold()] = head[found.end() :].strip()
                head = head[: found.start()]
        for part in filter(str.strip, head.split("|")):
            match = _FIELD.fullmatch(part)
            if match is None:
                raise MalformedError(f"`{part.strip()}` has no label")
            self._said.setdefault(" ".join(match[1].casefold().split()), match[2])

    def maybe(self, label: str) -> str | None:
        return self._said.get(label.casefold()) or None

    def text(self, label: str) -> str:
        said = self.maybe(label)
        if said is None:
            raise MalformedError(f"`{label}` is missing")
        return said

    def number(self, label: str) -> int:
        match = _NUMBER.fullmatch(self.text(label))
        if match is None:
            raise MalformedError(f"`{label}` is a number, not `{self.text(label)}`")
        return int(match[1])

    def of(self, label: str) -> tuple[int, int]:
        match = _OF.fullmatch(self.text(label))
        if match is None:
            raise MalformedError(f"`{label}` is one number of another, `2/3`, not `{self.text(label)}`")
        return int(match[1]), int(match[2])

    def phase(self) -> int | None:
        return None if self.maybe("Phase") is None else self.number("Phase")


def _going_on(rest: tuple[str, ...]) -> list[str]:
    """Lines that go on with the first one: they begin with the bar."""
    lines: list[str] = []
    for line in rest:
        if not line.lstrip().startswith("|"):
            break
        lines.append(line.strip())
    return lines


def leading(head: str, *labels: str) -> tuple[list[int], str]:
    """The numbered fields that it begins with, and what comes after them."""
    found = []
    for label in labels:
        match = re.match(rf"\s*{label}\s*:?\s*([0-9]{{1,9}})\s*(?:[|:]|$)", head, re.IGNORECASE)
        if match is None:
            raise MalformedError(f"`{label}` with its number is missing")
        found.append(int(match[1]))
        head = head[match.end() :]
    return found, head.strip()
