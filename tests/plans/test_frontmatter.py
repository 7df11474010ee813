from __future__ import annotations

from proofstone.plans.frontmatter import Frontmatter, read_frontmatter
from tests.rows import each_row


def read(text: str) -> Frontmatter:
    return read_frontmatter(text.split("\n"))


@each_row("written", ["01", "08", "010", "1.10", "0x1f", "1e3", "1_000", "yes", "2024-01-01", "07-launch"])
def test_identifiers_stay_as_written(written: str) -> None:
    found = read(f"---\nphase: {written}\nplan: '{written}'\nwave: {written}\ndepends_on: [{written}]\n---\n")
    assert (found.phase, found.plan, found.wave, found.depends_on) == (written, written, written, (written,))


@each_row(
    ("text", "line"),
    [
        ("---\nphase: 1\na: b: c\n---\n", 3),
        ("---\nphase: 1\n\tplan: 1\n---\n", 3),
        ('---\ntruths:\n  - "x" is shown\n---\n', 3),
        ("---\nphase: [1\n---\n", 2),
        ("---\n- a\n- b\n---\n", 2),
        ("---\nphase: {a: 1}\n---\n", 2),
        ("---\nphase: 1\nautonomous: perhaps\n---\n", 3),
        ("---\nmust_haves: yes please\n---\n", 2),
        ("---\nmust_haves:\n  artifacts:\n    - path: a\n      min_lines: many\n---\n", 5),
        ("---\nphase: 1\n", 1),
        ('---\na: "\\UFFFFFFFF"\n---\n', 2),
        (f"---\na: {'[' * 5000}\n---\n", 2),
        (f"---\na: {'b' * 70_000}\n---\n", 2),
    ],
)
def test_broken_frontmatter_is_an_error_with_its_line(text: str, line: int) -> None:
    [problem] = read(text).problems
    assert (problem.severity, problem.rule, problem.line) == ("error", "frontmatter", line)


@each_row("text", ["", "# Title\n---\nnot: it\n---\n", "---\n---\n", "---\n# nothing\n---\n", "---\n\ntext", "---"])
def test_no_frontmatter_is_fine(text: str) -> None:
    found = read(text)
    assert found.problems == []
    assert found.phase == ""


@each_row("written", ["[]", "", "none", "~", '""'])
def test_nothing_is_an_empty_list(written: str) -> None:
    found = read(f"---\ndepends_on: {written}\nfiles_modified: {written}\nmust_haves: {written}\n---\n")
    assert (found.depends_on, found.files_modified, found.problems) == ((), (), [])


def test_lists_as_people_write_them() -> None:
    found = read(
        "---\ndepends_on: 01-01, 01-02\nautonomous: No\n"
        "files_modified:\n  - src/a.py (new)\n  - src/b.py, src/c.py\n---\n"
    )
    assert found.depends_on == ("01-01", "01-02")
    assert found.files_modified == ("src/a.py", "src/b.py", "src/c.py")
    assert not found.autonomous


def test_must_haves_as_people_write_them() -> None:
    found = read(
        "---\nmust_haves:\n  truths: It holds\n  artifacts:\n    - docs/a.md (the report)\n    - path: ./src/a.py\n"
        "      contains: [one, two]\n      exports: Id\n"
        "  key_links:\n    - src/a.py -> src/b.py\n    - somewhere\n---\n"
    )
    must = found.must_haves
    assert must.truths == ("It holds",)
    assert [(artifact.path, artifact.contains, artifact.exports) for artifact in must.artifacts] == [
        ("docs/a.md", "", ()),
        ("src/a.py", "one", ("Id",)),
        ("src/a.py", "two", ("Id",)),
    ]
    assert [(link.source, link.target) for link in must.key_links] == [("src/a.py", "src/b.py")]
    assert [(problem.severity, problem.rule, problem.line) for problem in found.problems] == [
        ("warning", "key-link", 11)
    ]
