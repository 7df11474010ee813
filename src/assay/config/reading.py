"""From text to `Settings`, or one `ConfigError` that lists what is wrong as `file:line: key: why; what is right`.

`load` reads a repository's root; `load_files` and `load_text` read text from anywhere, such as the baseline's
commit, whose configuration the change under test cannot have edited.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from assay.config.lines import line_of
from assay.config.settings import Settings
from assay.config.wording import sections, takes
from assay.errors import ConfigError

ASSAY_TOML: Final = "assay.toml"
PYPROJECT: Final = "pyproject.toml"
FILES: Final = (ASSAY_TOML, PYPROJECT)
"""Where settings may stand, relative to the repository's root."""

Table = Mapping[str, object]


class _Source(NamedTuple):
    """A text, what to call it, and the table in it that is ours."""

    name: str
    text: str
    prefix: tuple[str, ...]

    def problem(self, path: Sequence[str | int], why: str) -> str:
        full = (*self.prefix, *path)
        line = line_of(self.text, full)
        where = self.name if line is None else f"{self.name}:{line}"
        return f"{where}: {'.'.join(part for part in full if isinstance(part, str))}: {why}"


def load(root: Path) -> Settings:
    """The settings of the repository at `root`; the defaults if it has none."""
    return load_files(_read(root))


def configured_in(root: Path) -> str | None:
    """Which of `FILES` at `root` holds settings, if one does."""
    return _choose(_read(root))


def load_files(files: Mapping[str, bytes]) -> Settings:
    """Settings from the contents of those of `FILES` that exist, keyed by name."""
    chosen = _choose(files)
    return Settings() if chosen is None else load_text(_decode(chosen, files[chosen]), chosen)


def load_text(text: str, source: str) -> Settings:
    """Settings from one text; a `source` named `pyproject.toml` is read at `[tool.assay]`, any other whole."""
    prefix = ("tool", "assay") if PurePath(source).name == PYPROJECT else ()
    where = _Source(source, text, prefix)
    table = _our_table(where)
    if problems := _unknown_keys(where, table):
        raise ConfigError("\n".join(problems), hint="`assay config schema` lists every setting")
    try:
        return Settings.model_validate(table)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        raise ConfigError("\n".join(_wrong_value(where, detail) for detail in details)) from error


def _read(root: Path) -> dict[str, bytes]:
    contents = {}
    for name in FILES:
        try:
            contents[name] = (root / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ConfigError(f"{root / name}: cannot be read: {error.strerror}") from error
    return contents


def _choose(files: Mapping[str, bytes]) -> str | None:
    """The file that holds settings. A `pyproject.toml` that never mentions us is not even parsed: whether it is
    sound is for the checks to say."""
    project = files.get(PYPROJECT, b"")
    in_project = b"assay" in project and bool(_our_table(_project_source(project)))
    if in_project and ASSAY_TOML in files:
        line = line_of(_decode(PYPROJECT, project), ("tool", "assay"))
        raise ConfigError(
            f"{PYPROJECT}:{line}: [tool.assay] is set, and there is an {ASSAY_TOML} too; keep one of them"
        )
    if in_project:
        return PYPROJECT
    return ASSAY_TOML if ASSAY_TOML in files else None


def _project_source(content: bytes) -> _Source:
    return _Source(PYPROJECT, _decode(PYPROJECT, content), ("tool", "assay"))


def _decode(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: byte 0x{content[error.start]:02x} is not UTF-8; save it as UTF-8") from error


def _our_table(source: _Source) -> Table:
    try:
        table: object = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(source, str(error))) from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, brackets thousands deep
        raise ConfigError(f"{source.name}: cannot be read: {error}") from error
    for depth, key in enumerate(source.prefix, start=1):
        table = table.get(key, {}) if isinstance(table, dict) else {}
        if not isinstance(table, dict):
            where = f"{source.name}:{line_of(source.text, source.prefix[:depth])}"
            raise ConfigError(f"{where}: {'.'.join(source.prefix[:depth])}: {_show(table)} is not a table")
    return table if isinstance(table, dict) else {}


def _syntax(source: _Source, message: str) -> str:
    """The parser says where only at the end of its sentence."""
    why, _, place = message.partition(" (at ")
    found = re.match(r"line (\d+), column (\d+)", place)
    line = int(found[1]) if found else source.text.rstrip("\n").count("\n") + 1
    column = f" at column {found[2]}" if found else " at the end of the file"
    return f"{source.name}:{line}: not valid TOML{column}: {why}"


def _unknown_keys(source: _Source, table: Table) -> list[str]:
    problems = []
    for name, value in table.items():
        known = {section.name: [setting.key for setting in section.settings] for section in sections()}
        if name not in known:
            problems.append(source.problem((name,), _no_such(name, None)))
        elif not isinstance(value, Mapping):
            right = f"[{'.'.join((*source.prefix, name))}] begins the section"
            problems.append(source.problem((name,), f"{_show(value)} is not a table; {right}"))
        else:
            problems.extend(source.problem((name, key), _no_such(key, name)) for key in value if key not in known[name])
    return problems


def _no_such(key: str, section: str | None) -> str:
    """What the key was probably meant to be: a neighbour spelt almost so, or the same key of another section."""
    here = [setting.name for part in sections() if part.name == section for setting in part.settings]
    names = here if section else [part.name for part in sections()]
    leaves = {name.rpartition(".")[2]: name for name in names}
    everywhere = {setting.key: setting.name for part in sections() for setting in part.settings}
    if near := get_close_matches(key, leaves, n=1):
        return f"no such setting; did you mean {leaves[near[0]]}?"
    if near := get_close_matches(key, everywhere, n=1):
        return f"no such setting; did you mean {everywhere[near[0]]}?"
    return f"no such setting; there are {', '.join(names)}"


def _wrong_value(source: _Source, detail: ErrorDetails) -> str:
    path = [part for part in detail["loc"] if part != "[key]"]
    if detail["type"] == "value_error":  # one of our own validators: it says what is right
        return source.problem(path, detail["msg"].removeprefix("Value error, "))
    section, key = str(path[0]), str(path[1])
    return source.problem(path, f"{_show(detail['input'])} will not do; it takes {takes(section, key)}")


def _show(value: object) -> str:
    """A value as its author would recognise it, short."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
