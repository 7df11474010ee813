"""Where the messages are in what an agent says.

A message begins at the beginning of a line, with its tag in capitals. Whoever tells of it may name the speaker before
it, as a transcript does (`T+12:  implementer-1: [ACK-UPDATE] GC-v5 …`); then it must go on as messages do. It ends
where the next one begins, at the end of the text, or with the fence that it stands in. A tag in the middle of a
sentence is nothing but a word, and so is one on a quoted line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from proofstone.contracts.reverify.text import MESSAGE

_GOES_ON: Final = re.compile(r"(?:Phase|GC-v) ?\d")
_FENCE: Final = "```"


class Block(NamedTuple):
    """A message as it was found: what stands behind the tag, and the lines after that."""

    tag: str
    head: str
    rest: tuple[str, ...]


def blocks(text: str, tags: Collection[str]) -> Iterator[Block]:
    head: tuple[str, str] | None = None
    rest: list[str] = []
    fenced = within = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if (begun := _begun(line, tags)) is not None:
            if head:
                yield Block(*head, tuple(rest))
            else:
                within = fenced
            head, rest = begun, []
        elif not line.lstrip().startswith(_FENCE):
            rest.append(line)
        elif head is None:
            fenced = not fenced
        elif within:
            yield Block(*head, tuple(rest))
            head, fenced, within = None, False, False
        else:
            rest.append(line)
    if head:
        yield Block(*head, tuple(rest))


def _begun(line: str, tags: Collection[str]) -> tuple[str, str] | None:
    """The tag, and what stands behind it."""
    match = MESSAGE.match(line)
    if match is None or match["tag"] not in tags:
        return None
    head = line[match.end() :].strip()
    if match["mark"]:
        head = head.strip("`* ")
    return None if match["speaker"] and not _GOES_ON.match(head) else (match["tag"], head)
