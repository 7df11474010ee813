"""The cases: a base tree, a patch, whether it is right, and tests that its author did not see.

A folder holds a folder for each case:

    case.json      kind, right, why, and base: the folder of the base tree, from here
    change.patch   as `git diff` writes it
    heldout/       tests that tell right from wrong; the check never sees them

`read_swe_bench` takes a set in the form of SWE-bench instead: a line of JSON for each instance, with `instance_id`,
`repo`, `base_commit`, `patch` and `test_patch`. The patch that was merged is right; a patch of an agent (`model_patch`)
is right if `resolved` says so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


class CaseError(Exception):
    """A case cannot be read; the message names the file and what would be right."""


@dataclass(frozen=True)
class Case:
    """One change, and the truth about it."""

    name: str
    kind: str
    right: bool
    base: Path
    """A folder with the base tree, or a clone if `commit` is set."""
    patch: str
    commit: str = ""
    """The base commit, if the base is a clone."""
    why: str = ""
    """How it was made, and what makes it wrong."""

    def lay_out(self, folder: Path) -> None:
        """Make a repository with the base as its only commit, and the patch in its work tree."""
        if self.commit:
            _git(folder.parent, "clone", "--quiet", "--no-checkout", str(self.base), folder.name)
            _git(folder, "checkout", "--quiet", "--detach", self.commit)
        else:
            shutil.copytree(self.base, folder)
            _git(folder, "init", "--quiet")
            _git(folder, "add", "--all")
            identity = ("-c", "user.name=Quality", "-c", "user.email=quality@example.org")
            _git(folder, *identity, "commit", "--quiet", "--no-verify", "--message", "Base")
        _git(folder, "apply", "--whitespace=nowarn", "-", given=self.patch)


def read_cases(folder: Path) -> tuple[Case, ...]:
    """Return the cases of a folder, by name."""
    files = sorted(folder.glob("*/case.json"))
    if not files:
        raise CaseError(f"{folder}: holds no case; `python -m benchmarks.gate_quality build {folder}` makes some")
    return tuple(_read_case(file) for file in files)


def write_case(folder: Path, case: Case, heldout: Mapping[str, str]) -> None:
    """Write a case that `read_cases` reads."""
    place = folder / case.name
    place.mkdir(parents=True)
    (place / "change.patch").write_text(case.patch)
    for name, text in heldout.items():
        (place / "heldout").mkdir(exist_ok=True)
        (place / "heldout" / name).write_text(text)
    fields = {key: value for key, value in asdict(case).items() if key in ("kind", "right", "why")}
    fields["base"] = str(Path("..") / case.base.relative_to(folder))
    (place / "case.json").write_text(json.dumps(fields, indent=2) + "\n")


def read_swe_bench(file: Path, clones: Path) -> Iterator[Case]:
    """Yield the cases of a set in the form of SWE-bench. `clones` has a clone of each, as `owner__name`."""
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            name, clone = fields["instance_id"], clones / fields["repo"].replace("/", "__")
            agent = fields.get("model_patch")
            right = bool(fields["resolved"]) if agent is not None else True
            patch, commit = agent if agent is not None else fields["patch"], fields["base_commit"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CaseError(
                f"{file}, line {number}: {error!r}; a line needs instance_id, repo, base_commit and patch, "
                "or model_patch and resolved"
            ) from error
        if not clone.is_dir():
            raise CaseError(f"{file}, line {number}: there is no clone {clone}")
        yield Case(name, "agent" if agent is not None else "merged", right, clone, patch, commit)


def _read_case(file: Path) -> Case:
    try:
        fields = json.loads(file.read_text("utf-8"))
        base = (file.parent / fields["base"]).resolve()
        patch = (file.parent / "change.patch").read_text("utf-8")
        case = Case(file.parent.name, fields["kind"], fields["right"], base, patch, why=fields.get("why", ""))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CaseError(f"{file}: {error!r}; a case needs kind, right and base, and change.patch beside it") from error
    if not isinstance(case.right, bool) or not base.is_dir():
        raise CaseError(f"{file}: `right` must be true or false, and `base` a folder")
    return case


def _git(folder: Path, *args: str, given: str | None = None) -> None:
    done = subprocess.run(["git", "-C", str(folder), *args], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        raise CaseError(f"{folder}: git {args[0]}: {done.stderr.strip()}")
