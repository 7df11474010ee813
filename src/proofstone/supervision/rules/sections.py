"""Where the messages are in what an agent says.

A message begins at the beginning of a line, with its tag in capitals. Whoever tells of it may name the speaker before
it, as a transcript does (`T+12:  implementer-1: [ACK-UPDATE] GC-v5 …`); then it must go on as messages do. It ends
where the next one begins, at the end of the text, or with the fence that it stands in. A tag in the middle of a
sentence is nothing but a word, and so is one on a quoted line.

The fields of a message's first line: `Phase 6 | Level 2 | Target: implementer-1`.

Messages that have more than one line: the two analyses in sections, and the lines of a context update.

Headings and labels are known by their words, whatever their size; an entry of a list may be wrapped. Names stand
between backticks in what is written here, and may do without in what is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from proofstone.supervision.models.context import MESSAGE, DeltaLine, Operation
from proofstone.supervision.models.ladder import Impact, MiniAnalysis
from proofstone.supervision.models.understanding import Cited, ImpactAnalysis, ImpactedFile, Interface

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


# The abbreviated analysis of level 3.

REANALYSIS: Final = "Abbreviated Re-IA"
SUMMARY: Final = "Change Summary"
_LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "task": "RC-01 (Task Understanding)",
        "files": "RC-04 (File List)",
        "downstream": "RC-07 (Downstream Chain)",
        "claimed_before": "Original IA claimed",
        "reality": "Current reality",
        "impact": "Impact",
    }
)
_IN_SUMMARY: Final = "claimed_before"


def written_mini(analysis: MiniAnalysis) -> str:
    lines = [f"## {REANALYSIS}"]
    for field, label in _LABELS.items():
        if field == _IN_SUMMARY:
            lines += ["", f"## {SUMMARY}"]
        lines.append(f"- {label}: {getattr(analysis, field)}")
    return "\n".join(lines)


def is_mini(lines: Iterable[str]) -> bool:
    return _words(REANALYSIS) in (_words(title) for title in map(_heading, lines) if title is not None)


def read_mini(lines: Iterable[str]) -> MiniAnalysis:
    entries = _entries(lines)
    said: dict[str, Any] = {field: _labelled(entries, label) for field, label in _LABELS.items()}
    missing = [f"`{label}:`" for field, label in _LABELS.items() if not said[field]]
    if missing:
        raise MalformedError(f"it says nothing under {', '.join(missing)}")
    return MiniAnalysis(**said | {"impact": _impact(said["impact"])})


def _labelled(entries: Iterable[str], label: str) -> str:
    """What stands behind a label, of which the first word or the item's number is enough."""
    short = label.split(" (")[0]
    pattern = re.compile(rf"{re.escape(short)}(?: ?\([^()]*\))? ?:(.*)", re.IGNORECASE)
    return next((match[1].strip() for entry in entries if (match := pattern.match(entry))), "")


def _impact(said: str) -> Impact:
    named = {item for item in Impact if re.search(rf"\b{item.value}\b", said)}
    if len(named) != 1:
        raise MalformedError(f"`Impact:` is one of {', '.join(Impact)}, not `{said}`")
    return named.pop()


# The impact analysis before the work.

_SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "task_understanding": "Task Understanding",
        "upstream": "Upstream Context",
        "files": "Files and Functions Impact Map",
        "interfaces": "Interface Contracts",
        "cross_agent_impact": "Cross-Agent Impact",
        "risk": "Risk",
    }
)
"""The first word of a heading tells which it is, one of it or many."""


def written_analysis(analysis: ImpactAnalysis) -> str:
    bodies = {
        "task_understanding": analysis.task_understanding,
        "upstream": _bullets(f"{_quoted(item.artifact)}: {item.says}" for item in analysis.upstream),
        "files": _bullets(_written_file(file) for file in analysis.files),
        "interfaces": _bullets(
            f"{_quoted(interface.path)}: {_quoted(interface.symbol, new=interface.new)}: {interface.signature}"
            for interface in analysis.interfaces
        ),
        "cross_agent_impact": analysis.cross_agent_impact,
        "risk": analysis.risk,
    }
    return "\n\n".join(f"## {title}\n{bodies[field]}".rstrip("\n") for field, title in _SECTIONS.items())


def read_analysis(lines: Iterable[str]) -> ImpactAnalysis:
    bodies: dict[str, list[str]] = {}
    into: list[str] = []
    for line in lines:
        title = _heading(line)
        if title is None:
            into.append(line)
        else:
            into = bodies.setdefault(_section(title), [])
    missing = [f"`## {title}`" for field, title in _SECTIONS.items() if field not in bodies]
    if missing:
        raise MalformedError(f"it has no section {', '.join(missing)}")
    return ImpactAnalysis(
        task_understanding="\n".join(bodies["task_understanding"]),
        upstream=tuple(_cited(item) for item in _listed(bodies, "upstream")),
        files=tuple(_file(item) for item in _listed(bodies, "files")),
        interfaces=tuple(_interface(item) for item in _listed(bodies, "interfaces")),
        cross_agent_impact="\n".join(bodies["cross_agent_impact"]),
        risk="\n".join(bodies["risk"]),
    )


def _section(title: str) -> str:
    """The field that the heading is for; of one that we do not know, its own words."""
    first = "".join(_words(title)[:1]).removesuffix("s")
    return next((field for field, known in _SECTIONS.items() if _words(known)[0].removesuffix("s") == first), title)


def _listed(bodies: Mapping[str, Sequence[str]], field: str) -> list[str]:
    entries = _entries(bodies[field])
    said = entries or [" ".join(" ".join(bodies[field]).split())]
    if len(said) == 1 and said[0].strip(" .()").casefold() in _NOTHING:
        return []
    if not entries:
        raise MalformedError(f"under `## {_SECTIONS[field]}` each entry is a line that begins with `- `")
    return entries


_NOTHING: Final = frozenset({"", "none", "n/a", "nothing", "-"})
_ENTRY: Final = re.compile(r"(?:`(?P<quoted>[^`]+)`|(?P<plain>.+?)) ?(?P<new>\(NEW\))? ?(?:[:—–](?: (?P<rest>.*))?)?")


def _parted(entry: str) -> tuple[str, bool, str]:
    """A name, whether it is new, and what is said of it."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise MalformedError(f"`{entry}` is no entry: a name, a colon, and what there is to say of it")
    return match["quoted"] or match["plain"], match["new"] is not None, match["rest"] or ""


def _written_file(file: ImpactedFile) -> str:
    functions = ", ".join(map(_quoted, file.functions))
    return _quoted(file.path, new=file.new) + (f": {functions}" if functions else "")


def _file(entry: str) -> ImpactedFile:
    path, new, functions = _parted(entry)
    return ImpactedFile(path=path, new=new, functions=names(functions))


def _cited(entry: str) -> Cited:
    artifact, _, says = _parted(entry)
    if not says:
        raise MalformedError(f"`{entry}` cites something and does not say what of it matters")
    return Cited(artifact=artifact, says=says)


def _interface(entry: str) -> Interface:
    path, new_file, rest = _parted(entry)
    symbol, new, signature = _parted(rest) if rest else ("", False, "")
    if not signature:
        raise MalformedError(f"`{entry}` is no interface: `path: symbol: signature`")
    return Interface(path=path, symbol=symbol, signature=signature, new=new or new_file)


def names(listed: str) -> tuple[str, ...]:
    """Names with commas between them. That one is new is no part of it."""
    return tuple(name for part in listed.split(",") if (name := part.strip().removesuffix("(NEW)").strip("` ")))


# The lines of a context update.

_DELTA: Final = re.compile(
    rf"\s*(?:[-*] )?\s*(?:Delta:)?\s*(?P<operation>{'|'.join(Operation)})\s+"
    r"§?\s*(?P<section>.+?):\s+(?P<key>.+?):\s+(?P<text>.+)"
)


def written_delta(line: DeltaLine) -> str:
    return f'Delta: {line.operation} §{line.section}: {line.key}: "{line.text}"'


def read_delta(lines: Iterable[str]) -> tuple[DeltaLine, ...]:
    """Up to the first line that is none. Empty ones do not matter."""
    found: list[DeltaLine] = []
    for line in filter(str.strip, lines):
        match = _DELTA.fullmatch(line.rstrip())
        if match is None and line.strip().startswith("Delta:"):
            raise MalformedError(f"`{line.strip()}` is none of {', '.join(Operation)} with section, key and text")
        if match is None:
            break
        text = match["text"]
        quoted = len(text) > 1 and text[0] == text[-1] == '"'
        found.append(DeltaLine(**match.groupdict() | {"text": text[1:-1] if quoted else text}))
    return tuple(found)


# What sections are made of.

_HEADING: Final = re.compile(r"\s*#+\s*(?:\d+[.)])?(.*)")
_BULLET: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")


def _heading(line: str) -> str | None:
    match = _HEADING.match(line)
    return match[1].strip("* :\t") if match else None


def _words(title: str) -> list[str]:
    return re.findall(r"\w+", title.casefold())


def _entries(lines: Iterable[str]) -> list[str]:
    """Each on one line. A wrapped one goes on until an empty line; what stands before the first is an introduction."""
    entries: list[list[str]] = []
    goes_on = False
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet:
            entries.append([bullet[1]])
        elif goes_on and line.strip() and _heading(line) is None:
            entries[-1].append(line)
        goes_on = bool(entries and line.strip() and _heading(line) is None and (bullet or goes_on))
    return [_plain(" ".join(" ".join(parts).split())) for parts in entries]


def _plain(entry: str) -> str:
    """Without the stars around its first words."""
    return entry.replace("**", "", 2) if entry.startswith("**") else entry


def _bullets(entries: Iterable[str]) -> str:
    return "\n".join(f"- {entry}" for entry in entries)


def _quoted(name: str, *, new: bool = False) -> str:
    return f"`{name}`{' (NEW)' if new else ''}"
