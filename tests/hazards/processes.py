"""What a run must not leave behind on the machine."""

from __future__ import annotations

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def running(*words: str) -> list[int]:
    """Processes whose command line begins with these words, wherever they are."""
    wanted = [word.encode() for word in words]
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if file.read_bytes().split(b"\0")[: len(wanted)] == wanted:
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


def control_groups(process: int) -> list[Path]:
    """Groups that this run of Assay made and did not remove."""
    # Those of other tests come and go meanwhile; a walk does not mind.
    found = ((folder, name) for folder, names, _ in os.walk(CGROUPS) for name in names)
    return [Path(folder, name) for folder, name in found if name.startswith(f"assay-{process}-")]


def mounts_below(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {folder}" in line]
