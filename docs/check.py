"""Checks that the documentation is true, offline and in seconds; `--write` regenerates what is generated.

- `docs/reference/cli.md` is the real `--help` of every command and `docs/configuration.md` the models' own words;
- what stands between the marks of a page comes from the tables that decide: `generators/pages.py` has the list;
- every relative link in a Markdown file leads to a file, and to a heading where it names one;
- every page of the manual is listed in `docs/README.md`, every decision record in `docs/decisions/README.md`, every
  page of a rule in `docs/rules/README.md`;
- every rule of the seeds has a test that shows it, or a reason why not (`generators/seeds.py`);
- the figures of the source are within their limits (`generators/house.py`);
- no text file holds a path of somebody's machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from generators import house, seeds
from generators.page import ROOT
from generators.pages import GENERATED

from proofstone.cli.main import COMMANDS

# Names that stand for anybody may follow; the pattern is put together so that this line does not match itself.
SOMEBODYS_PATH = re.compile(
    r"(?<![\w.$}])/" + r"(?:work/[\w.]|root/[\w.]|home/(?!(?:user|you|me|name|alice|bob|runner)\b)[a-z][\w-]*)"
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)


def main(args: list[str]) -> int:
    if "--write" in args:
        for name, render in GENERATED.items():
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(render(), encoding="utf-8")
    problems = list(all_problems(ROOT))
    for problem in problems:
        sys.stderr.write(problem + "\n")
    sys.stdout.write(f"documentation: {len(problems)} problem(s)\n")
    return 1 if problems else 0


def all_problems(root: Path) -> Iterator[str]:
    yield from missing_commands()
    yield from out_of_date(root, GENERATED)
    files = text_files(root)
    for path, text in files.items():
        if path.suffix == ".md":
            yield from broken_links(root, path, text)
        yield from paths_of_machines(path, text)
    yield from unlisted(root)
    yield from house.exceeded()
    yield from seeds.problems()


def missing_commands() -> Iterator[str]:
    for command in COMMANDS:
        if find_spec(command.module) is None:
            yield f"src/proofstone/cli/main.py: command {command.name}: there is no module {command.module}"


def out_of_date(root: Path, generated: Mapping[str, Callable[[], str]]) -> Iterator[str]:
    for name, render in generated.items():
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != render():
            yield f"{name}: out of date; run `make docs`"


def text_files(root: Path) -> dict[Path, str]:
    """Every text file that git has or would take, by its path from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout
    found = {}
    for raw in filter(None, listed.split(b"\0")):
        path = Path(os.fsdecode(raw))
        full = root / path
        if full.is_symlink() or not full.is_file():
            continue
        content = full.read_bytes()
        if b"\0" not in content:
            found[path] = content.decode("utf-8", "replace")
    return found


def broken_links(root: Path, path: Path, text: str) -> Iterator[str]:
    # Fences keep their line breaks, so that line numbers stay right.
    prose = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    for link in LINK.finditer(prose):
        target = link[1] or link[2]
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        line = prose.count("\n", 0, link.start()) + 1
        name, _, anchor = target.partition("#")
        full = root / path if not name else root / path.parent / name
        if not full.exists():
            yield f"{path}:{line}: link to {target}: there is no such file"
        elif anchor and full.suffix == ".md" and anchor not in _anchors(full.read_text(encoding="utf-8")):
            yield f"{path}:{line}: link to {target}: there is no such heading"


def _anchors(text: str) -> set[str]:
    """The names of the headings, as code hosts make them from the text."""
    headings = re.findall(r"^#+\s+(.*?)\s*#*$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def paths_of_machines(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if found := SOMEBODYS_PATH.search(line):
            yield f"{path}:{number}: {found[0]}: a path of somebody's machine; write a relative or made-up one"


def unlisted(root: Path) -> Iterator[str]:
    """Pages of the manual, and records of decisions, that no index leads to."""
    manual = root / "docs"
    records = [one for one in sorted((manual / "decisions").glob("*.md")) if one.name != "README.md"]
    rules = [one for one in sorted((manual / "rules").glob("*.md")) if one.name != "README.md"]
    own = ("decisions", "rules")
    pages = [one for one in sorted(manual.rglob("*.md")) if one.parent.name not in own and one.name != "README.md"]
    for index, listed in (
        (manual / "decisions" / "README.md", records),
        (manual / "rules" / "README.md", rules),
        (manual / "README.md", pages),
    ):
        text = index.read_text(encoding="utf-8") if index.is_file() else ""
        for one in listed:
            name = one.relative_to(index.parent)
            if f"({name})" not in text:
                yield f"{index.relative_to(root)}: {name} is not listed; add a line with a link to it"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
