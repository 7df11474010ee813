"""Reads the catalogue from its folder, or says exactly what is wrong: file, trick, field.

`projects*.toml` hold the sample projects and are merged; every other file holds the tricks of one family, which has
the file's name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proofstone.errors import InputError
from proofstone.surfaces.prove.tricks import Catalogue, Project, Trick

CATALOGUE: Final = Path(__file__).with_name("tricks")
"""The catalogue that comes with Proofstone."""


def load(folder: Path = CATALOGUE) -> Catalogue:
    """The whole catalogue, in order of family and file; all problems are told at once."""
    problems: list[str] = []
    tables = {file.name: _table(file, problems) for file in sorted(folder.glob("*.toml"))}
    if not tables:
        raise InputError(f"{folder}: there is no catalogue of tricks here")
    projects = _projects({name: table for name, table in tables.items() if name.startswith("projects")}, problems)
    tricks: list[Trick] = []
    for name, table in tables.items():
        if not name.startswith("projects"):
            tricks += _tricks(name, table, projects, problems)
    problems += _repeated(tricks)
    if problems:
        raise InputError("\n".join(problems), hint=f"the catalogue in {folder} is wrong there")
    return Catalogue(projects=projects, tricks=tuple(tricks))


def chosen(
    catalogue: Catalogue, *, names: Sequence[str] = (), families: Sequence[str] = (), quick: bool = False
) -> tuple[Trick, ...]:
    """The tricks that were asked for: those of a name or of a family, or all; of them the quick ones, if so."""
    _known("trick", names, [trick.name for trick in catalogue.tricks])
    _known("family", families, [trick.family for trick in catalogue.tricks])
    wanted = [
        trick
        for trick in catalogue.tricks
        if trick.name in names or trick.family in families or not (names or families)
    ]
    return tuple(trick for trick in wanted if trick.quick or not quick)


def _known(kind: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(set(known)))}"
            raise InputError(f"no {kind} {name!r} in the catalogue", hint=hint)


def _table(file: Path, problems: list[str]) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(f"{file.name}: {error}")
        return {}


def _projects(tables: Mapping[str, Mapping[str, object]], problems: list[str]) -> dict[str, Project]:
    projects: dict[str, Project] = {}
    for file, table in tables.items():
        found = table.get("projects", {})
        problems += [f"{file}: {key}: not known here; it holds `projects`" for key in table if key != "projects"]
        for name, body in found.items() if isinstance(found, dict) else ():
            if name in projects:
                problems.append(f"{file}: project {name!r}: there is another of this name")
            try:
                projects[name] = Project.model_validate(body)
            except ValidationError as error:
                problems += _told(f"{file}: project {name!r}", error)
    return projects


def _tricks(
    file: str, table: Mapping[str, object], projects: Mapping[str, Project], problems: list[str]
) -> Iterable[Trick]:
    bodies = table.get("trick", [])
    problems += [f"{file}: {key}: not known here; it holds `[[trick]]`" for key in table if key != "trick"]
    for number, body in enumerate(bodies if isinstance(bodies, list) else [], start=1):
        name = body.get("name") if isinstance(body, dict) else None
        where = f"{file}: trick {name!r}" if name else f"{file}: trick number {number}"
        try:
            trick = Trick.model_validate(body)
        except ValidationError as error:
            problems += _told(where, error)
            continue
        problems += [f"{where}: {problem}" for problem in _misfits(trick, file, projects)]
        yield trick


def _misfits(trick: Trick, file: str, projects: Mapping[str, Project]) -> Iterable[str]:
    """What is wrong with a trick in its place: every field is right by itself."""
    if trick.family != file.removesuffix(".toml"):
        yield f"family: {trick.family!r} is not the name of its file"
    project = projects.get(trick.project)
    if project is None:
        yield f"project: there is no project {trick.project!r}"
        return
    set_up = bool(project.setup)
    repaired = project.repair.of(project.files, set_up=set_up) if trick.honest.repair else project.files
    for act, whose, files in ((trick.cheat, "cheat", project.files), (trick.honest, "honest", repaired)):
        try:
            act.of(files, set_up=set_up)
        except ValueError as error:
            yield f"{whose}: {error}"


def _repeated(tricks: Sequence[Trick]) -> list[str]:
    families: dict[str, str] = {}
    problems = []
    for trick in tricks:
        if trick.name in families:
            problems.append(
                f"{trick.family}.toml: trick {trick.name!r}: there is another in {families[trick.name]}.toml"
            )
        families.setdefault(trick.name, trick.family)
    return problems


def _told(where: str, error: ValidationError) -> list[str]:
    told = []
    for detail in error.errors(include_url=False):
        field = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ")
        told.append(f"{where}: {field}: {message}" if field else f"{where}: {message}")
    return told
