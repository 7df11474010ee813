from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from proofstone.machine.files import remove_folder, scratch_folder

KILLED = """
import os, signal, sys
from pathlib import Path
from proofstone.machine.files import scratch_folder
with scratch_folder(Path(sys.argv[1]), "killed") as folder:
    (folder / "x").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_leaves_no_scratch_folder(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "run") as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep").chmod(0)
    assert not folder.exists()


def test_what_a_killed_run_left_is_swept_by_the_next_and_a_living_run_is_left_alone(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert (tmp_path / "scratch" / "killed").is_dir()
    with scratch_folder(tmp_path, "one") as one:
        assert not (tmp_path / "scratch" / "killed").exists()
        with scratch_folder(tmp_path, "two"):
            assert one.is_dir()


def test_removing_does_not_follow_symlinks(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(outside)
    remove_folder(tmp_path / "tree")
    assert (outside / "kept").exists() and not (tmp_path / "tree").exists()
