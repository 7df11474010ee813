"""The axes of composed tricks: what is faked, where it lives, when it acts, how it is hidden. Models, and reading them.

The axes are data, in the folder `composed` of the catalogue. `compose.py` combines them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from proofstone.common.models import FrozenModel
from proofstone.errors import InputError

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Language = Literal["python", "node"]
Rows = tuple[tuple[str, str], ...]
"""Pairs of a key and a value, each as a literal of the language."""
Files = Mapping[str, str]
Slots = Mapping[str, str]


class Subject(FrozenModel):
    """What a sample project computes."""

    language: Language
    hidden: str
    """Inputs and their answers, as a literal: those that the hidden check uses."""
    rows: Mapping[str, Rows]
    """Named rows that fakes refer to, such as the inputs of the tests."""
    slots: Slots


class Style(FrozenModel):
    """How a sample project is tested."""

    about: str
    extends: str = ""
    language: Language = "python"
    needs: tuple[str, ...] = ()
    test: str = ""
    """The command of a gate that looks only at exit codes."""
    verify: tuple[str, ...] = ()
    hidden: str = ""
    """A command that prints `every answer is right` where the work was done."""
    slots: Slots = Field(default_factory=dict)
    files: Files = Field(default_factory=dict)
    hidden_files: Files = Field(default_factory=dict)


class Disguise(FrozenModel):
    """A way to write a function."""

    about: str
    needs: Literal["", "hashed", "repeatable"] = ""
    text: Mapping[Language, str]
    files: Mapping[Language, Files] = {}
    """What else changes, in the cheat and in its twin."""


class Kind(FrozenModel):
    """The signature of a fake."""

    name: str
    params: str
    neutral: str
    node_neutral: str = ""


class Fake(FrozenModel):
    """A function that fakes something, and what an honest author writes instead."""

    name: Slug
    kind: str
    class_: str = Field(alias="class")
    language: Language = "python"
    subjects: tuple[str, ...] = Field(min_length=1)
    styles: tuple[str, ...] = ()
    side: Literal["", "tests", "product"] = ""
    not_at: tuple[str, ...] = ()
    only_at: tuple[str, ...] = ()
    repeatable: bool = True
    """Whether it does the same when it is called again."""
    rows: str | Rows = ()
    """What it knows: pairs, or the name of rows of the subject."""
    honest_rows: str | Rows | None = None
    body: str
    hashed: str = ""
    """The body if only the checksums of the keys are known."""
    honest: str = ""


class FakeHook(FrozenModel):
    """A place of a fake, and the moment at which the fake acts there."""

    place: str
    moment: str
    kind: str
    language: Language = "python"
    side: Literal["tests", "product"] = "tests"
    styles: tuple[str, ...] = ()
    slots: Slots = Field(default_factory=dict)
    files: Files = Field(default_factory=dict)


class Source(FrozenModel):
    """A place for the rows of a fake whose function stands in the product."""

    place: str
    about: str
    language: Language = "python"
    files: Files
    loader: Mapping[Language, str]


class SourceHook(FrozenModel):
    """The moment at which the rows are read."""

    moment: str
    language: Language = "python"
    rows: str
    files: Files


class EditedSide(FrozenModel):
    slots: Slots = Field(default_factory=dict)
    files: Files = Field(default_factory=dict)
    delete: tuple[str, ...] = ()


class Edit(FrozenModel):
    """A fake that is no function but an edited text, and the honest edit of the same text."""

    name: Slug
    class_: str = Field(alias="class")
    place: str
    moment: str
    language: Language = "python"
    style: str
    subjects: tuple[str, ...] = Field(min_length=1)
    formula: Literal["wrong", "right"] = "wrong"
    """The formula of the cheat."""
    cheat: EditedSide
    honest: EditedSide


class RunnerOption(FrozenModel):
    """An option of the test runner."""

    name: Slug
    cheat: str
    honest: str


class OptionFile(FrozenModel):
    """A file that the test runner reads options from."""

    name: Slug
    files: Files


class Axes(FrozenModel):
    classes: Mapping[str, str]
    """What is faked."""
    places: Mapping[str, str]
    moments: Mapping[str, str]
    kinds: Mapping[str, Kind]
    fakes: tuple[Fake, ...]
    edits: tuple[Edit, ...]
    options: tuple[RunnerOption, ...]
    option_files: tuple[OptionFile, ...]
    hooks: tuple[FakeHook, ...]
    sources: tuple[Source, ...]
    source_hooks: tuple[SourceHook, ...]
    disguises: Mapping[str, Disguise]
    styles: Mapping[str, Style]
    subjects: Mapping[str, Subject]


_TABLES: Final = frozenset(Axes.model_fields)


def load_axes(folder: Path) -> Axes | None:
    """Read the axes from the folder, or return None if there is no such folder."""
    if not folder.is_dir():
        return None
    merged: dict[str, Any] = {}
    problems: list[str] = []
    for file in sorted(folder.glob("*.toml")):
        try:
            tables = tomllib.loads(file.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            problems.append(f"{folder.name}/{file.name}: {error}")
            continue
        for name, table in tables.items():
            if name in merged:
                problems.append(f"{folder.name}/{file.name}: {name}: another file has this table")
            elif name not in _TABLES:
                expected = ", ".join(sorted(_TABLES))
                problems.append(f"{folder.name}/{file.name}: {name}: unknown table; expected one of {expected}")
            merged.setdefault(name, table)
    if not problems:
        try:
            axes = Axes.model_validate(merged)
        except ValidationError as error:
            problems = [
                f"{folder.name}: {'.'.join(map(str, detail['loc']))}: {detail['msg']}"
                for detail in error.errors(include_url=False)
            ]
        else:
            problems = find_unknown_names(folder.name, axes)
    if problems:
        raise InputError("\n".join(problems), hint=f"correct the axes in {folder}")
    return axes


def find_unknown_names(where: str, axes: Axes) -> list[str]:
    """Return a problem for each reference to something that no table has."""
    return [
        f"{where}: {owner}: there is no {axis} {name!r}"
        for owner, axis, name, known in _list_references(axes)
        if name not in known
    ]


def _list_references(axes: Axes) -> Iterator[tuple[str, str, str, Collection[str]]]:
    """Yield who refers to what: the owner, the axis, the name, and the names that there are."""
    for fake in axes.fakes:
        owner = f"fake {fake.name!r}"
        yield owner, "class", fake.class_, axes.classes
        yield owner, "kind", fake.kind, axes.kinds
        yield from ((owner, "subject", subject, axes.subjects) for subject in fake.subjects)
        yield from ((owner, "style", style, axes.styles) for style in fake.styles)
        yield from ((owner, "moment", moment, axes.moments) for moment in (*fake.not_at, *fake.only_at))
    for edit in axes.edits:
        owner = f"edit {edit.name!r}"
        yield owner, "class", edit.class_, axes.classes
        yield owner, "style", edit.style, axes.styles
        yield owner, "place", edit.place, axes.places
        yield owner, "moment", edit.moment, axes.moments
        yield from ((owner, "subject", subject, axes.subjects) for subject in edit.subjects)
    for hook in axes.hooks:
        owner = f"hook of {hook.kind} in {hook.place}"
        yield owner, "kind", hook.kind, axes.kinds
        yield owner, "place", hook.place, axes.places
        yield owner, "moment", hook.moment, axes.moments
        yield from ((owner, "style", style, axes.styles) for style in hook.styles)
    yield from ((f"source {source.about!r}", "place", source.place, axes.places) for source in axes.sources)
    yield from (("source hook", "moment", hook.moment, axes.moments) for hook in axes.source_hooks)
    for name, style in axes.styles.items():
        if style.extends:
            yield f"style {name!r}", "style", style.extends, axes.styles
