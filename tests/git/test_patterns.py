"""Rules of nested files, rewritten at the root, mean to git what they meant where they stood."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofstone.git.rules import merge_attribute_rules, merge_ignore_rules
from tests.rows import each_row

_PATHS = [
    "a.log", "sub/a.log", "sub/deep/a.log", "sub/only", "sub/deep/only", "only", "sub/keep.log", "build/x",
    "sub/build/x",    "sub/b c/x.tmp", "we[i]rd/a.log", "we[i]rd/x", "sub/doc/a.txt", "doc/a.txt", "sub/doc/deep/a.txt",
]  # fmt: skip


def ignored_by_git(root: Path, files: dict[str, str], tmp: Path, *, rebased: bool) -> set[str]:
    """What git ignores: by the files where they stand, or by the one list at the root."""
    repo = tmp / ("rebased" if rebased else "nested")
    for path in _PATHS:
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).touch()
    subprocess.run(["git", "init", "-q", repo], check=True)
    command = ["git", "-C", str(repo), "ls-files", "--others", "--ignored"]
    if rebased:
        rules = tmp / "rules"
        rules.write_text("".join(f"{rule}\n" for rule in merge_ignore_rules(files)))
        command.append(f"--exclude-from={rules}")
    else:
        for path, text in files.items():
            (repo / path).write_text(text)
        command.append("--exclude-per-directory=.gitignore")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {line for line in done.stdout.splitlines() if not line.endswith(".gitignore")}


RULES = st.lists(
    st.sampled_from(
        [
            "*.log",
            "!keep.log",
            "/only",
            "only",
            "build/",
            "doc/*.txt",
            "**/deep",
            "# note",
            "",
            "!a.log",
            "/deep/",
            "*.tmp",
        ]
    ),
    max_size=4,
).map("\n".join)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(root=RULES, sub=RULES, deep=RULES)
def test_nested_ignore_files_mean_the_same_as_one_list(
    tmp_path_factory: pytest.TempPathFactory, root: str, sub: str, deep: str
) -> None:
    files = {".gitignore": root, "sub/.gitignore": sub, "sub/deep/.gitignore": deep}
    tmp = tmp_path_factory.mktemp("ignore")
    nested = ignored_by_git(tmp, files, tmp, rebased=False)
    assert ignored_by_git(tmp, files, tmp, rebased=True) == nested


def test_a_folder_whose_name_is_a_pattern_is_taken_literally(tmp_path: Path) -> None:
    files = {"we[i]rd/.gitignore": "*.log"}
    assert ignored_by_git(tmp_path, files, tmp_path, rebased=True) == {"we[i]rd/a.log"}


@each_row(
    ("files", "rules"),
    [
        ({".gitattributes": "*.txt text\n# no\n"}, ["*.txt text"]),
        ({"sub/.gitattributes": "*.txt text eol=crlf"}, ["/sub/**/*.txt text eol=crlf"]),
        ({"sub/.gitattributes": "/a.txt\t-text"}, ["/sub/a.txt -text"]),
        ({"sub/.gitattributes": '"a b.txt" binary'}, ['"/sub/**/a b.txt" binary']),
        ({"s b/.gitattributes": "a.txt binary"}, ['"/s\\\\ b/**/a.txt" binary']),
        ({"sub/.gitattributes": "[attr]mine -diff"}, ["[attr]mine -diff"]),
        ({"sub/.gitattributes": "x y", ".gitattributes": "z w"}, ["z w", "/sub/**/x y"]),
    ],
)
def test_attribute_lines(files: dict[str, str], rules: list[str]) -> None:
    assert merge_attribute_rules(files) == rules
