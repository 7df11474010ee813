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
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from proofstone.config.settings import Settings
from proofstone.config.wording import keys, line_of, sections, takes
from proofstone.errors import ConfigError

PROOFSTONE_TOML: Final = "proofstone.toml"
PYPROJECT: Final = "pyproject.toml"
FILES: Final = (PROOFSTONE_TOML, PYPROJECT)
"""Where settings may stand, relative to the repository's root."""

PERSONS_OWN: Final = ("trust", "providers", "models", "web", "telemetry")
"""Sections that count in a person's own file only."""

Table = Mapping[str, object]
Model = TypeVar("Model", bound=BaseModel)


class _Source(NamedTuple):
    """A text, what to call it, the table in it that is ours, and what that table should be."""

    name: str
    text: str
    prefix: tuple[str, ...]
    model: type[BaseModel] = Settings

    def problem(self, path: Sequence[str | int], why: str) -> str:
        full = (*self.prefix, *path)
        line = line_of(self.text, full)
        where = self.name if line is None else f"{self.name}:{line}"
        key = ".".join(part for part in full if isinstance(part, str))
        return f"{where}: {key}: {why}" if key else f"{where}: {why}"


_HINTS: Final[Mapping[type[BaseModel], str]] = {Settings: "`proofstone config schema` lists every setting"}


def load(root: Path) -> Settings:
    """The settings of the repository at `root`; the defaults if it has none."""
    return load_files(_read(root))


def configured_in(root: Path) -> str | None:
    """Which of `FILES` at `root` holds settings, if one does."""
    return chosen_file(_read(root))


def load_files(files: Mapping[str, bytes]) -> Settings:
    """Settings from the contents of those of `FILES` that exist, keyed by name."""
    chosen = chosen_file(files)
    return Settings() if chosen is None else load_text(_decode(chosen, files[chosen]), chosen)


def load_text(text: str, source: str) -> Settings:
    """Settings from one text; a `source` named `pyproject.toml` is read at `[tool.proofstone]`, any other whole."""
    prefix = ("tool", "proofstone") if PurePath(source).name == PYPROJECT else ()
    return _understood(_Source(source, text, prefix), Settings)


def load_bytes(content: bytes, source: str, model: type[Model]) -> Model:
    """A whole file as another model than a repository's settings."""
    return _understood(_Source(source, _decode(source, content), (), model), model)


def _understood(where: _Source, model: type[Model]) -> Model:
    table = _our_table(where)
    if problems := _unknown_keys(where, table):
        raise ConfigError("\n".join(problems), hint=_HINTS.get(model))
    try:
        return model.model_validate(table)
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


def chosen_file(files: Mapping[str, bytes]) -> str | None:
    """Return which of these files holds settings. A `pyproject.toml` that never mentions us is not even parsed:
    whether it is sound is for the checks to say."""
    project = files.get(PYPROJECT, b"")
    in_project = b"proofstone" in project and bool(_our_table(_project_source(project)))
    if in_project and PROOFSTONE_TOML in files:
        line = line_of(_decode(PYPROJECT, project), ("tool", "proofstone"))
        raise ConfigError(
            f"{PYPROJECT}:{line}: [tool.proofstone] is set, and there is an {PROOFSTONE_TOML} too; keep one of them"
        )
    if in_project:
        return PYPROJECT
    return PROOFSTONE_TOML if PROOFSTONE_TOML in files else None


def _project_source(content: bytes) -> _Source:
    return _Source(PYPROJECT, _decode(PYPROJECT, content), ("tool", "proofstone"))


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
    known = {section.name: section for section in sections(source.model)}
    for name, value in table.items():
        if name not in known:
            problems.append(source.problem((name,), _no_such_section(source, name)))
        elif not isinstance(value, Mapping):
            right = f"[{'.'.join((*source.prefix, name))}] begins the section"
            problems.append(source.problem((name,), f"{_show(value)} is not a table; {right}"))
        elif not known[name].entries:
            there = {setting.key for setting in known[name].settings}
            strange = [key for key in value if key not in there]
            problems.extend(source.problem((name, key), _no_such(source, key, name)) for key in strange)
    return problems


def _no_such_section(source: _Source, name: str) -> str:
    if source.model is Settings and name in PERSONS_OWN:
        if name == "trust":
            return "not in a repository's file: what a repository may have is for you to say; see `proofstone trust`"
        return (
            "not in a repository's file: it could send your key to a server of its own, or what you do; "
            "write it into your own file, ~/.config/proofstone/proofstone.toml"
        )
    return _no_such(source, name, None)


def _no_such(source: _Source, key: str, section: str | None) -> str:
    """What the key was probably meant to be: a neighbour spelt almost so, or the same key of another section."""
    known = sections(source.model)
    here = [setting.name for part in known if part.name == section for setting in part.settings]
    names = here if section else [part.name for part in known]
    leaves = {name.rpartition(".")[2]: name for name in names}
    everywhere = {setting.key: setting.name for part in known if not part.entries for setting in part.settings}
    if near := get_close_matches(key, leaves, n=1):
        return f"no such setting; did you mean {leaves[near[0]]}?"
    if near := get_close_matches(key, everywhere, n=1):
        return f"no such setting; did you mean {everywhere[near[0]]}?"
    return f"no such setting; there are {', '.join(names)}"


def _wrong_value(source: _Source, detail: ErrorDetails) -> str:
    path = [part for part in detail["loc"] if part != "[key]"]
    match detail["type"]:
        case "value_error":  # one of our own validators: it says what is right
            return source.problem(path, detail["msg"].removeprefix("Value error, "))
        case "extra_forbidden":
            return source.problem(path, f"no such setting; there are {', '.join(keys(path[:-1], source.model))}")
        case "missing":
            return source.problem(path, f"is missing; it takes {takes(path, source.model)}")
    named = keys(path[:-1], source.model) if "[key]" in detail["loc"] else ()
    right = f"one of {', '.join(named)}" if named else takes(path, source.model)
    return source.problem(path, f"{_show(detail['input'])} will not do; it takes {right}")


def _show(value: object) -> str:
    """A value as its author would recognise it, short."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
