"""What the catalogue holds: sample projects, tricks, and for each trick the honest twin that must pass.

A trick is data: what it writes, edits and deletes, which lines it runs, and which rule must stop it. The same is true
of its twin, so that a layer which stops the trick by stopping everybody is found out.

Reads the catalogue from its folder, or says exactly what is wrong: file, trick, field.

`projects*.toml` hold the sample projects and are merged; every other file holds the tricks of one family, which has
the file's name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from proofstone.common.models import Contract
from proofstone.errors import InputError

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Layer = Literal["L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L9"]


def _inside(path: str) -> str:
    if path.startswith("/") or not path or ".." in path.split("/"):
        raise ValueError("must be a path inside the project")
    return path


InsidePath = Annotated[str, AfterValidator(_inside)]


class Edit(Contract):
    path: InsidePath
    old: Text
    """Occurs exactly once in the file."""
    new: str

    def of(self, text: str) -> str:
        """`text` with the edit made."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"edit of {self.path}: {self.old!r} occurs {found} times in it, not once")
        return text.replace(self.old, self.new)


class Act(Contract):
    """What somebody does to the project, in this order."""

    write: Mapping[InsidePath, str] = {}
    edit: tuple[Edit, ...] = ()
    delete: tuple[InsidePath, ...] = ()
    run: str = ""
    """Lines for `sh -eu`, in the work tree."""
    during: str = ""
    """Lines that run in the background while the check runs."""
    env: Mapping[str, str] = {}
    """Variables that whoever starts the check has; `{root}` is the repository's path."""

    @property
    def nothing(self) -> bool:
        return not (self.write or self.edit or self.delete or self.run or self.during or self.env)

    def of(self, files: Mapping[str, str], *, set_up: bool) -> dict[str, str]:
        """The project's files with writes, edits and deletions made. A set-up may have made others, unknown here."""
        after = {**files, **self.write}
        for edit in self.edit:
            if edit.path in after:
                after[edit.path] = edit.of(after[edit.path])
            elif not set_up:
                raise ValueError(f"edit of {edit.path}: the project has no such file")
        for path in self.delete:
            below = [name for name in after if name == path or name.startswith(f"{path.rstrip('/')}/")]
            if not below and not set_up:
                raise ValueError(f"delete of {path}: the project has no such file")
            after = {name: text for name, text in after.items() if name not in below}
        return after


class Options(Contract):
    """What the task tells `proofstone check`. None: as the trick, and else the project, says."""

    declared: tuple[str, ...] | None = None
    must_pass: tuple[str, ...] | None = None
    verify: tuple[str, ...] | None = None
    accept: str | None = None
    """The person's reason for tests that are meant to change."""


class Twin(Act, Options):
    """What an honest author does in the same place."""

    repair: bool = False
    """The project's repair comes first."""

    @model_validator(mode="after")
    def _does_something(self) -> Twin:
        if self.nothing and not self.repair:
            raise ValueError("does nothing: give it `repair = true`, or files")
        return self


class HeldOut(Contract):
    """A check that the author never saw."""

    command: Text
    files: Mapping[InsidePath, str] = {}


class Project(Contract):
    about: Text
    needs: tuple[Text, ...] = ()
    """`python:pytest`: importable by python3 on PATH; otherwise a program on PATH."""
    test: Text
    """What a gate that looks at exit codes only would run."""
    declared: tuple[str, ...] = ()
    must_pass: tuple[str, ...] = ()
    setup: str = ""
    """Lines for `sh -eu`, run once in the repository after its first commit."""
    files: Mapping[InsidePath, str] = Field(min_length=1)
    repair: Act = Act()

    @model_validator(mode="after")
    def _repair_fits(self) -> Project:
        self.repair.of(self.files, set_up=bool(self.setup))
        return self


class Trick(Options):
    name: Slug
    does: Text
    family: Slug
    layer: Layer
    """The layer that must stop it."""
    rules: tuple[Text, ...] = Field(min_length=1)
    """At least one of them must be reported."""
    project: str
    origin: Literal["published", "own"]
    quick: bool = False
    needs: tuple[Text, ...] = ()
    heldout: HeldOut | None = None
    bare: str = ""
    """Why it is not tried without a sandbox."""
    cheat: Act
    honest: Twin

    @model_validator(mode="after")
    def _does_something(self) -> Trick:
        if self.cheat.nothing:
            raise ValueError("cheat: does nothing")
        return self

    def options(self, project: Project, twin: Twin | None = None) -> Options:
        """What `proofstone check` is told: the twin's word, else the trick's, else the project's."""
        given = (twin or Options(), self, project)

        def first(name: str) -> tuple[str, ...]:
            return next((value for item in given if (value := getattr(item, name, None)) is not None), ())

        accept = next((item.accept for item in (twin or Options(), self) if item.accept is not None), None)
        return Options(
            declared=first("declared"), must_pass=first("must_pass"), verify=first("verify"), accept=accept or None
        )


class Catalogue(Contract):
    projects: Mapping[str, Project]
    tricks: tuple[Trick, ...]


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
