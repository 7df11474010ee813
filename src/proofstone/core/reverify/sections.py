"""Messages that have more than one line: the two analyses in sections, and the lines of a context update.

Headings and labels are known by their words, whatever their size; an entry of a list may be wrapped. Names stand
between backticks in what is written here, and may do without in what is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from proofstone.contracts.reverify.context import DeltaLine, Operation
from proofstone.contracts.reverify.ladder import Impact, MiniAnalysis
from proofstone.contracts.reverify.understanding import Cited, ImpactAnalysis, ImpactedFile, Interface
from proofstone.core.reverify.fields import MalformedError

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
    named = {one for one in Impact if re.search(rf"\b{one.value}\b", said)}
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
        "upstream": _bullets(f"{_quoted(one.artifact)}: {one.says}" for one in analysis.upstream),
        "files": _bullets(_written_file(one) for one in analysis.files),
        "interfaces": _bullets(
            f"{_quoted(one.path)}: {_quoted(one.symbol, new=one.new)}: {one.signature}" for one in analysis.interfaces
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
        upstream=tuple(_cited(one) for one in _listed(bodies, "upstream")),
        files=tuple(_file(one) for one in _listed(bodies, "files")),
        interfaces=tuple(_interface(one) for one in _listed(bodies, "interfaces")),
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
    return tuple(name for one in listed.split(",") if (name := one.strip().removesuffix("(NEW)").strip("` ")))


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
