"""What the catalogue holds: sample projects, tricks, and for each trick the honest twin that must pass.

A trick is data: what it writes, edits and deletes, which lines it runs, and which rule must stop it. The same is true
of its twin, so that a layer which stops the trick by stopping everybody is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from proofstone.contracts.base import Contract

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
            return next((value for one in given if (value := getattr(one, name, None)) is not None), ())

        accept = next((one.accept for one in (twin or Options(), self) if one.accept is not None), None)
        return Options(
            declared=first("declared"), must_pass=first("must_pass"), verify=first("verify"), accept=accept or None
        )


class Catalogue(Contract):
    projects: Mapping[str, Project]
    tricks: tuple[Trick, ...]
