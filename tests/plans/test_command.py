from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.errors import InputError
from proofstone.machine.files import read_plan_file
from tests.plans.reading import FIXTURES, element, fixture
from tests.workshop import proofstone


def lint(tmp_path: Path, *args: str) -> tuple[int, str, str]:
    done = proofstone("plan", "lint", *args, home=tmp_path / "home", cwd=tmp_path)
    return done.returncode, done.stdout, done.stderr


def test_a_sound_plan_is_counted(tmp_path: Path) -> None:
    assert lint(tmp_path, str(FIXTURES / "plain.md")) == (0, "2 tasks, 2 waves, 0 errors, 0 warnings\n", "")


def test_warnings_alone_let_it_pass(tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(element(done="It works"))
    code, out, _ = lint(tmp_path, "PLAN.md")
    assert code == 0
    assert out.startswith("PLAN.md:6: warning: nobody can check 'It works'\n  hint: say what one can see")
    assert out.endswith("1 task, 1 wave, 0 errors, 1 warning\n")


def test_errors_are_told_by_line_and_end_with_2(tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(fixture("wrong"))
    code, out, err = lint(tmp_path, "PLAN.md")
    assert (code, err) == (2, "")
    said = [line for line in out.splitlines() if line.startswith("PLAN.md:")]
    lines = [int(line.split(":")[1]) for line in said]
    assert lines == sorted(lines)
    assert "PLAN.md:13: error: `echo done` passes whatever was changed" in said
    assert out.endswith("4 tasks, 1 wave, 15 errors, 1 warning\n")


def test_the_same_for_a_program(tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(fixture("wrong"))
    code, out, _ = lint(tmp_path, "PLAN.md", "--json")
    document = json.loads(out)
    assert code == 2
    assert list(document) == ["path", "tasks", "waves", "problems"]
    assert [task["id"] for task in document["tasks"]] == ["task-01", "task-02", "task-03", "task-04"]
    assert document["problems"][0] == {
        "severity": "error",
        "rule": "frontmatter",
        "line": 5,
        "message": "an artifact has no `path`",
        "hint": "write `- path: src/thing.py`",
        "task": None,
    }


def test_nothing_is_run_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(element(verify="touch ran", action="$(touch ran)"))
    assert lint(tmp_path, "PLAN.md")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["PLAN.md"]


def test_text_of_the_plan_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(element(name="\x1b[2J", done=""))
    assert "\x1b" not in lint(tmp_path, "PLAN.md")[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \n", "is empty"),
        (b"# Plan\n\0\x01\x02", "is not text"),
        (b"# Plan\nb\xe4d\n", "PLAN.md:2: this is not UTF-8"),
        (b"x" * (2 * 1024 * 1024 + 1), "is larger than 2 MiB"),
    ],
)
def test_what_cannot_be_a_plan_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "PLAN.md"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as raised:
        read_plan_file(path)
    assert raised.value.hint
    assert lint(tmp_path, "PLAN.md")[0] == 2


def test_a_file_of_fifty_megabytes_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "PLAN.md"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024 * 1024)  # a hole: nobody could read it all
    with pytest.raises(InputError, match=r"larger than 2 MiB|not text"):
        read_plan_file(path)


@pytest.mark.parametrize(
    ("name", "said"), [("gone.md", "no such file"), (".", "not a file"), ("PLAN.md/x", "not a file")]
)
def test_what_is_no_file_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "PLAN.md").write_text("x")
    with pytest.raises(InputError, match=said):
        read_plan_file(tmp_path / name)


def test_bytes_stay_as_they_are_and_text_gets_plain_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "PLAN.md"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_plan_file(path) == (b"\xef\xbb\xbfa\r\nb\rc\n", "a\nb\nc\n")


def test_a_wrong_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "PLAN.md").write_text(element())
    code, _, err = lint(tmp_path, "PLAN.md", "--repo", "gone")
    assert code == 2
    assert "--repo gone: there is no such directory" in err
