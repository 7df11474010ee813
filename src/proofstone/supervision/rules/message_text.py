"""The text form of bracketed messages: find them, read the fields of their first line, and read and write their
sections.

A message starts at the beginning of a line, with its tag in capitals. The name of the speaker may come before it, as in
a transcript (`T+12: implementer-1: [ACK-UPDATE] GC-v5 …`); then it must continue as messages do. It ends where the next
message starts, at the end of the text, or with the fence that surrounds it. A tag in the middle of a sentence or on a
quoted line is ordinary text.

The fields of the first line look like `Phase 6 | Level 2 | Target: implementer-1`. Only the two analyses and context
updates have more than one line. Headings and labels are recognised by their words, at any heading level; an entry of a
list may be wrapped. Names are written in backticks, and may be read without them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from proofstone.supervision.models.context import MESSAGE_START, DeltaLine, DeltaOperation
from proofstone.supervision.models.ladder import DeviationImpact, MiniAnalysis
from proofstone.supervision.models.understanding import ArtifactCitation, FileImpact, ImpactAnalysis, InterfaceClaim

_MESSAGE_START: Final = re.compile(r"(?:Phase|GC-v) ?\d")
_FENCE: Final = "```"


class MessageBlock(NamedTuple):
    """A message in a text: its tag, the rest of its first line, and the lines after it."""

    tag: str
    head: str
    rest: tuple[str, ...]


def find_blocks(text: str, tags: Collection[str]) -> Iterator[MessageBlock]:
    head: tuple[str, str] | None = None
    rest: list[str] = []
    fence_open = is_in_fence = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if (start := _match_start(line, tags)) is not None:
            if head:
                yield MessageBlock(*head, tuple(rest))
            else:
                is_in_fence = fence_open
            head, rest = start, []
        elif not line.lstrip().startswith(_FENCE):
            rest.append(line)
        elif head is None:
            fence_open = not fence_open
        elif is_in_fence:
            yield MessageBlock(*head, tuple(rest))
            head, fence_open, is_in_fence = None, False, False
        else:
            rest.append(line)
    if head:
        yield MessageBlock(*head, tuple(rest))


def _match_start(line: str, tags: Collection[str]) -> tuple[str, str] | None:
    """Return the tag and the rest of the line, if a message starts here."""
    match = MESSAGE_START.match(line)
    if match is None or match["tag"] not in tags:
        return None
    head = line[match.end() :].strip()
    if match["mark"]:
        head = head.strip("`* ")
    return None if match["speaker"] and not _MESSAGE_START.match(head) else (match["tag"], head)


class MalformedMessageError(ValueError):
    """A message cannot be read. The text tells its author what is missing."""


_FIELD: Final = re.compile(r"\s*([A-Za-z][A-Za-z ]*?)\s*(?::|\s(?=\d))\s*(.*?)\s*", re.DOTALL)
_NUMBER: Final = re.compile(r"([0-9]{1,9})\s*%?")
_FRACTION: Final = re.compile(r"([0-9]{1,9})\s*/\s*([0-9]{1,9})")


class MessageFields:
    """The fields of `Phase 6 | Level 2 | Target: …` by label. The last field may contain bars."""

    def __init__(self, block: MessageBlock, last: str = "") -> None:
        head = " ".join((block.head, *_continuation_lines(block.rest)))
        self._values: dict[str, str] = {}
        if last:
            label = last.replace(" ", r"\s+")
            last_field = re.search(rf"(?:^|\|)\s*{label}\s*:", head, re.IGNORECASE)
            if last_field:
                self._values[last.casefold()] = head[last_field.end() :].strip()
                head = head[: last_field.start()]
        for part in filter(str.strip, head.split("|")):
            field = _FIELD.fullmatch(part)
            if field is None:
                raise MalformedMessageError(f"`{part.strip()}` has no label")
            self._values.setdefault(" ".join(field[1].casefold().split()), field[2])

    def maybe(self, label: str) -> str | None:
        return self._values.get(label.casefold()) or None

    def require_text(self, label: str) -> str:
        value = self.maybe(label)
        if value is None:
            raise MalformedMessageError(f"`{label}` is missing")
        return value

    def require_number(self, label: str) -> int:
        match = _NUMBER.fullmatch(self.require_text(label))
        if match is None:
            raise MalformedMessageError(f"`{label}` is a number, not `{self.require_text(label)}`")
        return int(match[1])

    def require_fraction(self, label: str) -> tuple[int, int]:
        match = _FRACTION.fullmatch(self.require_text(label))
        if match is None:
            raise MalformedMessageError(f"`{label}` has the form `2/3`, not `{self.require_text(label)}`")
        return int(match[1]), int(match[2])

    def find_phase(self) -> int | None:
        return None if self.maybe("Phase") is None else self.require_number("Phase")


def _continuation_lines(rest: tuple[str, ...]) -> list[str]:
    """Return the lines that continue the first line: they start with a bar."""
    lines: list[str] = []
    for line in rest:
        if not line.lstrip().startswith("|"):
            break
        lines.append(line.strip())
    return lines


def read_leading_numbers(head: str, *labels: str) -> tuple[list[int], str]:
    """Read the numbered fields at the start, and return their values and the remaining text."""
    numbers = []
    for label in labels:
        match = re.match(rf"\s*{label}\s*:?\s*([0-9]{{1,9}})\s*(?:[|:]|$)", head, re.IGNORECASE)
        if match is None:
            raise MalformedMessageError(f"`{label}` with its number is missing")
        numbers.append(int(match[1]))
        head = head[match.end() :]
    return numbers, head.strip()


# The abbreviated analysis of level 3.

REANALYSIS_HEADING: Final = "Abbreviated Re-IA"
SUMMARY_HEADING: Final = "Change Summary"
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
_FIRST_OF_SUMMARY: Final = "claimed_before"


def write_mini_analysis(analysis: MiniAnalysis) -> str:
    lines = [f"## {REANALYSIS_HEADING}"]
    for field, label in _LABELS.items():
        if field == _FIRST_OF_SUMMARY:
            lines += ["", f"## {SUMMARY_HEADING}"]
        lines.append(f"- {label}: {getattr(analysis, field)}")
    return "\n".join(lines)


def is_mini_analysis(lines: Iterable[str]) -> bool:
    return _words(REANALYSIS_HEADING) in (_words(title) for title in map(_heading, lines) if title is not None)


def read_mini_analysis(lines: Iterable[str]) -> MiniAnalysis:
    entries = _entries(lines)
    values: dict[str, Any] = {field: _find_label(entries, label) for field, label in _LABELS.items()}
    missing = [f"`{label}:`" for field, label in _LABELS.items() if not values[field]]
    if missing:
        raise MalformedMessageError(f"{', '.join(missing)} is missing or empty")
    return MiniAnalysis(**values | {"impact": _read_impact(values["impact"])})


def _find_label(entries: Iterable[str], label: str) -> str:
    """Return the text after a label. The first word of the label or the number of its item is enough."""
    short = label.split(" (")[0]
    pattern = re.compile(rf"{re.escape(short)}(?: ?\([^()]*\))? ?:(.*)", re.IGNORECASE)
    return next((match[1].strip() for entry in entries if (match := pattern.match(entry))), "")


def _read_impact(text: str) -> DeviationImpact:
    impacts = {impact for impact in DeviationImpact if re.search(rf"\b{impact.value}\b", text)}
    if len(impacts) != 1:
        raise MalformedMessageError(f"`Impact:` is one of {', '.join(DeviationImpact)}, not `{text}`")
    return impacts.pop()


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
"""The first word of a heading, in singular or plural, determines its section."""


def write_impact_analysis(analysis: ImpactAnalysis) -> str:
    bodies = {
        "task_understanding": analysis.task_understanding,
        "upstream": _write_bullets(f"{_quote(citation.artifact)}: {citation.says}" for citation in analysis.upstream),
        "files": _write_bullets(_write_file(file) for file in analysis.files),
        "interfaces": _write_bullets(
            f"{_quote(interface.path)}: {_quote(interface.symbol, new=interface.new)}: {interface.signature}"
            for interface in analysis.interfaces
        ),
        "cross_agent_impact": analysis.cross_agent_impact,
        "risk": analysis.risk,
    }
    return "\n\n".join(f"## {title}\n{bodies[field]}".rstrip("\n") for field, title in _SECTIONS.items())


def read_impact_analysis(lines: Iterable[str]) -> ImpactAnalysis:
    bodies: dict[str, list[str]] = {}
    body: list[str] = []
    for line in lines:
        title = _heading(line)
        if title is None:
            body.append(line)
        else:
            body = bodies.setdefault(_match_section(title), [])
    missing = [f"`## {title}`" for field, title in _SECTIONS.items() if field not in bodies]
    if missing:
        raise MalformedMessageError(f"section {', '.join(missing)} is missing")
    return ImpactAnalysis(
        task_understanding="\n".join(bodies["task_understanding"]),
        upstream=tuple(_read_citation(entry) for entry in _list_entries(bodies, "upstream")),
        files=tuple(_read_file(entry) for entry in _list_entries(bodies, "files")),
        interfaces=tuple(_read_interface(entry) for entry in _list_entries(bodies, "interfaces")),
        cross_agent_impact="\n".join(bodies["cross_agent_impact"]),
        risk="\n".join(bodies["risk"]),
    )


def _match_section(title: str) -> str:
    """Return the field that the heading belongs to, or the title of an unknown heading."""
    first = "".join(_words(title)[:1]).removesuffix("s")
    return next((field for field, known in _SECTIONS.items() if _words(known)[0].removesuffix("s") == first), title)


def _list_entries(bodies: Mapping[str, Sequence[str]], field: str) -> list[str]:
    entries = _entries(bodies[field])
    lines = entries or [" ".join(" ".join(bodies[field]).split())]
    if len(lines) == 1 and lines[0].strip(" .()").casefold() in _EMPTY_ENTRIES:
        return []
    if not entries:
        raise MalformedMessageError(f"under `## {_SECTIONS[field]}`, each entry is a line that starts with `- `")
    return entries


_EMPTY_ENTRIES: Final = frozenset({"", "none", "n/a", "nothing", "-"})
_ENTRY: Final = re.compile(r"(?:`(?P<quoted>[^`]+)`|(?P<plain>.+?)) ?(?P<new>\(NEW\))? ?(?:[:—–](?: (?P<rest>.*))?)?")


def _split_entry(entry: str) -> tuple[str, bool, str]:
    """Return the name, whether it is new, and the description."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise MalformedMessageError(f"`{entry}` is not an entry: write a name, a colon and a description")
    return match["quoted"] or match["plain"], match["new"] is not None, match["rest"] or ""


def _write_file(file: FileImpact) -> str:
    functions = ", ".join(map(_quote, file.functions))
    return _quote(file.path, new=file.new) + (f": {functions}" if functions else "")


def _read_file(entry: str) -> FileImpact:
    path, new, functions = _split_entry(entry)
    return FileImpact(path=path, new=new, functions=split_names(functions))


def _read_citation(entry: str) -> ArtifactCitation:
    artifact, _, says = _split_entry(entry)
    if not says:
        raise MalformedMessageError(f"`{entry}` cites something but does not say what matters about it")
    return ArtifactCitation(artifact=artifact, says=says)


def _read_interface(entry: str) -> InterfaceClaim:
    path, new_file, rest = _split_entry(entry)
    symbol, new, signature = _split_entry(rest) if rest else ("", False, "")
    if not signature:
        raise MalformedMessageError(f"`{entry}` is not an interface: write `path: symbol: signature`")
    return InterfaceClaim(path=path, symbol=symbol, signature=signature, new=new or new_file)


def split_names(listed: str) -> tuple[str, ...]:
    """Split a comma-separated list of names, without the marks `(NEW)`."""
    return tuple(name for part in listed.split(",") if (name := part.strip().removesuffix("(NEW)").strip("` ")))


# The lines of a context update.

_DELTA: Final = re.compile(
    rf"\s*(?:[-*] )?\s*(?:Delta:)?\s*(?P<operation>{'|'.join(DeltaOperation)})\s+"
    r"§?\s*(?P<section>.+?):\s+(?P<key>.+?):\s+(?P<text>.+)"
)


def write_delta(line: DeltaLine) -> str:
    return f'Delta: {line.operation} §{line.section}: {line.key}: "{line.text}"'


def read_delta(lines: Iterable[str]) -> tuple[DeltaLine, ...]:
    """Read the lines up to the first one that is not a delta. Blank lines are skipped."""
    deltas: list[DeltaLine] = []
    for line in filter(str.strip, lines):
        match = _DELTA.fullmatch(line.rstrip())
        if match is None and line.strip().startswith("Delta:"):
            raise MalformedMessageError(
                f"`{line.strip()}` must be one of {', '.join(DeltaOperation)} with section, key and text"
            )
        if match is None:
            break
        text = match["text"]
        is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
        deltas.append(DeltaLine(**match.groupdict() | {"text": text[1:-1] if is_quoted else text}))
    return tuple(deltas)


# The elements of sections.

_HEADING: Final = re.compile(r"\s*#+\s*(?:\d+[.)])?(.*)")
_BULLET: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")


def _heading(line: str) -> str | None:
    match = _HEADING.match(line)
    return match[1].strip("* :\t") if match else None


def _words(title: str) -> list[str]:
    return re.findall(r"\w+", title.casefold())


def _entries(lines: Iterable[str]) -> list[str]:
    """Return the entries of a list, each on one line. A wrapped entry continues until a blank line. Text before the
    first entry is skipped.
    """
    entries: list[list[str]] = []
    is_continuing = False
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet:
            entries.append([bullet[1]])
        elif is_continuing and line.strip() and _heading(line) is None:
            entries[-1].append(line)
        is_continuing = bool(entries and line.strip() and _heading(line) is None and (bullet or is_continuing))
    return [_strip_bold(" ".join(" ".join(parts).split())) for parts in entries]


def _strip_bold(entry: str) -> str:
    """Remove the bold marks around the first words."""
    return entry.replace("**", "", 2) if entry.startswith("**") else entry


def _write_bullets(entries: Iterable[str]) -> str:
    return "\n".join(f"- {entry}" for entry in entries)


def _quote(name: str, *, new: bool = False) -> str:
    return f"`{name}`{' (NEW)' if new else ''}"
