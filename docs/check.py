"""Checks that the documentation is true, offline and in seconds; `--write` regenerates what is generated.

- `docs/reference/cli.md` is the real `--help` of every command, `docs/configuration.md` the models' own words;
- every relative link in a Markdown file leads to a file, and to a heading where it names one;
- every decision record is listed in `docs/decisions/README.md`;
- no text file holds a path of somebody's machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from assay.config.person import PersonSettings
from assay.config.wording import Section, sections
from assay.surfaces.cli.main import COMMANDS, Command, load_app, root_help

if TYPE_CHECKING:
    from typer.core import TyperGroup

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
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
    yield from unlisted_decisions(root)


# --- what is generated ------------------------------------------------------------------------------------------


def cli_reference() -> str:
    parts = [
        "# Command line\n",
        "Generated from `--help` by `make docs`; do not edit.\n",
        f"```\n{root_help().rstrip()}\n```\n",
    ]
    for command in COMMANDS:
        if find_spec(command.module) is not None:
            parts += [f"## assay {name}\n\n```\n{text}\n```\n" for name, text in command_help(command)]
    return "\n".join(parts)


def command_help(command: Command) -> Iterator[tuple[str, str]]:
    """Name and help of a command and of each of its sub-commands."""
    import typer

    def walk(entry: TyperGroup, name: str, parent: typer.Context | None) -> Iterator[tuple[str, str]]:
        context = typer.Context(entry, info_name=name if parent is None else name.rpartition(" ")[2], parent=parent)
        # Width is the terminal's by default; the manual has one of its own.
        context.terminal_width = context.max_content_width = WIDTH
        yield name, "\n".join(line.rstrip() for line in entry.get_help(context).strip().splitlines())
        for child, inner in getattr(entry, "commands", {}).items():
            yield from walk(inner, f"{name} {child}", context)

    entry = typer.main.get_command(load_app(command))
    for name, text in walk(entry, f"assay {command.name}", None):  # type: ignore[arg-type]
        yield name.removeprefix("assay "), text


def configuration() -> str:
    head = """# Configuration

Generated from the settings' own descriptions by `make docs`; do not edit.

Settings stand in `assay.toml` in the repository's root, or under `[tool.assay]` in `pyproject.toml`: in one of the
two, never in both. In `pyproject.toml` a section is `[tool.assay.check]`. Everything has a default, so that no
file is needed. A key that does not exist, a wrong type or a value out of range is refused with exit code 2, naming
file, line, key and what would be right.

`assay config show` prints the settings in force and where each comes from; `assay config schema` prints their JSON
Schema. When a change is checked, the settings of its *base* decide, so that no change can loosen its own checks.

```toml
[check]
verify = ["make smoke"]
optional = ["lint:*"]

[environment]
setup = ["npm ci"]
set = { TZ = "UTC" }
```
"""
    persons = """# Your own file

Who serves which role, what may be spent and where providers are reached is also read from a file of your own:
`$ASSAY_CONFIG`, else `$XDG_CONFIG_HOME/assay/assay.toml`, else `~/.config/assay/assay.toml`. What it says under
`[backends]` and `[budget]`, which are written as above, goes before what a repository says, key by key; a line that
names a role goes before a `default`, wherever they stand; and `--backend` and `--budget` go before both.

Providers and models are set up here only: a repository that could say where a provider is reached could have your key
sent to a server of its own. Keys themselves stand in no file; `key_variable` names the environment variable.

```toml
[backends]
default = "api:openai:gpt-5"
researcher = ["api:anthropic:claude-haiku-4-5", "api:openai:gpt-5-mini"]   # the second if the first cannot be reached
"reviewer:security" = "api:google:gemini-2.5-pro"

[budget]
usd = 10

[budget.task]
usd = 2

[providers.office]
wire = "openai-chat"
url = "http://models.example/v1"
key_variable = "OFFICE_KEY"

[models."office:*"]
tier = 2
```
"""
    own = [section for section in sections(PersonSettings) if section.entries]
    return "\n".join([head, *map(_section, sections()), persons, *map(_section, own)])


def _section(section: Section) -> str:
    rows = [
        f"| `{one.key}` | {_cell(one.takes)} | {_default(one.default)} | {_cell(one.description)} |"
        for one in section.settings
    ]
    table = "\n".join(["| key | takes | default | |", "|---|---|---|---|", *rows])
    name = f"{section.name}.NAME" if section.entries else section.name
    return f"## `[{name}]`\n\n{section.description}\n\n{table}\n"


def _default(value: object) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/reference/cli.md": cli_reference,
    "docs/configuration.md": configuration,
}


# --- what is checked --------------------------------------------------------------------------------------------


def missing_commands() -> Iterator[str]:
    for command in COMMANDS:
        if find_spec(command.module) is None:
            yield f"src/assay/surfaces/cli/main.py: command {command.name}: there is no module {command.module}"


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


def unlisted_decisions(root: Path) -> Iterator[str]:
    folder = root / "docs" / "decisions"
    index = folder / "README.md"
    listed = index.read_text(encoding="utf-8") if index.is_file() else ""
    for record in sorted(folder.glob("*.md")):
        if record.name != "README.md" and f"({record.name})" not in listed:
            yield f"docs/decisions/README.md: {record.name} is not listed; add a line with a link to it"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
