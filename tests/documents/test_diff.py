"""A diff is read as git writes it, whatever names and lines it holds, and never grows without bounds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.documents.diff import MAX_FILE_LINES, MAX_LINE_LENGTH, DiffLineKind, FileDiff, parse_diff
from proofstone.documents.html import write_html
from proofstone.documents.markdown_page import write_markdown
from proofstone.documents.model import DiffBlock, Document, Paragraph, Remark, Section, inline

BEFORE = {
    "plain.py": b"one\ntwo\nthree\n",
    "with space.py": b"x\n",
    'quo"te\\and\ttab.txt': b"x\n",
    "umlaut-ä.txt": b"x\n",
    "gone.txt": b"x\n",
    "old name.txt": b"".join(b"line %d\n" % number for number in range(20)),
    "image.bin": b"\0\1\2",
    "empty.txt": b"",
    "dashes.sql": b"-- a comment\n++ more\n",
}
AFTER = {
    "plain.py": b"one\n2\nthree\nfour",
    "with space.py": b"y\n",
    'quo"te\\and\ttab.txt': b"y\n",
    "umlaut-ä.txt": b"y\n",
    "new name.txt": BEFORE["old name.txt"] + b"more\n",
    "image.bin": b"\0\1\3",
    "added.txt": b"diff --git a/forged b/forged\n@@ -1,9 +1,9 @@\n",
    "empty.txt": b"",
    "new empty.txt": b"",
    "dashes.sql": b"\n",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileDiff]:
    root = tmp_path_factory.mktemp("diff")
    trees = []
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(root)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for contents in (BEFORE, AFTER):
        for path in root.iterdir():
            if path.name != ".git":
                path.unlink()
        for name, content in contents.items():
            (Path(root) / name).write_bytes(content)
        subprocess.run([*git, "add", "--all"], check=True)
        trees.append(subprocess.run([*git, "write-tree"], check=True, capture_output=True, text=True).stdout.strip())
    done = subprocess.run([*git, "diff-tree", "-p", "-M", *trees], check=True, capture_output=True)
    found, left_out = parse_diff(done.stdout.decode())
    assert left_out == ""
    return {file.path: file for file in found}


def lines(file: FileDiff) -> list[tuple[str, int | None, int | None, str]]:
    return [(line.kind.value, line.old, line.new, line.text) for hunk in file.hunks for line in hunk.lines]


def test_lines_have_their_numbers(files: dict[str, FileDiff]) -> None:
    assert lines(files["plain.py"]) == [
        ("context", 1, 1, "one"),
        ("removed", 2, None, "two"),
        ("added", None, 2, "2"),
        ("context", 3, 3, "three"),
        ("added", None, 4, "four"),
        ("note", None, None, "No newline at end of file"),
    ]


def test_names_and_changes_are_read_however_git_writes_them(files: dict[str, FileDiff]) -> None:
    assert {path: file.change for path, file in files.items()} == {
        "plain.py": "modified",
        "with space.py": "modified",
        'quo"te\\and\ttab.txt': "modified",
        "umlaut-ä.txt": "modified",
        "gone.txt": "deleted",
        "new name.txt": "renamed from old name.txt",
        "image.bin": "modified, not a text file",
        "added.txt": "added",
        "new empty.txt": "added",
        "dashes.sql": "modified",
    }


def test_a_line_that_looks_like_a_header_is_a_line(files: dict[str, FileDiff]) -> None:
    assert lines(files["added.txt"]) == [
        ("added", None, 1, "diff --git a/forged b/forged"),
        ("added", None, 2, "@@ -1,9 +1,9 @@"),
    ]
    assert [text for kind, _, _, text in lines(files["dashes.sql"]) if kind == "removed"] == ["-- a comment", "++ more"]


def test_a_long_diff_is_cut_and_says_so() -> None:
    count = MAX_FILE_LINES + 7
    body = "".join(f"+{number}\n" for number in range(count))
    head = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n"
    (file,), left_out = parse_diff(f"{head}@@ -0,0 +1,{count} @@\n{body}")
    assert (file.added, file.hidden, left_out) == (MAX_FILE_LINES, 7, "7 lines of the diff are left out")
    (file,), _ = parse_diff(f"{head}@@ -0,0 +1 @@\n+{'x' * 10_000}\n")
    (line,) = file.hunks[0].lines
    assert len(line.text) < MAX_LINE_LENGTH + 30 and line.text.endswith("(10,000 characters)")
    many = "".join(
        f"{head}@@ -0,0 +1,{MAX_FILE_LINES} @@\n{'+l' + chr(10)}" + "+l\n" * (MAX_FILE_LINES - 1) for _ in "12345"
    )
    files, left_out = parse_diff(many)
    assert [file.hidden for file in files] == [0, 0, 0, 200, 800]
    assert left_out == "1,000 lines of the diff are left out; of 1 file nothing but the name is shown"


def test_files_that_may_hold_secrets_are_named_only() -> None:
    (file,), _ = parse_diff("", [".env"])
    assert (file.path, file.hunks) == (".env", ())
    assert "may hold secrets" in file.change


@given(st.text(), st.text(alphabet="+- @\\dif\n19,a/b"))
def test_any_text_is_read_and_written(text: str, likely: str) -> None:
    found, _ = parse_diff(f"diff --git a/x b/x\n{likely}\n{text}")
    block = DiffBlock(found, (Remark("x", 1, inline(text)), Remark("elsewhere", None, inline(text))))
    document = Document(text, (Paragraph(inline(text)),), (Section("The change", (block,)),))
    for page in (write_html(document), write_markdown(document)):
        assert all(char.isprintable() or char in "\n\t" for char in page)
    assert all(line.kind in DiffLineKind for file in found for hunk in file.hunks for line in hunk.lines)
