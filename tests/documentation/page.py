"""What a page of the manual has its reader do: files to be written, and commands with what they print.

- A line `../team.yaml`: before a fence makes it a file, by its path from where the reader stands.
- In a fence of the kind `console`, a command follows `$ `, and goes on after a backslash; below it stands what it
  prints, or parts of it: see `Command.differs`.
- `<!-- not run: why -->` before a fence: it is for reading only.
- `<!-- begins with: PAGE#HEADING -->`: what that section, or all of that page, has its reader do comes first.
- After the mark of a generated part, a fence is made from a table, and checked by `docs/check.py`.

Any other fence is an example that nobody tries: see `untried`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_PARTS = re.compile(
    r"^<!-- begins with: (?P<begins>\S+) -->$"
    r"|^<!-- not run: (?P<why>[^\n]+) -->$"
    r"|^<!-- [^\n]+: (?P<made>generated) by `make docs` -->$"
    r"|^`(?P<path>[^`\n]+)`:$"
    r"|^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_SKIPPED = "…"
_VARIES = (
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}"), "RUN"),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "HASH"),
    (re.compile(r"\d+(\.\d+)? (ms|s|min)\b"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?"), "WHEN"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "WHEN"),
)
"""What is another on each day: runs, commits, trees, times."""


@dataclass(frozen=True)
class File:
    path: str
    text: str


@dataclass(frozen=True)
class Command:
    line: str
    shown: tuple[str, ...]
    """What the page says that it prints; nothing, if it does not say."""

    def differs(self, printed: str) -> str:
        """The first line of the page that was not printed where it should be; empty if all were.

        A line `…` stands for any lines, and `…` in a line for whatever there is. What varies is not compared, nor how
        wide columns are. A page that shows nothing of a command leaves it open what it prints."""
        if not self.shown:
            return ""
        lines = [_plain(line) for line in printed.splitlines()]
        at, anywhere = 0, False
        for shown in self.shown:
            if shown.strip() == _SKIPPED:
                anywhere = True
                continue
            places = range(at, len(lines)) if anywhere else range(at, min(at + 1, len(lines)))
            found = next((place for place in places if _is_like(shown, lines[place])), None)
            if found is None:
                return shown
            at, anywhere = found + 1, False
        return "" if anywhere or at == len(lines) else f"nothing more, and not: {lines[at]}"


@dataclass(frozen=True)
class Shown:
    """A fence that is no file and no command, and does not say why."""

    kind: str
    begins: str


Deed = File | Command


def deeds(page: Path, heading: str = "") -> list[Deed]:
    """All that the page has its reader do, in order; or one section of it."""
    return [one for one in _read(page, heading) if not isinstance(one, Shown)]


def untried(page: Path, kind: str = "") -> list[str]:
    """Every example of the page, or every one of a kind, that is neither tried nor says why it is not."""
    shown = [one for one in _read(page, "") if isinstance(one, Shown)]
    lost = _FENCE.findall(_PARTS.sub("", page.read_text(encoding="utf-8")))
    return [*(f"{one.kind}: {one.begins}" for one in shown if kind in ("", one.kind)), *lost]


def begun_with(page: Path) -> list[Path]:
    """The pages that are done as a whole before this one."""
    begins = [part["begins"] for part in _PARTS.finditer(page.read_text(encoding="utf-8")) if part["begins"]]
    return [(page.parent / one).resolve() for one in begins if "#" not in one]


def _read(page: Path, heading: str) -> Iterator[Deed | Shown]:
    text = page.read_text(encoding="utf-8")
    path, explained = "", False
    for part in _PARTS.finditer(_section(text, heading) if heading else text):
        if begins := part["begins"]:
            name, _, section = begins.partition("#")
            yield from deeds((page.parent / name).resolve() if name else page, section)
        elif part["why"] or part["made"]:
            explained = True
        elif part["path"]:
            path = part["path"]
        else:
            if path and not explained:
                yield File(path, part["text"])
            elif part["kind"] == "console" and not explained:
                yield from _commands(part["text"].splitlines())
            elif not explained:
                yield Shown(part["kind"], part["text"].partition("\n")[0])
            path, explained = "", False


def _commands(lines: Sequence[str]) -> Iterator[Command]:
    line, shown = "", list[str]()
    for one in lines:
        if one.startswith("$ "):
            if line:
                yield Command(line, tuple(shown))
            line, shown = one.removeprefix("$ "), []
        elif line.endswith("\\") and not shown:
            line = f"{line}\n{one}"
        else:
            shown.append(one)
    if line:
        yield Command(line, tuple(shown))


def _section(text: str, anchor: str) -> str:
    """From the heading to the next that is not below it."""
    prose = _PARTS.sub(lambda part: "\n" * len(part[0]), text)  # what looks like a heading in a fence is none
    heads = [(head, named(head[2])) for head in re.finditer(r"^(#+)\s+(.*?)$", prose, re.MULTILINE)]
    [start] = [head for head, name in heads if name == anchor]
    ends = [head.start() for head, _ in heads if head.start() > start.start() and len(head[1]) <= len(start[1])]
    return text[start.start() : min(ends, default=len(text))]


def named(heading: str) -> str:
    """The name of a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _plain(line: str) -> str:
    for varies, word in _VARIES:
        line = varies.sub(word, line)
    return " ".join(line.split())


def _is_like(shown: str, printed: str) -> bool:
    parts = map(re.escape, _plain(shown).split(_SKIPPED))
    return re.fullmatch(".*?".join(parts), printed) is not None
