"""History up to the base, and nothing else of what the store holds; no program of the repository's runs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.tools.models import Tool
from tests.agents.tools.desk import CANARY, Desk
from tests.gate.conftest import workshop
from tests.gate.place import Place
from tests.workshop import Workshop

__all__ = ["workshop"]

HIDDEN = "password-12345"


@pytest.fixture
def place(workshop: Workshop) -> Place:
    root = workshop.repo({"a.txt": "one\ntwo\n", "src/run.py": "x = 1\n", ".gitignore": "*.log\n"})
    return Place(workshop, root)


def committed(place: Place, message: str, files: dict[str, str]) -> str:
    for name, content in files.items():
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    place.git("add", "-A", "-f")
    place.git("commit", "-q", "-m", message)
    return place.head


def at(place: Place) -> Desk:
    """A desk at the head, with a work tree of its own."""
    work = place.work_tree()
    desk = Desk(work.folder.parent, ground_more={"git": place.store.git(), "commit": place.head})
    desk.files.rmdir()
    work.files.rename(desk.files)
    return desk


def test_commits_are_listed_newest_first(place: Place) -> None:
    first = place.head
    second = committed(place, "Second ☃\n\nWith a body.", {"a.txt": "1\n"})
    desk = at(place)
    lines = desk.ok("git_log").splitlines()
    assert lines[0].startswith(second[:7]) and lines[0].endswith("Second ☃")
    assert lines[-1].startswith(first[:7])
    assert len(desk.ok("git_log", path="src").splitlines()) == len(lines) - 1
    assert desk.ok("git_log", limit=1).splitlines()[1].startswith("[there are older commits")
    assert desk.ok("git_log", revision="HEAD~1").startswith(first[:7])
    assert desk.ok("git_log", path="nowhere") == "No commit changed it."


def test_a_commit_is_shown_with_what_it_changed(place: Place) -> None:
    committed(place, "Second\n\nWith a body.", {"a.txt": "one\n2\n"})
    desk = at(place)
    shown = desk.ok("git_show")
    assert "    With a body." in shown and "-two\n+2" in shown and "src/run.py" not in shown
    assert "+x = 1" in desk.ok("git_show", revision="HEAD~1")


def test_a_file_or_folder_of_a_commit_is_shown(place: Place) -> None:
    committed(place, "Second", {"a.txt": "1\n", "src/b.bin": "\0"})
    desk = at(place)
    assert desk.ok("git_show", revision="HEAD^", path="a.txt") == "1\tone\n2\ttwo"
    assert desk.ok("git_show", path="./src") == "b.bin\nrun.py"
    assert "binary file of 1 byte" in desk.ok("git_show", path="src/b.bin")
    assert "is not in HEAD~1" in desk.failed("git_show", revision="HEAD~1", path="src/b.bin")
    assert desk.ok("git_show", revision="HEAD^", path="a.txt", offset=2) == "2\ttwo"


def test_differences_between_commits_and_with_the_files(place: Place) -> None:
    committed(place, "Second", {"a.txt": "one\n2\n"})
    desk = at(place)
    assert desk.ok("git_diff") == "Nothing differs."
    desk.put("a.txt", "one\n3\n")
    desk.put("new.txt", "new\n")
    desk.put("ignored.log", "x\n")
    (desk.files / "src/run.py").unlink()
    shown = desk.ok("git_diff")
    assert "-2\n+3" in shown and "-x = 1" in shown and shown.endswith("[new files, not shown here: new.txt]")
    assert "ignored" not in shown and "run.py" not in desk.ok("git_diff", path="a.txt")
    assert "-two\n+3" in desk.ok("git_diff", revision="HEAD~1", path="a.txt")
    assert "-two\n+2" in desk.ok("git_diff", revision="HEAD~1", to="HEAD")


# Subjects that a reader of lines could stumble over.
@pytest.mark.parametrize("subject", ["x\u2028\u2003", "\u2028", "a\x0bb\x0cc\x85d", "-", "\u2003 y"])
def test_any_subject_is_listed(place: Place, subject: str) -> None:
    place.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", subject)
    place.git("commit", "-q", "--allow-empty", "-m", "last")
    desk = at(place)
    assert desk.ok("git_log", limit=2).split("\n")[1].startswith(place.git("rev-parse", "--short", "HEAD~1"))
    assert f"revision {place.git('rev-parse', '--short', 'HEAD~1')}" in desk.ok("git_log", limit=1)
    assert subject.strip() in desk.ok("git_show", revision="HEAD~1")


def test_what_git_cannot_do_is_a_result(place: Place) -> None:
    desk = at(place)
    blob, tree = place.git("rev-parse", "HEAD:a.txt"), place.tree
    for thing in (blob, tree):
        (place.root / ".git" / "objects" / thing[:2] / thing[2:]).unlink()
    desk.put("a.txt", "1\r\n")
    for tool in (Tool.GIT_SHOW, Tool.GIT_DIFF):
        assert "git" in desk.failed(tool)


@pytest.mark.few(12, ci=39)
@pytest.mark.parametrize(
    "revision",
    [
        "-p",
        "--output=x",
        "HEAD..HEAD~1",
        ":/one",
        "HEAD:a.txt",
        "@{-1}",
        "HEAD^{/x}",
        "a b",
        "HEAD\n",
        "*",
        "",
        "x;id",
        "$(id)",
    ],
)
@pytest.mark.parametrize("tool", [Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF])
def test_only_a_name_of_one_commit_is_a_revision(place: Place, tool: Tool, revision: str) -> None:
    assert at(place).refused(tool, revision=revision) == "arguments"


def test_a_revision_that_is_not_there_is_said(place: Place) -> None:
    desk = at(place)
    for revision in ("HEAD~50", "nobody", "0123456789", "refs/heads/none"):
        assert "There is no commit" in desk.failed("git_show", revision=revision)


def test_what_else_the_store_holds_is_out_of_reach(place: Place) -> None:
    """Drafts of other tasks, held-out checks, the other branches of the person's."""
    draft = place.commit_of(place.tree_with({"held-out.txt": CANARY}))
    tree = place.tree_with({"held-out.txt": CANARY})
    place.git("checkout", "-q", "-b", "side")
    side = committed(place, "Side", {"side.txt": CANARY})
    place.git("checkout", "-q", "-")
    desk = at(place)
    for tool in (Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF):
        for revision in (draft, side):
            assert desk.refused(tool, revision=revision) == "outside"
        assert "There is no commit" in desk.failed(tool, revision=tree)
    assert desk.refused("git_show", revision=draft, path="held-out.txt") == "outside"
    assert desk.refused("git_diff", to=side) == "outside"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "src/../a.txt", ".git/config", "a\0b", "x" * 300])
@pytest.mark.parametrize("tool", [Tool.GIT_LOG, Tool.GIT_SHOW, Tool.GIT_DIFF])
def test_a_path_that_leads_out_is_refused(place: Place, tool: Tool, path: str) -> None:
    assert at(place).refused(tool, path=path) == "outside"


@pytest.mark.parametrize("path", [":(exclude)a.txt", ":!a.txt", "*", ":(glob)**", ":/"])
def test_a_path_is_taken_to_the_letter(place: Place, path: str) -> None:
    desk = at(place)
    desk.put("a.txt", "changed\n")
    assert desk.ok("git_diff", path=path) == "Nothing differs."
    assert desk.ok("git_log", path=path) == "No commit changed it."


def test_secret_files_are_left_out_of_what_is_shown(place: Place) -> None:
    committed(place, "Oh no", {".env": f"A={HIDDEN}\n", "deep/[x]/id_rsa": f"{HIDDEN}\n", "b.txt": "b\n"})
    desk = at(place)
    desk.put(".env", f"B={HIDDEN}\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("git_show", {}),
        ("git_diff", {"revision": "HEAD~1", "to": "HEAD"}),
        ("git_diff", {"revision": "HEAD~1"}),
        ("git_diff", {}),
    ]
    for tool, arguments in calls:
        shown = desk.ok(tool, **arguments)
        assert HIDDEN not in shown and "not shown because they may hold secrets: .env" in shown
    assert "+b" in desk.ok("git_show") and "deep/[x]/id_rsa" in desk.ok("git_show")
    assert desk.refused("git_show", path=".env") == "secret"
    assert HIDDEN not in desk.ok("git_diff", path=".env")


def test_the_first_commit_hides_secrets_too(workshop: Workshop) -> None:
    place = Place(workshop, workshop.repo({".env": HIDDEN, "a.txt": "a\n"}))
    shown = at(place).ok("git_show")
    assert HIDDEN not in shown and "+a" in shown


def test_a_great_difference_is_cut_and_that_is_said(place: Place) -> None:
    committed(place, "Big", {"big.txt": "".join(f"line {number}\n" for number in range(50_000))})
    shown = at(place).ok("git_show")
    assert len(shown.encode()) < 66 * 1024 and "[cut after 65,536 bytes" in shown


def test_no_program_of_the_repositorys_runs(place: Place, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho x >> {trace}\ncat\n")
    script.chmod(0o755)
    committed(place, "Attributes", {".gitattributes": "* diff=evil filter=evil\n", "a.txt": "three\n"})
    desk = at(place)
    for repository in (desk.files, place.root):
        for name in ("diff.external", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor", "core.pager"):
            place.workshop.git(repository, "config", name, str(script))
    place.workshop.git(desk.files, "config", "filter.evil.clean", str(script))
    desk.put("a.txt", "four\n")
    inner = desk.files / "inner"
    inner.mkdir()
    place.workshop.git(inner, "init", "-q")
    place.workshop.git(inner, "config", "core.fsmonitor", str(script))
    trace.unlink(missing_ok=True)
    assert "+four" in desk.ok("git_diff") and "+three" in desk.ok("git_show") and desk.ok("git_log")
    assert not trace.exists()


def test_a_filter_of_the_persons_is_not_run_by_what_an_agent_writes(place: Place, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    for key in ("clean", "smudge", "process"):
        place.git("config", f"filter.theirs.{key}", f"touch {trace}; cat")
    desk = at(place)
    desk.put(".gitattributes", "* filter=theirs diff=theirs working-tree-encoding=UTF-16\n")
    desk.put("src/.gitattributes", "* filter=theirs -diff\n")
    desk.put("a.txt", "one\n2\n")
    desk.put("src/run.py", "x = 2\n")
    said = desk.ok("git_diff")
    assert "-two\n+2" in said and "-x = 1\n+x = 2" in said
    assert not trace.exists()


def test_what_a_filter_of_the_persons_converts_is_said_not_to_be_compared(place: Place, tmp_path: Path) -> None:
    committed(place, "Before", {".gitattributes": "*.bin filter=theirs\n*.txt filter=unknown\n"})
    place.git("config", "filter.theirs.clean", "tr a-z n-za-m")
    place.git("config", "filter.theirs.smudge", "tr a-z n-za-m")
    committed(place, "Filtered", {"x.bin": "hello\n", "y.bin": "hello\n"})
    desk = at(place)
    assert (desk.files / "x.bin").read_text() == "hello\n" and "uryyb" in place.git("show", "HEAD:x.bin")
    place.git("config", "filter.theirs.clean", f"touch {tmp_path / 'ran'}; cat")
    desk = replace(desk, ground_more={"git": Place(place.workshop, place.root).store.git(), "commit": place.head})
    (desk.files / ".gitattributes").unlink()
    (desk.files / "y.bin").unlink()
    desk.put("a.txt", "one\n2\n")
    said = desk.ok("git_diff")
    assert "-two\n+2" in said and "[not compared because git converts them when they are committed: x.bin]" in said
    assert "deleted file" in said and not (tmp_path / "ran").exists()


def test_line_endings_of_a_checkout_are_no_difference(place: Place) -> None:
    place.git("config", "core.autocrlf", "true")
    desk = at(place)
    assert (desk.files / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert desk.ok("git_diff", path="a.txt") == (
        "Nothing differs.\n[not shown: the lines end in CRLF here, and in LF in the commit: a.txt]"
    )
    desk.put("a.txt", b"one\r\n2\r\n")
    assert " one\n-two\n+2\n[" in desk.ok("git_diff", path="a.txt")


def test_links_modes_binaries_and_what_is_no_file_any_more(place: Place) -> None:
    (place.root / "link").symlink_to("a.txt")
    committed(place, "All", {name: f"{name}\n" for name in ("b.bin", "c.sh", "d", "e/f", "g", "h")})
    desk = at(place)
    (desk.files / "link").unlink()
    desk.link("link", "src/run.py")
    desk.put("b.bin", b"\0\1")
    (desk.files / "c.sh").chmod(0o755)
    (desk.files / "d").unlink()
    desk.put("d/inside", "new\n")
    (desk.files / "e/f").unlink()
    (desk.files / "e").rmdir()
    desk.link("e", "../beside")
    (desk.files / "g").unlink()
    os.mkfifo(desk.files / "g")
    (desk.files / "h").unlink()
    desk.link("h", "../canary.txt")
    said = desk.ok("git_diff")
    for words in (
        "-a.txt",
        "+src/run.py",
        "-b.bin\n+\0\1",
        "new mode 100755",
        "-d\n",
        "-e/f",
    ):
        assert words in said
    assert "-g\n" in said and "+../canary.txt" in said and CANARY not in said
    assert "new files, not shown here: d/inside, e" in said


def test_a_hard_link_to_a_secret_file_is_not_shown(place: Place) -> None:
    desk = at(place)
    desk.put(".env", HIDDEN)
    (desk.files / "a.txt").unlink()
    (desk.files / "a.txt").hardlink_to(desk.files / ".env")
    said = desk.ok("git_diff")
    assert HIDDEN not in said and "may hold secrets: a.txt" in said


def test_a_file_without_end_does_not_hold_it_up(place: Place) -> None:
    desk = at(place)
    os.truncate(desk.files / "a.txt", 1 << 40)
    desk.put("src/run.py", "x = 2\n")
    said = desk.ok("git_diff")
    assert "+x = 2" in said and "not shown because they are too large: a.txt" in said


def test_the_work_tree_and_the_store_stay_as_they_are(place: Place) -> None:
    desk = at(place)
    desk.put("a.txt", "changed\n")
    before = {path: path.stat().st_mtime_ns for path in desk.files.rglob("*")}
    desk.ok("git_diff")
    assert {path: path.stat().st_mtime_ns for path in desk.files.rglob("*")} == before
    assert not list(place.store.git_dir.glob("index*"))
