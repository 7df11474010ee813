"""What is mounted inside HOME stays in sight: in containers, caches and environments are volumes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs
from tests.workshop import Workshop

pytestmark = [needs("bwrap"), pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")]


@pytest.fixture
def volume(workshop: Workshop) -> Iterator[Path]:
    at = workshop.home / ".cache" / "volume"
    at.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", at], check=True)
    try:
        (at / "tool").write_text("#!/bin/sh\necho from the volume\n")
        (at / "tool").chmod(0o755)
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def test_a_volume_below_home_can_be_read_and_not_written(workshop: Workshop, volume: Path) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n"})
    run = workshop.check(root, "--verify", f"{volume}/tool && ! touch {volume}/written")
    assert run.json["outcome"] == "passed", run.json["reason"]
    assert "from the volume" in run.output("verify")
    assert not (volume / "written").exists()


@pytest.fixture
def unmappable(tmp_path: Path) -> Iterator[Workshop]:
    """A workshop on a file system that cannot show its files under other owners."""
    at = tmp_path / "ramfs"
    at.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", at], check=True)
    try:
        yield Workshop.apart(at)
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def test_a_check_of_root_reads_and_writes_its_tree_where_owners_cannot_be_mapped(unmappable: Workshop) -> None:
    root = unmappable.repo({"a.txt": "a\n"})
    unmappable.write(unmappable.home, {".cache/tool": "from the cache\n"})
    (unmappable.home / ".cache").chmod(0o755)
    unmappable.write(root, {"a.txt": "b\n"})
    command = "cat ~/.cache/tool && grep b a.txt && echo c >> a.txt && echo d > new.txt && ! cat /etc/shadow"
    run = unmappable.check(root, "--verify", command)
    assert run.json["outcome"] == "passed", (run.json["reason"], run.output("verify"))
    assert "from the cache" in run.output("verify")
    assert (root / "a.txt").read_text() == "b\n" and not (root / "new.txt").exists()
