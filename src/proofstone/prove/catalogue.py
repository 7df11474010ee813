"""The catalogue of tricks: its models, and reading it from its folder.

A trick is data: what it writes, edits and deletes, which commands it runs, and which rule must stop it. Each trick has
an honest twin that must pass, which exposes a layer that stops the trick by stopping everything.

`projects*.toml` contain the sample projects and are merged. Every other file contains the tricks of one family and has
the family's name. Errors name the file, the trick and the field.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from proofstone.common.models import FrozenModel
from proofstone.errors import InputError

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Text = Annotated[str, StringConstraints(min_length=1)]
LayerName = Literal["L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L9"]


def _require_inside_path(path: str) -> str:
    if path.startswith("/") or not path or ".." in path.split("/"):
        raise ValueError("must be a path inside the project")
    return path


InsidePath = Annotated[str, AfterValidator(_require_inside_path)]


class FileEdit(FrozenModel):
    path: InsidePath
    old: Text
    """Must occur exactly once in the file."""
    new: str

    def apply(self, text: str) -> str:
        """Return `text` with the edit applied."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"edit of {self.path}: {self.old!r} occurs {count} times, not once")
        return text.replace(self.old, self.new)


class ProjectAct(FrozenModel):
    """What somebody does to the project, in this order."""

    write: Mapping[InsidePath, str] = {}
    edit: tuple[FileEdit, ...] = ()
    delete: tuple[InsidePath, ...] = ()
    run: str = ""
    """Commands for `sh -eu`, run in the work tree."""
    during: str = ""
    """Commands that run in the background while the check runs."""
    env: Mapping[str, str] = {}
    """Variables in the environment of the check; `{root}` is the path of the repository."""

    @property
    def is_empty(self) -> bool:
        return not (self.write or self.edit or self.delete or self.run or self.during or self.env)

    def apply(self, files: Mapping[str, str], *, set_up: bool) -> dict[str, str]:
        """Return the project's files with writes, edits and deletions applied. A set-up may have created other
        files, which are unknown here.
        """
        after = {**files, **self.write}
        for edit in self.edit:
            if edit.path in after:
                after[edit.path] = edit.apply(after[edit.path])
            elif not set_up:
                raise ValueError(f"edit of {edit.path}: the project has no such file")
        for path in self.delete:
            below = [name for name in after if name == path or name.startswith(f"{path.rstrip('/')}/")]
            if not below and not set_up:
                raise ValueError(f"delete of {path}: the project has no such file")
            after = {name: text for name, text in after.items() if name not in below}
        return after


class TaskOptions(FrozenModel):
    """The options of `proofstone check` for the task. None means the value of the trick, or else of the project."""

    declared: tuple[str, ...] | None = None
    must_pass: tuple[str, ...] | None = None
    verify: tuple[str, ...] | None = None
    accept: str | None = None
    """The user's reason for tests that are meant to change."""


class Twin(ProjectAct, TaskOptions):
    """What an honest author does in the same situation."""

    repair: bool = False
    """Whether the project's repair is applied first."""
    accepted_rules: tuple[str, ...] = ()
    """Rules whose findings a person accepts, because honest work has them too."""

    @model_validator(mode="after")
    def _require_action(self) -> Twin:
        if self.is_empty and not self.repair:
            raise ValueError("does nothing: add `repair = true` or files")
        return self


class HeldOutCheck(FrozenModel):
    """A check that the author never saw."""

    command: Text
    files: Mapping[InsidePath, str] = {}


class SampleProject(FrozenModel):
    about: Text
    needs: tuple[Text, ...] = ()
    """`python:pytest` must be importable by python3 on PATH; any other name is a program on PATH."""
    test: Text
    """The command that a gate which looks only at exit codes would run."""
    declared: tuple[str, ...] = ()
    must_pass: tuple[str, ...] = ()
    setup: str = ""
    """Commands for `sh -eu`, run once in the repository after its first commit."""
    files: Mapping[InsidePath, str] = Field(min_length=1)
    repair: ProjectAct = ProjectAct()

    @model_validator(mode="after")
    def _check_repair(self) -> SampleProject:
        self.repair.apply(self.files, set_up=bool(self.setup))
        return self


class TrickAxes(FrozenModel):
    """The values of the axes that a composed trick has."""

    what: str
    """The class of the trick: what is faked."""
    fake: str
    where: str
    when: str
    hidden: str


class Trick(TaskOptions):
    name: Slug
    does: Text
    family: Slug
    layer: LayerName | None = None
    """The layer that must stop the trick."""
    rules: tuple[Text, ...] = ()
    """At least one of these rules must be reported."""
    axes: TrickAxes | None = None
    """A composed trick has these instead of a layer and rules: it must be refused, or pass below high confidence with a
    reason that its twin does not have.
    """
    project: str
    origin: Literal["published", "own"]
    quick: bool = False
    needs: tuple[Text, ...] = ()
    heldout: HeldOutCheck | None = None
    truth: HeldOutCheck | None = None
    """What shows whether the work was done: it fails after the cheat and passes after the twin. The check of the trial
    does not have it.
    """
    bare: str = ""
    """Why the trick is not tried without a sandbox."""
    cheat: ProjectAct
    honest: Twin

    @model_validator(mode="after")
    def _require_action(self) -> Trick:
        if self.cheat.is_empty:
            raise ValueError("cheat: does nothing")
        if self.axes is None and not (self.layer and self.rules):
            raise ValueError("layer, rules: say which layer must stop the trick, and by which rules")
        return self

    def resolve_options(self, project: SampleProject, twin: Twin | None = None) -> TaskOptions:
        """Return the options of `proofstone check`: the twin's value, or else the trick's, or else the project's."""
        sources = (twin or TaskOptions(), self, project)

        def first(name: str) -> tuple[str, ...]:
            return next((value for source in sources if (value := getattr(source, name, None)) is not None), ())

        accept = next((source.accept for source in (twin or TaskOptions(), self) if source.accept is not None), None)
        return TaskOptions(
            declared=first("declared"), must_pass=first("must_pass"), verify=first("verify"), accept=accept or None
        )


class Catalogue(FrozenModel):
    projects: Mapping[str, SampleProject]
    tricks: tuple[Trick, ...]

    @property
    def composed(self) -> tuple[Trick, ...]:
        return tuple(trick for trick in self.tricks if trick.axes)


CATALOGUE_FOLDER: Final = Path(__file__).with_name("tricks")
"""The catalogue that comes with Proofstone."""


def load_catalogue(folder: Path = CATALOGUE_FOLDER) -> Catalogue:
    """Read the tricks that the catalogue lists, in order of family and file. All problems are reported at once."""
    problems: list[str] = []
    tables = {file.name: _read_table(file, problems) for file in sorted(folder.glob("*.toml"))}
    if not tables:
        raise InputError(f"{folder}: this folder contains no catalogue of tricks")
    projects = _read_projects({name: table for name, table in tables.items() if name.startswith("projects")}, problems)
    tricks: list[Trick] = []
    for name, table in tables.items():
        if not name.startswith("projects"):
            tricks += _read_tricks(name, table, projects, problems)
    problems += _find_duplicates(tricks)
    if problems:
        raise InputError("\n".join(problems), hint=f"correct the catalogue in {folder}")
    return Catalogue(projects=projects, tricks=tuple(tricks))


def select_tricks(
    catalogue: Catalogue, *, names: Sequence[str] = (), families: Sequence[str] = (), quick: bool = False
) -> tuple[Trick, ...]:
    """Return the requested tricks: by name or family, or all that the catalogue lists; only the quick ones if `quick`
    is set. The composed ones take too long to be tried unless they are asked for.
    """
    _require_known("trick", names, [trick.name for trick in catalogue.tricks])
    _require_known("family", families, [trick.family for trick in catalogue.tricks])
    candidates = [
        trick
        for trick in catalogue.tricks
        if trick.name in names or trick.family in families or not (names or families or trick.axes)
    ]
    return tuple(trick for trick in candidates if trick.quick or not quick)


def draw_sample(tricks: Sequence[Trick], count: int, seed: int) -> tuple[Trick, ...]:
    """Return that many of the tricks, drawn by the seed, in their order. Tricks that are added or removed change the
    sample as little as possible.
    """

    def number(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    drawn = set(sorted((trick.name for trick in tricks), key=number)[:count])
    return tuple(trick for trick in tricks if trick.name in drawn)


def _require_known(kind: str, requested: Sequence[str], known: Sequence[str]) -> None:
    for name in requested:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose one of: {', '.join(sorted(set(known)))}"
            raise InputError(f"no {kind} {name!r} in the catalogue", hint=hint)


def _read_table(file: Path, problems: list[str]) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(f"{file.name}: {error}")
        return {}


def _read_projects(tables: Mapping[str, Mapping[str, object]], problems: list[str]) -> dict[str, SampleProject]:
    projects: dict[str, SampleProject] = {}
    for file, table in tables.items():
        bodies = table.get("projects", {})
        problems += [f"{file}: {key}: unknown key; expected `projects`" for key in table if key != "projects"]
        for name, body in bodies.items() if isinstance(bodies, dict) else ():
            if name in projects:
                problems.append(f"{file}: project {name!r}: another project has this name")
            try:
                projects[name] = SampleProject.model_validate(body)
            except ValidationError as error:
                problems += _format_errors(f"{file}: project {name!r}", error)
    return projects


def _read_tricks(
    file: str, table: Mapping[str, object], projects: Mapping[str, SampleProject], problems: list[str]
) -> Iterable[Trick]:
    bodies = table.get("trick", [])
    problems += [f"{file}: {key}: unknown key; expected `[[trick]]`" for key in table if key != "trick"]
    for number, body in enumerate(bodies if isinstance(bodies, list) else [], start=1):
        name = body.get("name") if isinstance(body, dict) else None
        where = f"{file}: trick {name!r}" if name else f"{file}: trick number {number}"
        try:
            trick = Trick.model_validate(body)
        except ValidationError as error:
            problems += _format_errors(where, error)
            continue
        problems += [f"{where}: {problem}" for problem in _find_conflicts(trick, file, projects)]
        yield trick


def _find_conflicts(trick: Trick, file: str, projects: Mapping[str, SampleProject]) -> Iterable[str]:
    """Yield the conflicts of a valid trick with its file and its project."""
    if trick.family != file.removesuffix(".toml"):
        yield f"family: {trick.family!r} is not the name of the file"
    project = projects.get(trick.project)
    if project is None:
        yield f"project: there is no project {trick.project!r}"
        return
    set_up = bool(project.setup)
    repaired = project.repair.apply(project.files, set_up=set_up) if trick.honest.repair else project.files
    for act, whose, files in ((trick.cheat, "cheat", project.files), (trick.honest, "honest", repaired)):
        try:
            act.apply(files, set_up=set_up)
        except ValueError as error:
            yield f"{whose}: {error}"


def _find_duplicates(tricks: Sequence[Trick]) -> list[str]:
    families: dict[str, str] = {}
    problems = []
    for trick in tricks:
        if trick.name in families:
            problems.append(
                f"{trick.family}.toml: trick {trick.name!r}: {families[trick.name]}.toml has a trick of this name"
            )
        families.setdefault(trick.name, trick.family)
    return problems


def _format_errors(where: str, error: ValidationError) -> list[str]:
    messages = []
    for detail in error.errors(include_url=False):
        field = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ")
        messages.append(f"{where}: {field}: {message}" if field else f"{where}: {message}")
    return messages
