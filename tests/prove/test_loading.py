"""The catalogue is read whole, or what is wrong with it is said: file, trick, field."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.errors import InputError
from proofstone.prove.axes import find_unknown_names, load_axes
from proofstone.prove.catalogue import CATALOGUE_FOLDER, load_catalogue, select_tricks
from proofstone.prove.compose import load_whole_catalogue
from tests.prove.conftest import catalogue, trick


def problems(folder: Path) -> str:
    with pytest.raises(InputError) as raised:
        load_catalogue(folder)
    return raised.value.message


def test_tricks_and_projects_of_several_files_are_merged(tmp_path: Path) -> None:
    more = '[projects.other]\nabout = "x"\ntest = "true"\nfiles = { "a" = "b" }\n'
    second = trick("two", family="second")
    found = load_catalogue(catalogue(tmp_path / "c", trick("one"), **{"projects-more": more, "second": second}))
    assert set(found.projects) == {"shell", "other"}
    assert [one.name for one in found.tricks] == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (trick("one").replace("[trick.honest]\nrepair = true", ""), "own.toml: trick 'one': honest: Field required"),
        (trick("one", honest=""), "own.toml: trick 'one': honest: does nothing: add `repair = true` or files"),
        (trick("one", ""), "own.toml: trick 'one': cheat: does nothing"),
        (trick("one", rules=()), "own.toml: trick 'one': layer, rules: say which layer must stop the trick"),
        (trick("one", family="other"), "own.toml: trick 'one': family: 'other' is not the name of the file"),
        (trick("one", more="colour = 1"), "own.toml: trick 'one': colour: Extra inputs are not permitted"),
        (trick("one").replace('"shell"', '"shel"'), "own.toml: trick 'one': project: there is no project 'shel'"),
        (trick("one").replace('name = "one"', ""), "own.toml: trick number 1: name: Field required"),
        (trick("one") + trick("one"), "own.toml: trick 'one': own.toml has a trick of this name"),
        (
            trick("one", 'edit = [{ path = "double.sh", old = "gone", new = "" }]'),
            "own.toml: trick 'one': cheat: edit of double.sh: 'gone' occurs 0 times, not once",
        ),
        (
            trick("one", honest='repair = true\nedit = [{ path = "double.sh", old = "* 3", new = "" }]'),
            "own.toml: trick 'one': honest: edit of double.sh: '* 3' occurs 0 times, not once",
        ),
        (
            trick("one", 'delete = ["gone"]'),
            "own.toml: trick 'one': cheat: delete of gone: the project has no such file",
        ),
        (trick("one", 'write = { "../x" = "" }'), "must be a path inside the project"),
        ("[[trick", "own.toml: "),
        ("[[tricks]]\nx = 1", "own.toml: tricks: unknown key"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    assert told in problems(catalogue(tmp_path / "c", text))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    told = problems(catalogue(tmp_path / "c", trick("one", honest=""), trick("two", rules=())))
    assert "trick 'one'" in told and "trick 'two'" in told


def test_a_project_is_defined_once(tmp_path: Path) -> None:
    again = '[projects.shell]\nabout = "x"\ntest = "true"\nfiles = { "a" = "b" }\n'
    told = problems(catalogue(tmp_path / "c", trick("one"), **{"projects-more": again}))
    assert "projects.toml: project 'shell': another project has this name" in told


def test_a_repair_that_does_not_fit_its_project_is_found(tmp_path: Path) -> None:
    other = '[projects.other]\nabout = "x"\ntest = "true"\nfiles = { "a" = "b" }\nrepair = { delete = ["c"] }\n'
    told = problems(catalogue(tmp_path / "c", trick("one"), **{"projects-more": other}))
    assert told == "projects-more.toml: project 'other': delete of c: the project has no such file"


def test_a_folder_without_a_catalogue_is_refused(tmp_path: Path) -> None:
    assert "no catalogue of tricks" in problems(tmp_path)


def test_tricks_are_chosen_by_name_family_and_speed(tmp_path: Path) -> None:
    second = trick("three", family="second", more="quick = true")
    found = load_catalogue(catalogue(tmp_path / "c", trick("one"), trick("two", more="quick = true"), second=second))
    assert [one.name for one in select_tricks(found, names=["one"], families=["second"])] == ["one", "three"]
    assert [one.name for one in select_tricks(found, quick=True)] == ["two", "three"]
    assert len(select_tricks(found)) == 3
    with pytest.raises(InputError, match="no trick 'tow'") as raised:
        select_tricks(found, names=["tow"])
    assert raised.value.hint == "did you mean two?"
    with pytest.raises(InputError, match="no family 'x'"):
        select_tricks(found, families=["x"])


def test_the_twins_word_comes_before_the_tricks_and_that_before_the_projects(tmp_path: Path) -> None:
    honest = 'repair = true\ndeclared = []\naccept = "meant to be so"'
    found = load_catalogue(catalogue(tmp_path / "c", trick("one", honest=honest, more='must_pass = ["t"]')))
    (one,), project = found.tricks, found.projects["shell"]
    cheat, twin = one.resolve_options(project), one.resolve_options(project, one.honest)
    assert (cheat.declared, twin.declared) == (("double.sh",), ())
    assert cheat.must_pass == twin.must_pass == ("t",)
    assert (cheat.accept, twin.accept) == (None, "meant to be so")


FAKE = """
[[fakes]]
name = "table"
class = "inputs"
kind = "answer"
subjects = ["sum"]
body = "return plain()"
[classes]
inputs = "the answer"
[kinds.answer]
name = "settle"
params = "plain"
neutral = "plain()"
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FAKE, "composed: places: Field required"),
        (FAKE + "[colours]\nred = 1\n", "composed/axes.toml: colours: unknown table; expected one of "),
        ("[[fakes", "composed/axes.toml: "),
        (FAKE + "[[sources]]\nplace = 1\n", "composed: sources.0.about: Field required"),
    ],
)
def test_what_is_wrong_with_the_axes_is_said_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "composed").mkdir()
    (tmp_path / "composed" / "axes.toml").write_text(text)
    with pytest.raises(InputError) as raised:
        load_axes(tmp_path / "composed")
    assert told in raised.value.message


def test_a_name_that_no_axis_has_is_said_with_its_owner() -> None:
    axes = load_axes(CATALOGUE_FOLDER / "composed")
    assert axes is not None
    fewer = axes.model_copy(update={"subjects": {}})
    assert "composed: fake 'table': there is no subject 'slug'" in find_unknown_names("composed", fewer)


def test_composed_tricks_are_tried_only_if_they_are_asked_for() -> None:
    whole = load_whole_catalogue()
    assert not any(trick.axes for trick in select_tricks(whole))
    assert select_tricks(whole, families=["composed"]) == whole.composed
    name = whole.composed[0].name
    assert [trick.name for trick in select_tricks(whole, names=[name])] == [name]
