"""The locks are in step with pyproject.toml, and say so when they are not."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from release.lock import BUILD, FOLDER, RUNTIME, LockError, problems, read_lock, read_project

from tests.rows import each_row

LOCKS = (BUILD, RUNTIME)


def text(lock: str) -> str:
    return (FOLDER / lock).read_text("utf-8")


@pytest.mark.parametrize("lock", LOCKS)
def test_the_locks_are_in_step_and_name_hashes_and_no_index(lock: str) -> None:
    assert list(problems(read_project(), lock, text(lock))) == []
    pins = read_lock(text(lock))
    assert len(pins) >= 5 and all(pin.hashes for pin in pins)
    assert not re.search(r"https?:|\.org|\.com|index-url|find-links", text(lock))
    for python in ("3.11", "3.12", "3.13", "3.14"):
        needed = [pin.name for pin in pins if pin.is_needed(python)]
        assert len(needed) == len(set(needed)), f"one version of each for Python {python}"


def add(project: dict[str, Any]) -> None:
    project["project"]["dependencies"].append("surprise>=1")


def raise_minimum(project: dict[str, Any]) -> None:
    project["project"]["dependencies"] = ["pydantic>=99"]


def raise_python(project: dict[str, Any]) -> None:
    project["project"]["requires-python"] = ">=3.12"


def add_extra(project: dict[str, Any]) -> None:
    own = project["project"]
    own["dependencies"] = [one.replace("[openai]", "[openai,groq]") for one in own["dependencies"]]


CHANGED = "requirements/runtime.txt: pyproject.toml has changed since it was written; run `make lock`"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (add, [CHANGED, "requirements/runtime.txt: surprise is not in it"]),
        (raise_minimum, [CHANGED, "requirements/runtime.txt: pydantic .* does not satisfy pydantic>=99"]),
        (raise_python, [CHANGED]),
        (add_extra, [CHANGED]),
    ],
)
def test_a_change_of_the_requirements_is_noticed(change: Callable[[dict[str, Any]], None], found: list[str]) -> None:
    project = copy.deepcopy(read_project())
    change(project)
    said = list(problems(project, RUNTIME, text(RUNTIME)))
    assert len(said) == len(found)
    assert all(re.fullmatch(pattern, one) for pattern, one in zip(found, said, strict=True))


@each_row(
    "line",
    [
        "rich==15.0.0",
        "rich>=15 --hash=sha256:" + "0" * 64,
        "rich==15.0.0 --hash=md5:" + "0" * 32,
        "rich @ https://example.org/rich.whl --hash=sha256:" + "0" * 64,
        "--index-url https://example.org/simple",
        "-r other.txt",
    ],
)
def test_what_is_no_pinned_and_hashed_package_is_refused(line: str) -> None:
    with pytest.raises(LockError):
        read_lock(f"{line}\n")
