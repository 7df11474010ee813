"""Files into somebody's folder: all of them or none, and over nothing that is not ours."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from proofstone.errors import InputError
from proofstone.export.writer import ExportResult, write_exported_files

FILES = {"a/b/one.md": "one\n", "two.md": "zwei\n"}


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_folder_is_made_and_filled_and_nothing_else_is_left(tmp_path: Path) -> None:
    root = tmp_path / "new" / "folder"
    assert write_exported_files(root, FILES, force=False) == ExportResult(tuple(FILES), (), ())
    assert everything(root) == {path: text.encode() for path, text in FILES.items()}
    assert sorted(path.name for path in root.iterdir()) == ["a", "two.md"]


def test_files_that_are_the_same_are_left_alone(tmp_path: Path) -> None:
    write_exported_files(tmp_path, FILES, force=False)
    os.utime(tmp_path / "two.md", (1, 1))
    assert write_exported_files(tmp_path, {**FILES, "three.md": ""}, force=True) == ExportResult(
        ("three.md",), (), tuple(FILES)
    )
    assert (tmp_path / "two.md").stat().st_mtime == 1


def test_what_differs_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "two.md").write_text("mine\n")
    with pytest.raises(InputError, match=r"these names; nothing was written:\ntwo\.md") as caught:
        write_exported_files(tmp_path, FILES, force=False)
    assert "--force" in (caught.value.hint or "")
    assert everything(tmp_path) == {"two.md": b"mine\n"}


def test_force_replaces_what_differs_and_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "two.md").write_text("mine\n")
    (tmp_path / "two.md").chmod(0o600)
    assert write_exported_files(tmp_path, FILES, force=True) == ExportResult(("a/b/one.md",), ("two.md",), ())
    assert (tmp_path / "two.md").read_text() == "zwei\n"
    assert stat.S_IMODE((tmp_path / "two.md").stat().st_mode) == 0o600


def test_if_one_cannot_take_its_place_all_go_back(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine\n")
    colliding = {"new/a": "a\n", "b": "b\n", "c": "c\n", "c/d": "d\n"}  # `c` cannot be both
    with pytest.raises(InputError, match="Not a directory") as caught:
        write_exported_files(tmp_path, colliding, force=True)
    assert "nothing was written" in (caught.value.hint or "")
    assert everything(tmp_path) == {"b": b"mine\n"}
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_if_one_cannot_be_written_the_folder_is_not_even_there(tmp_path: Path) -> None:
    program = (
        "import resource, sys; from pathlib import Path; from proofstone.export.writer import write_exported_files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "write_exported_files(Path(sys.argv[1]), {'a': 'short', 'b': 'x' * 100}, force=False)"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 10
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "d" / "e")], capture_output=True, text=True)
    assert "InputError" in done.stderr
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["two.md", "a", "a/b"])
def test_nothing_is_written_through_a_link(path: str, tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / path).parent.mkdir(parents=True)
    (root / path).symlink_to(elsewhere / "two.md" if path == "two.md" else elsewhere)
    with pytest.raises(InputError, match="symbolic link"):
        write_exported_files(root, FILES, force=True)
    assert list(elsewhere.iterdir()) == []


def test_a_link_that_leads_nowhere_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match="is not a folder"):
        write_exported_files(tmp_path / "link", FILES, force=False)
    assert not (tmp_path / "gone").exists()


def test_a_folder_where_a_file_belongs_is_in_the_way_and_the_reverse(tmp_path: Path) -> None:
    (tmp_path / "two.md").mkdir()
    with pytest.raises(InputError, match=r"two\.md is not a regular file"):
        write_exported_files(tmp_path, FILES, force=True)
    (tmp_path / "two.md").rmdir()
    (tmp_path / "a").write_text("")
    with pytest.raises(InputError, match="a is not a folder"):
        write_exported_files(tmp_path, FILES, force=True)


def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "two.md")
    with pytest.raises(InputError, match="not a regular file"):
        write_exported_files(tmp_path, FILES, force=True)


def test_a_place_that_cannot_be_written_to_is_a_clear_error() -> None:
    with pytest.raises(InputError, match="/proc/"):
        write_exported_files(Path("/proc/proofstone-export"), FILES, force=False)
