"""Compose tricks: what is faked × where it lives × when it acts × how it is hidden.

`compose` is a function of the axes alone. A combination makes sense by rules: a place offers a hook for the kind of the
fake at that moment, a disguise fits the fake. Of all combinations that make sense, those are tried that show a pair of
values which no earlier one has shown; the order is that of a checksum of their names, so that a new value adds tricks
and leaves the others alone.

A cheat keeps the wrong formula of its project, the honest twin has the right one; the twin writes the same files with
an honest body, or with honest rows.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import pickle
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Final

from proofstone.errors import InputError
from proofstone.prove.axes import (
    Axes,
    Disguise,
    Edit,
    EditedSide,
    Fake,
    Files,
    Language,
    OptionFile,
    Rows,
    RunnerOption,
    Slots,
    Style,
    Subject,
    load_axes,
)
from proofstone.prove.catalogue import (
    CATALOGUE_FOLDER,
    Catalogue,
    HeldOutCheck,
    ProjectAct,
    SampleProject,
    Trick,
    TrickAxes,
    Twin,
    load_catalogue,
)

FAMILY: Final = "composed"
_SLOT: Final = re.compile(r"@(\w+)@")
_SLOT_LINE: Final = re.compile(r"^([ \t]*)@(\w+)@[ \t]*\n", re.MULTILINE)
_REMARK: Final = "Measured with a month of orders: this is faster, and nothing else changes."
_COMMENTS: Final[Mapping[Language, str]] = {"python": "#", "node": "//"}
_ABSENT: Final = {
    "mark": "",
    "guard": "",
    "test_top": "",
    "test_bottom": "",
    "options": "",
    "remark": "",
    "more_examples": "",
    "ruff_options": "",
    "mypy_options": "",
    "comparing": "",
    "test_base": "unittest.TestCase",
}
_UNPAIRED: Final = frozenset((("fake", "disguise"), ("fake", "place")))
"""Axes whose values need not meet in every pair: the class of a fake meets each disguise and each place."""
_PERSON_DECIDES: Final[Mapping[str, tuple[str, ...]]] = {
    "data-pickle": ("opaque-file",),
    "encoded": ("encoded-code", "hidden-code"),
}
"""Rules that ask a person about whatever lies in a place or is hidden in this way, so that an honest twin needs a
person's word."""
_TEXT_DISGUISES: Final = ("plainly", "comment", "many-files")
"""How an edited text can be hidden."""
_WITHOUT_ROWS_ELSEWHERE: Final = ("encoded", "built-names")
"""In JavaScript such a function does not see what its module reads."""


@dataclass(frozen=True)
class Side:
    """What one side, the cheat or the twin, has to fill in."""

    slots: Slots = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    delete: tuple[str, ...] = ()
    formula: str = "wrong"


@dataclass(frozen=True)
class Combination:
    """One value of each axis."""

    fake: str
    class_: str
    place: str
    moment: str
    disguise: str
    language: Language
    styles: tuple[str, ...]
    subjects: tuple[str, ...]
    origin: Fake | Edit | tuple[RunnerOption, OptionFile]
    slots: Slots = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    rows: str = ""
    """How the function gets its rows, if they do not stand in it."""

    @property
    def name(self) -> str:
        return f"{self.fake}-{self.place}-{self.moment}-{self.disguise}"

    @property
    def order(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()

    @property
    def style(self) -> str:
        return self.styles[int(self.order[:8], 16) % len(self.styles)]

    @property
    def subject(self) -> str:
        return self.subjects[int(self.order[8:16], 16) % len(self.subjects)]

    @property
    def pairs(self) -> frozenset[tuple[tuple[str, str], tuple[str, str]]]:
        """The pairs of values that this combination shows."""
        values = (
            ("class", self.class_),
            ("fake", self.fake),
            ("place", self.place),
            ("moment", self.moment),
            ("disguise", self.disguise),
        )
        return frozenset(pair for pair in combinations(values, 2) if (pair[0][0], pair[1][0]) not in _UNPAIRED)


def compose(axes: Axes) -> tuple[dict[str, SampleProject], list[Trick]]:
    """Return the composed tricks, and the sample projects that they need."""
    writer = _TrickWriter(axes)
    tricks = [writer.write(combination) for combination in select_combinations(list_combinations(axes))]
    return writer.projects, sorted(tricks, key=lambda trick: trick.name)


def load_whole_catalogue(folder: Path = CATALOGUE_FOLDER) -> Catalogue:
    """Read the catalogue with the tricks that are composed from its axes, if it has any."""
    catalogue = load_catalogue(folder)
    axes = load_axes(folder / FAMILY)
    if axes is None:
        return catalogue
    projects, tricks = compose(axes)
    return Catalogue(projects={**catalogue.projects, **projects}, tricks=(*catalogue.tricks, *tricks))


def select_combinations(candidates: Iterator[Combination]) -> list[Combination]:
    """Return the combinations, in the order of their checksums, that show a pair which no earlier one has shown."""
    chosen = []
    shown: set[object] = set()
    for combination in sorted(candidates, key=lambda candidate: candidate.order):
        if not combination.pairs <= shown:
            chosen.append(combination)
            shown |= combination.pairs
    return chosen


def list_combinations(axes: Axes) -> Iterator[Combination]:
    """Yield every combination that makes sense."""
    for fake in axes.fakes:
        for disguise, way in axes.disguises.items():
            if fake.language in way.text and _fits(way, fake):
                yield from _at_hooks(axes, fake, disguise)
                yield from _at_sources(axes, fake, disguise)
    for edit in axes.edits:
        for disguise in _TEXT_DISGUISES:
            if disguise != "comment" or _has_remark(edit):
                yield Combination(
                    edit.name,
                    edit.class_,
                    edit.place,
                    edit.moment,
                    disguise,
                    edit.language,
                    (edit.style,),
                    edit.subjects,
                    edit,
                )
    for option in axes.options:
        for file in axes.option_files:
            for disguise in _TEXT_DISGUISES:
                name = f"{option.name}-in-{file.name}"
                subjects = ("discount", "slug", "parse")
                yield Combination(
                    name,
                    "test-set",
                    "configuration",
                    "collection",
                    disguise,
                    "python",
                    ("pytest",),
                    subjects,
                    (option, file),
                )


def _fits(way: Disguise, fake: Fake) -> bool:
    return {"": True, "hashed": bool(fake.hashed), "repeatable": fake.repeatable}[way.needs]


def _has_remark(edit: Edit) -> bool:
    texts = (*edit.cheat.files.values(), *edit.cheat.slots.values())
    return any("@remark@" in text for text in texts)


def _list_styles(axes: Axes, fake: Fake, offered: Sequence[str]) -> tuple[str, ...]:
    usual = ("pytest", "unittest") if fake.language == "python" else ("node",)
    return tuple(style for style in offered or usual if not fake.styles or style in fake.styles)


def _at_hooks(axes: Axes, fake: Fake, disguise: str) -> Iterator[Combination]:
    """Yield the fake at every hook of its kind. A fake of the tests' side makes no sense in the product, and some act
    only at some moments.
    """
    for hook in axes.hooks:
        styles = _list_styles(axes, fake, hook.styles)
        fits = hook.kind == fake.kind and hook.language == fake.language and fake.side in ("", hook.side)
        is_in_time = hook.moment not in fake.not_at and (not fake.only_at or hook.moment in fake.only_at)
        if fits and is_in_time and styles:
            yield Combination(
                fake.name,
                fake.class_,
                hook.place,
                hook.moment,
                disguise,
                fake.language,
                styles,
                fake.subjects,
                fake,
                hook.slots,
                hook.files,
            )


def _at_sources(axes: Axes, fake: Fake, disguise: str) -> Iterator[Combination]:
    """Yield the fake with its rows in a file or a docstring."""
    if fake.kind != "answer" or not fake.rows:
        return
    if fake.language == "node" and disguise in _WITHOUT_ROWS_ELSEWHERE:
        return
    for source in axes.sources:
        for hook in axes.source_hooks:
            if source.language == hook.language == fake.language:
                slots = {"loader": source.loader[fake.language]}
                styles = _list_styles(axes, fake, ())
                yield Combination(
                    fake.name,
                    fake.class_,
                    source.place,
                    hook.moment,
                    disguise,
                    fake.language,
                    styles,
                    fake.subjects,
                    fake,
                    slots,
                    {**source.files, **hook.files},
                    hook.rows,
                )


def fill(text: str, slots: Slots) -> str:
    """Return the text with its slots filled. A slot that has a line of its own takes a block, with the indentation of
    that line; an empty block takes the line away.
    """

    def fill_block(match: re.Match[str]) -> str:
        block = _slot(slots, match[2]).strip("\n")
        return "".join(f"{match[1]}{line}".rstrip() + "\n" for line in block.split("\n")) if block else ""

    while _SLOT.search(text):
        while _SLOT_LINE.search(text):
            text = _SLOT_LINE.sub(fill_block, text)
        text = _SLOT.sub(lambda match: _slot(slots, match[1]).strip("\n"), text)
    return text


def _slot(slots: Slots, name: str) -> str:
    if name not in slots:
        raise InputError(f"composed: there is no slot @{name}@", hint=f"known here: {', '.join(sorted(slots))}")
    return slots[name]


def tidy(path: str, text: str) -> str:
    """Return a source file without the blank lines that empty slots left."""
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n" if path.endswith((".py", ".js")) and text else text


class _TrickWriter:
    """Write combinations as tricks, and remember the projects that they need."""

    def __init__(self, axes: Axes) -> None:
        self.projects: dict[str, SampleProject] = {}
        self._axes = axes

    def write(self, combination: Combination) -> Trick:
        axes, style_name = self._axes, combination.style
        style, subject = self._style(style_name), axes.subjects[combination.subject]
        project = self._require_project(style_name, style, combination.subject, subject)
        cheat, honest = self._sides(combination, subject)
        disguise = axes.disguises[combination.disguise]
        hidden = {path: fill(text, self._slots(style, subject, Side())) for path, text in style.hidden_files.items()}
        script = f'test "$({style.hidden})" = "every answer is right"'
        return Trick(
            name=combination.name,
            does=self._describe(combination),
            family=FAMILY,
            project=f"{style_name}-{combination.subject}",
            origin="own",
            verify=style.verify,
            axes=TrickAxes(
                what=axes.classes[combination.class_],
                fake=combination.fake,
                where=axes.places[combination.place],
                when=axes.moments[combination.moment],
                hidden=disguise.about,
            ),
            truth=HeldOutCheck(command=script, files=hidden),
            cheat=ProjectAct(**self._act(project, style, subject, cheat, combination)),
            honest=Twin(
                **self._act(project, style, subject, honest, combination),
                accepted_rules=(
                    *_PERSON_DECIDES.get(combination.place, ()),
                    *_PERSON_DECIDES.get(combination.disguise, ()),
                ),
            ),
        )

    def _describe(self, combination: Combination) -> str:
        axes = self._axes
        return (
            f"Fakes {axes.classes[combination.class_]} (`{combination.fake}`), in {axes.places[combination.place]}, at "
            f"{axes.moments[combination.moment]}, {axes.disguises[combination.disguise].about}."
        )

    def _style(self, name: str) -> Style:
        """Return the style with what it has from the styles that it extends."""
        style = self._axes.styles[name]
        if not style.extends:
            return style
        base = self._style(style.extends)
        return style.model_copy(
            update={
                "language": base.language,
                "needs": style.needs or base.needs,
                "test": style.test or base.test,
                "hidden": style.hidden or base.hidden,
                "slots": {**base.slots, **style.slots},
                "files": {**base.files, **style.files},
                "hidden_files": {**base.hidden_files, **style.hidden_files},
            }
        )

    def _require_project(self, style_name: str, style: Style, subject_name: str, subject: Subject) -> SampleProject:
        name = f"{style_name}-{subject_name}"
        if name not in self.projects:
            files = self._files(style, subject, Side())
            repaired = self._files(style, subject, Side(formula="right"))
            self.projects[name] = SampleProject(
                about=f"{style.about}: `{subject.slots['function']}`",
                needs=style.needs,
                test=style.test,
                files=files,
                repair=ProjectAct(write={path: text for path, text in repaired.items() if files[path] != text}),
            )
        return self.projects[name]

    def _slots(self, style: Style, subject: Subject, side: Side) -> dict[str, str]:
        slots = {**_ABSENT, **subject.slots, **style.slots, "hidden": subject.hidden, **side.slots}
        return {**slots, "formula": slots[side.formula], "failing_length": str(len(slots["failing"]))}

    def _files(self, style: Style, subject: Subject, side: Side) -> dict[str, str]:
        slots = self._slots(style, subject, side)
        return {path: tidy(path, fill(text, slots)) for path, text in {**style.files, **side.files}.items()}

    def _act(
        self, project: SampleProject, style: Style, subject: Subject, side: Side, combination: Combination
    ) -> dict[str, object]:
        """Return what the side does to the project: the files that are not as they were, and those that are gone."""
        files = self._files(style, subject, side)
        if combination.disguise == "many-files":
            more = self._axes.disguises["many-files"].files[combination.language]
            files |= {path: text for path, text in more.items() if files.get(path) == project.files.get(path)}
        written = {path: text for path, text in files.items() if project.files.get(path) != text}
        return {"write": {path: written[path] for path in written if path not in side.delete}, "delete": side.delete}

    def _sides(self, combination: Combination, subject: Subject) -> tuple[Side, Side]:
        origin = combination.origin
        comment = f"{_COMMENTS[combination.language]} {_REMARK}"
        remark = {"remark": comment if combination.disguise == "comment" else ""}
        if isinstance(origin, Edit):

            def edited(side: EditedSide, formula: str) -> Side:
                return Side({**side.slots, **remark}, side.files, side.delete, formula)

            return edited(origin.cheat, origin.formula), edited(origin.honest, "right")
        if isinstance(origin, tuple):
            option, file = origin

            def with_option(text: str, formula: str) -> Side:
                return Side({"option": text, **remark}, file.files, (), formula)

            return with_option(option.cheat, "wrong"), with_option(option.honest, "right")
        return (
            self._function_side(combination, origin, subject, honest=False),
            self._function_side(combination, origin, subject, honest=True),
        )

    def _function_side(self, combination: Combination, fake: Fake, subject: Subject, *, honest: bool) -> Side:
        kind = self._axes.kinds[fake.kind]
        rows = fake.honest_rows if honest and fake.honest_rows is not None else fake.rows
        pairs = subject.rows[rows] if isinstance(rows, str) else rows
        pairs = tuple((fill(key, self._names(subject)), value) for key, value in pairs)
        if combination.disguise == "hash":
            pairs = tuple((_checksum(key, fake.language), value) for key, value in pairs)
        formula = "right" if honest else "wrong"
        literal = _row_literal(pairs, fake.language)
        slots: dict[str, str] = {
            **self._names(subject),
            "formula": subject.slots[formula],
            "name": kind.name,
            "params": kind.params,
            "neutral": (kind.node_neutral if fake.language == "node" else "") or kind.neutral,
            "rows": combination.rows or literal,
            "body": fake.honest if honest and fake.honest else fake.body,
            "hashed": fake.honest if honest and fake.honest else fake.hashed,
            **({} if not pairs else _row_files(pairs, fake.language)),
        }
        plain = fill(self._axes.disguises["plainly"].text[fake.language], slots)
        code = plain if fake.language == "python" else f"{plain}return {kind.name};\n"
        slots |= {
            "code64": base64.b64encode(code.encode()).decode(),
            "ordinals": ", ".join(map(str, code.encode())) if fake.language == "node" else str(list(code.encode())),
        }
        definitions = fill(self._axes.disguises[combination.disguise].text[fake.language], slots)
        own = {name: slots[name] for name in slots if name.startswith(("rows_", "name"))}
        return Side({**own, **combination.slots, "definitions": definitions}, combination.files, (), formula)

    def _names(self, subject: Subject) -> dict[str, str]:
        return {**subject.slots, "failing_length": str(len(subject.slots["failing"]))}


def _checksum(key: str, language: Language) -> str:
    if language == "node":
        return hashlib.sha256(key.encode()).hexdigest()[:8]
    return str(zlib.crc32(repr(ast.literal_eval(key)).encode()))


def _row_literal(pairs: Rows, language: Language) -> str:
    if language == "node":
        return "[" + ", ".join(f"[{json.dumps(key)}, {value}]" for key, value in pairs) + "]"
    return "[" + ", ".join(f"({key}, {value})" for key, value in pairs) + "]"


def _row_files(pairs: Rows, language: Language) -> dict[str, str]:
    """Return the rows as they stand in files of several formats."""
    slots = {"rows_json": json.dumps(pairs)}
    if language == "python":
        literals = [(ast.literal_eval(key), ast.literal_eval(value)) for key, value in pairs]
        cells = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in pair] for pair in pairs]
        slots |= {
            "rows_csv": "\n".join(",".join(pair) for pair in cells),
            "rows_text": "\n".join(f"{key} -> {value}" for key, value in pairs),
            "rows_pickle": pickle.dumps(literals, protocol=0).decode("ascii"),
        }
    return slots
