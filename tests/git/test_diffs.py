"""What reviewers are shown of a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.common.diff_text import fit_diff
from proofstone.documents.diff import parse_diff
from proofstone.git.checkout import render_diff
from proofstone.git.repository import open_repository
from tests.needs import needs
from tests.workshop import Workshop

HIDING = "*.py -diff\n*.txt binary\n*.js linguist-generated -diff\n"


@needs("git")
def test_no_attribute_hides_a_file_and_bytes_are_shown_escaped(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"a.py": "x = 1\n", "b.txt": "one\n", "c.js": "f()\n"})
    old = workshop.git(root, "rev-parse", "HEAD^{tree}")
    workshop.write(root, {".gitattributes": HIDING, "a.py": "x = 2\n", "b.txt": "two\n", "c.js": "g()\n"})
    (root / "d.bin").write_bytes(b"\x7fELF\0\x1b[2Jpayload\n" * 2)
    workshop.commit(root)
    git = open_repository(root).git
    text = render_diff(git, old, git.find_tree("HEAD"), [], 20_000)
    for line in ("+x = 2", "+two", "+g()"):
        assert f"\n{line}\n" in text
    assert "Binary files a/d.bin b/d.bin differ; as text:\n  +\\x7fELF\\x00\\x1b[2Jpayload" in text
    files = {file.path: file.change for file in parse_diff(text)[0]}
    assert files["d.bin"] == "added, not a text file" and files["a.py"] == "modified"


def part(name: str, size: int) -> str:
    return f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-x\n+" + "y" * size


@pytest.mark.parametrize("most", [2_000, 5_000, 40_000])
def test_a_long_file_hides_no_other_and_what_is_cut_is_said(most: int) -> None:
    text = "\n".join((part("generated.txt", 50_000), part("small.py", 10), part("other.txt", 60_000)))
    shown = fit_diff(text, most)
    assert part("small.py", 10) in shown
    assert shown.count("characters of this file's diff are not shown") == 2
    assert "b/generated.txt" in shown and "b/other.txt" in shown
    assert len(shown) < most + 500
    assert fit_diff(text, 200_000) == text
