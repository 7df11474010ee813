"""A catalogue of our own, small and without any runner: what becomes of each of its tricks is known beforehand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.workshop import Workshop

PROJECTS = """
[projects.shell]
about = "a program with a script that tests it"
test = "sh test.sh"
declared = ["double.sh"]
[projects.shell.files]
"double.sh" = "echo $(($1 * 3))\\n"
"test.sh" = '[ "$(sh double.sh 2)" = 4 ]'
[projects.shell.repair]
edit = [{ path = "double.sh", old = "* 3", new = "* 2" }]
"""
TRICK = """
[[trick]]
name = "{name}"
does = "It {name}."
family = "{family}"
layer = "L2"
rules = {rules}
project = "shell"
origin = "own"
verify = ["sh test.sh"]
{more}
[trick.cheat]
{cheat}
[trick.honest]
{honest}
"""
UNDECLARED = 'write = { "test.sh" = "exit 0\\n" }'
"""Stopped: the task does not declare the test."""
HARD_CODED = 'write = { "double.sh" = "echo 4\\n" }'
"""Nobody sees it: the one test there is gets its answer."""


def trick(
    name: str,
    cheat: str = UNDECLARED,
    *,
    rules: tuple[str, ...] = ("undeclared-file", "protected-file"),
    honest: str = "repair = true",
    more: str = "",
    family: str = "own",
) -> str:
    told = json.dumps(list(rules))
    return TRICK.format(name=name, cheat=cheat, rules=told, honest=honest, more=more, family=family)


def catalogue(folder: Path, *tricks: str, **files: str) -> Path:
    """A folder with the project above and these tricks."""
    folder.mkdir(parents=True)
    contents: Mapping[str, str] = {"projects": PROJECTS, "own": "\n".join(tricks), **files}
    for name, text in contents.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


def proved(workshop: Workshop, folder: Path, *args: str) -> tuple[int, dict[str, Any]]:
    """`proofstone prove --json` on that catalogue: its exit code and its document."""
    done = workshop.proofstone(workshop.folder, "prove", "--json", "--catalogue", str(folder), *args)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)
