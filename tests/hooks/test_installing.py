"""Hooks come into a repository beside those that are there, and leave it as it was."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from proofstone.git.user_hooks import HOOK_NAMES, find_user_hook
from tests.hooks.place import Place
from tests.needs import needs

pytestmark = needs("git")

THEIRS = '#!/bin/sh\necho "theirs: $0 $*" >&2\n'


def listed(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file: mode, time and content; of a link, where it leads."""
    found = {}
    for file in sorted(folder.rglob("*")):
        status = file.lstat()
        content = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes() if file.is_file() else b""
        found[str(file.relative_to(folder))] = (status.st_mode, status.st_mtime_ns if file.is_file() else 0, content)
    return found


def put(path: Path, text: str, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def uninstalled(place: Place, code: int = 0) -> str:
    done = place.proofstone("hook", "uninstall")
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def refused(place: Place, *words: str) -> None:
    """Nothing is installed, and it is said why and what to do."""
    done = place.proofstone("hook", "install")
    assert done.returncode == 2, done.stdout
    for word in words:
        assert word in done.stderr


def test_installed_twice_is_installed_once_and_uninstalled_nothing_is_left(place: Place) -> None:
    before = listed(place.root / ".git")
    place.install()
    assert sorted(path.name for path in place.folder.iterdir()) == sorted(HOOK_NAMES)
    once = listed(place.folder)
    place.install()
    assert listed(place.folder) == once
    assert uninstalled(place).splitlines() == [f"{name}: removed" for name in HOOK_NAMES]
    assert listed(place.root / ".git") == before
    assert uninstalled(place) == "Proofstone has no hooks here\n"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("mode", "words"), [(0o755, "runs first"), (0o750, "runs first"), (0o644, "is not executable")]
)
def test_a_hook_that_was_there_is_back_afterwards_with_bytes_time_and_mode(place: Place, mode: int, words: str) -> None:
    put(place.folder / "pre-commit", THEIRS, mode)
    put(place.folder / "post-commit", THEIRS)
    before = listed(place.folder)
    done = place.proofstone("hook", "install")
    assert words in done.stdout
    place.install()
    place.install("--check")
    uninstalled(place)
    assert listed(place.folder) == before


def test_a_hook_that_is_a_link_stays_one(place: Place) -> None:
    put(place.root / "hook.sh", THEIRS)
    (place.folder / "pre-commit").symlink_to("../../hook.sh")
    before = listed(place.folder)
    place.install()
    place.write(a="new\n")
    assert "theirs:" in place.refused("commit", "-a", "-m", "x")
    uninstalled(place)
    assert listed(place.folder) == before


def test_a_folder_that_was_not_there_is_not_there_afterwards(place: Place) -> None:
    place.folder.rmdir()
    place.install()
    place.install("--check")
    place.write(a="new\n")
    uninstalled(place)
    assert not place.folder.exists()


def test_the_hook_that_was_there_runs_first_as_it_did_and_its_refusal_is_one(place: Place) -> None:
    put(place.folder / "pre-commit", '#!/bin/sh\n[ -z "$STOP" ] || exit 7\necho "theirs: $0 $*" >&2\n')
    place.install()
    place.write(a="new\n")
    said = place.refused("commit", "-a", "-m", "x")
    assert said.startswith("theirs: .git/hooks/pre-commit \n")
    stopped = place.tried("commit", "-a", "-m", "x", STOP="1")
    assert stopped.returncode == 1
    assert stopped.stderr == ""  # its refusal: Proofstone was not even asked


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/bin/sh -e", "#!/usr/bin/env bash", "#!/usr/bin/env python3"])
def test_a_chained_hook_gets_arguments_and_input_and_says_how_it_ended(place: Place, first: str) -> None:
    shell = 'read -r line; echo "$# $1 $line"; exit 5\n'
    python = "import sys; print(len(sys.argv) - 1, sys.argv[1], input()); sys.exit(5)\n"
    put(place.folder / "pre-commit", f"{first}\n{python if 'python' in first else shell}")
    place.install()
    done = place.workshop.run(place.root, "sh", "-c", "echo given | .git/hooks/pre-commit 'a b' c; echo $?")
    assert done.stdout == "2 a b given\n5\n"


def test_a_chained_shell_script_is_called_by_its_own_name(place: Place) -> None:
    """As husky's are: they find out by it which hook they are, and where the rest of them lies."""
    husky = place.root / ".husky"
    put(husky / "_" / ".gitignore", "*\n", 0o644)
    put(husky / "_" / "h", 'n=$(basename "$0")\nsh -e "$(dirname "$(dirname "$0")")/$n" "$@"\n', 0o644)
    put(husky / "_" / "pre-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    put(husky / "pre-commit", "echo of the project >&2\n", 0o644)
    place.commit("husky")
    place.git("config", "core.hooksPath", ".husky/_")
    before = listed(place.root)
    place.install()
    assert not listed(place.folder), "git does not look there"
    place.write(a="new\n")
    assert place.refused("commit", "-a", "-m", "x").startswith("of the project\n")
    place.git("checkout", "--quiet", "a.md")
    uninstalled(place)
    after = listed(place.root)
    assert {name: after[name] for name in after if name.startswith(".husky")} == {
        name: before[name] for name in before if name.startswith(".husky")
    }
    assert place.git("status", "--porcelain") == ""


def test_what_a_tool_has_generated_again_is_chained_again(place: Place) -> None:
    put(place.folder / "pre-commit", THEIRS)
    place.install()
    put(place.folder / "pre-commit", THEIRS)
    assert place.proofstone("hook", "status").returncode == 1
    place.install()
    assert place.proofstone("hook", "status").returncode == 0
    uninstalled(place)
    assert [path.name for path in place.folder.iterdir()] == ["pre-commit"]


def test_when_the_framework_moves_the_hook_aside_and_runs_it_the_framework_does_not_run_twice(place: Place) -> None:
    """`pre-commit install` again: it renames the hook that it finds, and runs it before its own."""
    framework = "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n"
    put(place.folder / "pre-commit", framework + "echo checked by it >&2\n")
    place.install()
    (place.folder / "pre-commit").rename(place.folder / "pre-commit.legacy")
    run_legacy = 'echo checked by it >&2\nPRE_COMMIT_RUNNING_LEGACY=1 "${0%/*}/pre-commit.legacy" "$@"\n'
    put(place.folder / "pre-commit", framework + run_legacy)
    place.write(a="new\n")
    assert place.refused("commit", "-a", "-m", "x").count("checked by it") == 1
    assert "Proofstone's hook is pre-commit.legacy" in place.proofstone("hook", "status").stdout
    (place.folder / "pre-commit").write_text(framework + "echo checked by it >&2\n")
    legacy = (place.folder / "pre-commit.legacy").read_bytes()
    place.install()
    assert not (place.folder / "pre-commit.legacy").exists()
    (place.folder / "pre-commit").write_text(framework + "echo checked by it >&2\n")
    (place.folder / "pre-commit.legacy").write_bytes(legacy)
    uninstalled(place)
    assert [path.name for path in place.folder.iterdir()] == ["pre-commit"]
    assert (place.folder / "pre-commit").read_text() == framework + "echo checked by it >&2\n"


@pytest.mark.parametrize("installed", [False, True])
def test_which_hook_is_the_persons_own_can_be_told(place: Place, installed: bool) -> None:
    put(place.folder / "pre-commit", THEIRS)
    put(place.folder / "pre-merge-commit", THEIRS, 0o644)
    if installed:
        place.install()
    own = find_user_hook(place.folder, "pre-commit")
    assert own == place.folder / ("pre-commit.proofstone-chained" if installed else "pre-commit")
    assert find_user_hook(place.folder, "pre-merge-commit") is None
    assert find_user_hook(place.folder, "pre-applypatch") is None


def test_what_somebody_has_edited_is_left_and_named(place: Place) -> None:
    put(place.folder / "pre-commit", THEIRS)
    place.install()
    hook = place.folder / "pre-commit"
    hook.write_text(hook.read_text() + "# mine\n")
    refused(place, str(hook), "edited")
    before = listed(place.folder)
    said = uninstalled(place, 1)
    assert f"pre-commit: left as it is: somebody has edited {hook}" in said
    assert "pre-commit.proofstone-chained" in said
    assert listed(place.folder) == {
        name: what for name, what in before.items() if name in ("pre-commit", "pre-commit.proofstone-chained")
    }


def test_another_hook_in_its_place_is_left_and_what_was_there_before_is_named(place: Place) -> None:
    put(place.folder / "pre-commit", THEIRS)
    place.install()
    put(place.folder / "pre-commit", "#!/bin/sh\n# a new one\n")
    refused(place, "pre-commit.proofstone-chained", "another hook")
    said = uninstalled(place, 1)
    assert str(place.folder / "pre-commit.proofstone-chained") in said
    assert (place.folder / "pre-commit").read_text() == "#!/bin/sh\n# a new one\n"
    assert (place.folder / "pre-commit.proofstone-chained").read_text() == THEIRS


def test_an_installation_that_was_interrupted_is_completed_or_undone(place: Place) -> None:
    put(place.folder / "pre-commit.proofstone-chained", THEIRS)  # moved aside, and then the power went
    place.install()
    place.write(a="new\n")
    assert "theirs:" in place.refused("commit", "-a", "-m", "x")
    (place.folder / "pre-commit").unlink()
    uninstalled(place)
    assert (place.folder / "pre-commit").read_text() == THEIRS


def test_a_hook_that_cannot_find_proofstone_refuses_and_says_how_to_take_it_out(place: Place) -> None:
    put(place.folder / "pre-commit", THEIRS)
    place.install()
    hook = place.folder / "pre-commit"
    hook.write_text(hook.read_text().replace("\nproofstone=/", "\nproofstone=/no/"))
    place.write(a="new\n")
    path = "/usr/bin:/bin"
    done = place.tried("commit", "-a", "-m", "x", PATH=path)
    assert done.returncode == 1
    assert "no longer installed" in done.stderr
    assert "rm '.git/hooks/pre-commit'" in done.stderr
    assert "mv '.git/hooks/pre-commit.proofstone-chained' '.git/hooks/pre-commit'" in done.stderr


@pytest.mark.parametrize("how", ["absolute", "relative", "link into it", "link out of it"])
def test_a_hook_does_not_start_an_proofstone_that_lies_in_the_work_tree(place: Place, how: str) -> None:
    """It may be the very change that is to be committed. One outside is taken, wherever it stands on PATH."""
    place.install()
    hook = place.folder / "pre-commit"
    hook.write_text(hook.read_text().replace("\nproofstone=/", "\nproofstone=/no/"))
    own, outside = place.root / "tools", place.root.parent / "out side"
    lets_through = "#!/bin/sh\necho asked: $0 >&2\n"
    put(place.root.parent / "elsewhere", lets_through)
    put(own / "real", lets_through)
    folder = outside if how == "link into it" else own
    folder.mkdir(exist_ok=True)
    if how.startswith("link"):
        (folder / "proofstone").symlink_to(own / "real" if how == "link into it" else place.root.parent / "elsewhere")
    else:
        put(folder / "proofstone", lets_through)
    path = f"{'tools' if how == 'relative' else folder}:/usr/bin:/bin"
    place.write(a="new\n")
    done = place.tried("commit", "-a", "-m", "x", PATH=path)
    assert done.returncode == 1
    assert "asked" not in done.stderr
    assert f"the only proofstone on PATH is inside the work tree: {folder / 'proofstone'}" in done.stderr
    assert 'run "proofstone hook install"' in done.stderr
    put(place.root.parent / "good one" / "proofstone", lets_through)
    done = place.tried("commit", "-a", "-m", "x", PATH=f"{path}:{place.root.parent / 'good one'}")
    assert done.returncode == 0
    assert f"asked: {place.root.parent / 'good one' / 'proofstone'}\n" in done.stderr


def test_a_folder_for_all_repositories_is_not_touched(place: Place) -> None:
    shared = place.workshop.home / "all hooks"
    put(shared / "pre-commit", THEIRS)
    place.git("config", "--global", "core.hooksPath", "~/all hooks")
    before = listed(shared)
    refused(place, "for all repositories", str(shared / "pre-commit"), "proofstone hook run pre-commit || exit 1")
    assert listed(shared) == before
    place.git("config", "core.hooksPath", str(place.folder))  # what the hint says
    place.install()


def test_a_folder_that_is_committed_is_not_touched(place: Place) -> None:
    put(place.root / ".githooks" / "pre-commit", THEIRS)
    place.commit("hooks of the team")
    place.git("config", "core.hooksPath", ".githooks")
    refused(
        place, ".githooks/pre-commit", "a commit would include the hook", "proofstone hook run pre-commit || exit 1"
    )
    assert place.git("status", "--porcelain") == ""


@pytest.mark.parametrize("link", [True, False])
def test_a_folder_outside_is_not_touched(place: Place, link: bool) -> None:
    outside = place.root.parent / "shared"
    put(outside / "pre-commit", THEIRS)
    if link:
        place.folder.rmdir()
        place.folder.symlink_to(outside)
    else:
        place.git("config", "core.hooksPath", "../shared")
    refused(place, str(outside), "others may use it too")
    assert [path.name for path in outside.iterdir()] == ["pre-commit"]


def test_a_folder_that_is_a_link_within_the_repository_is_used(place: Place) -> None:
    place.folder.rename(place.root / ".git" / "real")
    place.folder.symlink_to("real")
    before = listed(place.root / ".git")
    place.install()
    assert place.folder.is_symlink()
    assert place.proofstone("hook", "status").returncode == 0
    uninstalled(place)
    assert listed(place.root / ".git") == before


def test_the_line_of_the_hint_does_what_the_hook_does(place: Place) -> None:
    put(place.root / ".githooks" / "pre-commit", "#!/bin/sh\nproofstone hook run pre-commit || exit 1\n")
    place.commit("hooks of the team")
    place.git("config", "core.hooksPath", ".githooks")
    place.write(a="new\n")
    place.refused("commit", "-a", "-m", "x")


def test_status_tells_what_is_there_and_what_git_does_not_look_at(place: Place) -> None:
    assert place.proofstone("hook", "status").returncode == 1
    put(place.folder / "pre-commit", THEIRS)
    place.install("--check")
    done = place.proofstone("hook", "status", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert [hook["name"] for hook in found["hooks"]] == list(HOOK_NAMES)
    assert {hook["state"] for hook in found["hooks"]} == {"installed"}
    assert all(hook["checks"] and hook["used_by_git"] for hook in found["hooks"])
    assert found["hooks"][0]["chained"] == str(place.folder / "pre-commit.proofstone-chained")
    assert found["hooks"][1]["chained"] is None
    assert found["head"] == {"standing": "first", "accepted": True}
    place.git("config", "core.hooksPath", "elsewhere")
    done = place.proofstone("hook", "status")
    assert done.returncode == 1
    assert done.stdout.count(f"git does not look here, but in {place.root / 'elsewhere'}") == len(HOOK_NAMES)
    uninstalled(place)
    assert (place.folder / "pre-commit").read_text() == THEIRS


@pytest.mark.parametrize("command", ["install", "uninstall", "status"])
def test_outside_of_a_repository_it_is_said(place: Place, command: str, tmp_path: Path) -> None:
    done = place.at(tmp_path).proofstone("hook", command)
    assert done.returncode == 2
    assert "not inside a git repository" in done.stderr


def test_it_can_be_installed_from_below_and_for_a_repository_that_is_named(place: Place, tmp_path: Path) -> None:
    (place.root / "below").mkdir()
    place.at(place.root / "below").install()
    assert stat.S_IMODE((place.folder / "pre-commit").stat().st_mode) == 0o755
    assert place.at(tmp_path).proofstone("hook", "status", "--repo", str(place.root)).returncode == 0
