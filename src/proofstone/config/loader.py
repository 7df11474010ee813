"""Read settings from text, or raise one `ConfigError` that lists problems as `file:line: key: reason; correct value`.

`load_settings` reads a repository's root; `load_settings_files` and `load_settings_text` read text from anywhere, such
as the baseline's commit, whose configuration the change under test cannot have edited.
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

from proofstone.config.setting_docs import describe_accepted, find_line, list_keys, list_sections
from proofstone.config.settings import Settings
from proofstone.errors import ConfigError

PROOFSTONE_TOML: Final = "proofstone.toml"
PYPROJECT: Final = "pyproject.toml"
SETTINGS_FILES: Final = (PROOFSTONE_TOML, PYPROJECT)
"""The files that may hold settings, relative to the repository's root."""

USER_ONLY_SECTIONS: Final = ("trust", "providers", "models", "web", "telemetry")
"""Sections that count only in a user's own file."""

TomlTable = Mapping[str, object]
Model = TypeVar("Model", bound=BaseModel)


class _Source(NamedTuple):
    """A text, its name, the path of Proofstone's table in it, and the model of that table."""

    name: str
    text: str
    prefix: tuple[str, ...]
    model: type[BaseModel] = Settings

    def problem(self, path: Sequence[str | int], reason: str) -> str:
        full = (*self.prefix, *path)
        line = find_line(self.text, full)
        where = self.name if line is None else f"{self.name}:{line}"
        key = ".".join(part for part in full if isinstance(part, str))
        return f"{where}: {key}: {reason}" if key else f"{where}: {reason}"


_HINTS: Final[Mapping[type[BaseModel], str]] = {Settings: "`proofstone config schema` lists every setting"}


def load_settings(root: Path) -> Settings:
    """Return the settings of the repository at `root`, or the defaults if it has none."""
    return load_settings_files(_read_files(root))


def find_settings_file(root: Path) -> str | None:
    """Return which of `SETTINGS_FILES` at `root` holds settings, or None."""
    return choose_settings_file(_read_files(root))


def load_settings_files(files: Mapping[str, bytes]) -> Settings:
    """Return the settings from the contents of those of `SETTINGS_FILES` that exist, keyed by name."""
    name = choose_settings_file(files)
    return Settings() if name is None else load_settings_text(_decode(name, files[name]), name)


def load_settings_text(text: str, source: str) -> Settings:
    """Return the settings from one text. In a `source` named `pyproject.toml`, read `[tool.proofstone]`; else the whole
    text.
    """
    prefix = ("tool", "proofstone") if PurePath(source).name == PYPROJECT else ()
    return _validate(_Source(source, text, prefix), Settings)


def load_model(content: bytes, source: str, model: type[Model]) -> Model:
    """Read a whole file as another model than a repository's settings."""
    return _validate(_Source(source, _decode(source, content), (), model), model)


def _validate(source: _Source, model: type[Model]) -> Model:
    table = _parse_table(source)
    if problems := _find_unknown_keys(source, table):
        raise ConfigError("\n".join(problems), hint=_HINTS.get(model))
    try:
        return model.model_validate(table)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        raise ConfigError("\n".join(_describe_wrong_value(source, detail) for detail in details)) from error


def _read_files(root: Path) -> dict[str, bytes]:
    contents = {}
    for name in SETTINGS_FILES:
        try:
            contents[name] = (root / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ConfigError(f"{root / name}: cannot be read: {error.strerror}") from error
    return contents


def choose_settings_file(files: Mapping[str, bytes]) -> str | None:
    """Return which of these files holds settings.

    A `pyproject.toml` that never mentions Proofstone is not parsed: the checks decide whether it is valid.
    """
    project = files.get(PYPROJECT, b"")
    in_project = b"proofstone" in project and bool(_parse_table(_project_source(project)))
    if in_project and PROOFSTONE_TOML in files:
        line = find_line(_decode(PYPROJECT, project), ("tool", "proofstone"))
        raise ConfigError(
            f"{PYPROJECT}:{line}: [tool.proofstone] is set, and there is also a {PROOFSTONE_TOML}; keep one of them"
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


def _parse_table(source: _Source) -> TomlTable:
    try:
        table: object = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_describe_syntax_error(source, str(error))) from error
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, or brackets nested thousands deep
        raise ConfigError(f"{source.name}: cannot be read: {error}") from error
    for depth, key in enumerate(source.prefix, start=1):
        table = table.get(key, {}) if isinstance(table, dict) else {}
        if not isinstance(table, dict):
            where = f"{source.name}:{find_line(source.text, source.prefix[:depth])}"
            raise ConfigError(f"{where}: {'.'.join(source.prefix[:depth])}: {_show(table)} is not a table")
    return table if isinstance(table, dict) else {}


def _describe_syntax_error(source: _Source, message: str) -> str:
    """Format a syntax error of the TOML parser, which gives the position only at the end of its message."""
    reason, _, position = message.partition(" (at ")
    match = re.match(r"line (\d+), column (\d+)", position)
    line = int(match[1]) if match else source.text.rstrip("\n").count("\n") + 1
    column = f" at column {match[2]}" if match else " at the end of the file"
    return f"{source.name}:{line}: not valid TOML{column}: {reason}"


def _find_unknown_keys(source: _Source, table: TomlTable) -> list[str]:
    problems = []
    known = {section.name: section for section in list_sections(source.model)}
    for name, value in table.items():
        if name not in known:
            problems.append(source.problem((name,), _describe_unknown_section(source, name)))
        elif not isinstance(value, Mapping):
            advice = f"write it as a section, [{'.'.join((*source.prefix, name))}]"
            problems.append(source.problem((name,), f"{_show(value)} is not a table; {advice}"))
        elif not known[name].has_named_entries:
            valid_keys = {setting.key for setting in known[name].settings}
            unknown = [key for key in value if key not in valid_keys]
            problems.extend(source.problem((name, key), _describe_unknown_key(source, key, name)) for key in unknown)
    return problems


def _describe_unknown_section(source: _Source, name: str) -> str:
    if source.model is Settings and name in USER_ONLY_SECTIONS:
        if name == "trust":
            return "not allowed in a repository's file, because only you decide what it may do; see `proofstone trust`"
        return (
            "not allowed in a repository's file, because it could send your key or your activity to another server; "
            "write it into your own file, ~/.config/proofstone/proofstone.toml"
        )
    return _describe_unknown_key(source, name, None)


def _describe_unknown_key(source: _Source, key: str, section: str | None) -> str:
    """Suggest the key that was probably meant: a similar one in the section, or in another section."""
    known = list_sections(source.model)
    here = [setting.name for section_doc in known if section_doc.name == section for setting in section_doc.settings]
    names = here if section else [section_doc.name for section_doc in known]
    leaves = {name.rpartition(".")[2]: name for name in names}
    everywhere = {
        setting.key: setting.name
        for section_doc in known
        if not section_doc.has_named_entries
        for setting in section_doc.settings
    }
    if near := get_close_matches(key, leaves, n=1):
        return f"no such setting; did you mean {leaves[near[0]]}?"
    if near := get_close_matches(key, everywhere, n=1):
        return f"no such setting; did you mean {everywhere[near[0]]}?"
    return f"no such setting; there are {', '.join(names)}"


def _describe_wrong_value(source: _Source, detail: ErrorDetails) -> str:
    path = [part for part in detail["loc"] if part != "[key]"]
    match detail["type"]:
        case "value_error":  # a validator of Proofstone's own, which says what is right
            return source.problem(path, detail["msg"].removeprefix("Value error, "))
        case "extra_forbidden":
            return source.problem(path, f"no such setting; there are {', '.join(list_keys(path[:-1], source.model))}")
        case "missing":
            return source.problem(path, f"is missing; it takes {describe_accepted(path, source.model)}")
    allowed_keys = list_keys(path[:-1], source.model) if "[key]" in detail["loc"] else ()
    accepted = f"one of {', '.join(allowed_keys)}" if allowed_keys else describe_accepted(path, source.model)
    return source.problem(path, f"{_show(detail['input'])} is not valid; it takes {accepted}")


def _show(value: object) -> str:
    """Return a short text of a value that its author would recognise."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
