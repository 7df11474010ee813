"""Manifests are written by anyone: they may be broken, and that is said rather than raised."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from proofstone.check.discovery import discover
from proofstone.sources.text import parse_jsonc
from tests.check.ecosystems.trees import Files, discovery_of, names_of
from tests.rows import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["scripts", "test", "workspaces", "packages", "dependencies", "eslintConfig", "references"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)

BROKEN: dict[str, Files] = {
    "toml": {"pyproject.toml": "[tool.ruff\n"},
    "toml that is not utf-8": {"pyproject.toml": b"name = '\xff'\n[tool.ruff"},
    "json": {"package.json": "{"},
    "deep json": {"package.json": "[" * 100_000},
    "ini": {"setup.cfg": "no section\n"},
    "a json list": {"package.json": "[1]"},
}


@each_row("files", BROKEN.values())
def test_a_broken_manifest_is_a_note_that_names_the_file(files: Files) -> None:
    found = discovery_of({**files, "go.mod": "module a\n"})
    assert any(note.startswith(next(iter(files))) for note in found.notes)
    assert "build:go" in {spec.name for spec in found.specs}


def test_a_note_is_given_once_and_names_the_line_where_there_is_one() -> None:
    notes = discovery_of({"pyproject.toml": "a = 1\nb = \n"}).notes
    assert [note for note in notes if "pyproject.toml" in note and "line 2" in note]
    assert len(notes) == len(set(notes))


def test_a_byte_order_mark_and_utf_16_are_read() -> None:
    assert names_of({"package.json": b'\xef\xbb\xbf{"scripts": {"test": "jest"}}'}) == {"tests:jest"}
    assert names_of({"pytest.ini": "[pytest]\n".encode("utf-16")}) == {"tests:pytest"}


def test_an_unreadable_blob_is_as_good_as_none() -> None:
    assert discover(["pyproject.toml", "package.json"], lambda _: None).specs == ()


def test_json_with_comments_keeps_strings_that_look_like_comments() -> None:
    text = '{"a": "http://x", /* c */ "b": [1, 2, ], // end\n "c": "/* no */",}'
    assert parse_jsonc(text) == {"a": "http://x", "b": [1, 2], "c": "/* no */"}


def test_a_comma_before_a_comment_that_quotes_brackets_is_kept() -> None:
    text = '{"a": 1, /* one */\n // "lib": [], /* two */\n "b": 2 /* [] */ }'
    assert parse_jsonc(text) == {"a": 1, "b": 2}


@given(JSON)
def test_plain_json_is_read_as_it_is(value: object) -> None:
    assert parse_jsonc(json.dumps(value)) == value


MANIFESTS = (
    *("pyproject.toml", "setup.cfg", "tox.ini", "Pipfile", "requirements.txt", "package.json", "tsconfig.json"),
    *("Cargo.toml", "pom.xml", "go.mod", "A.sln", "A.csproj", "Gemfile", "Rakefile", "CMakeLists.txt", "Makefile"),
    *("lerna.json", "pnpm-workspace.yaml", "test_a.py", "a/package.json", "a/Cargo.toml", "a/pyproject.toml"),
)


@given(st.dictionaries(st.sampled_from(MANIFESTS), st.binary(max_size=200)))
def test_no_bytes_in_manifests_raise(files: dict[str, bytes]) -> None:
    first = discover(list(files), files.get)
    assert first == discover(list(reversed(files)), files.get)


@given(JSON, JSON)
def test_no_shape_of_package_json_raises(value: object, script: object) -> None:
    manifests = {"package.json": value, "a/package.json": {"scripts": {"test": script}}, "lerna.json": value}
    files = {path: json.dumps(content).encode() for path, content in manifests.items()}
    discover(list(files), files.get)


@given(st.text(max_size=60))
def test_no_test_script_raises_or_loses_the_tests(script: str) -> None:
    files = {"package.json": json.dumps({"scripts": {"test": script}}).encode()}
    specs = discover(list(files), files.get).specs
    assert bool(specs) == bool(script.strip()) or "no test specified" in script.lower()


@given(st.lists(st.text(alphabet="ab./ -é\n", min_size=1, max_size=12)))
def test_no_path_raises(paths: list[str]) -> None:
    discover([*paths, *(f"{path}/package.json" for path in paths)], lambda _: b"{}")
