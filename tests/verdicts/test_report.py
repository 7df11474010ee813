"""The report about one check, as a page for a browser and as Markdown: complete, self-contained, and only text."""

from __future__ import annotations

import json
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from proofstone.ledger.models import EventRow
from proofstone.ledger.opening import open_ledger
from tests.workshop import Workshop

CALC = "def add(a, b):\n    return a + b\n\n\ndef half(a):\n    return a / 2\n"
TEST = """from calc import add, half


def test_add():
    assert add(2, 3) == 5


def test_half():
    assert half(4) == 2
"""
EVIL = "# \u202e<script>alert(1)</script> </td></table> \x1b[2J ![x](https://evil.example/x.png)"
EVIL_NAME = "<img src=x onerror=alert(1)>`|`\u202e.txt"
KEY = "AKIA" + "IOSFODNN7EXAMPLQ"
FILES = {".gitignore": "/out/\n", "pytest.ini": "[pytest]\n", "calc.py": CALC, "tests/test_calc.py": TEST}


class Page(HTMLParser):
    """The structure of a page: its tags, attributes, sections and the rows of its diff."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.sections: list[str] = []
        self.rows: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self._open == [], "every tag that is opened is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)
        if tag == "h2":
            self.sections.append("")
        if tag == "tr":
            self.rows.append((dict(attrs).get("class") or "", ""))
        if tag != "meta":
            self._open.append((tag, dict(attrs).get("class") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        names = [tag for tag, _ in self._open]
        if "h2" in names:
            self.sections[-1] += data
        if "tr" in names:
            kind, text = self.rows[-1]
            self.rows[-1] = (kind, text + data)


def test_a_refused_change_is_shown_with_its_findings_beside_its_lines(workshop: Workshop, tmp_path: Path) -> None:
    root = workshop.repo(FILES)
    (root / "out").mkdir()
    change = {
        "calc.py": CALC.replace("    return a + b", f"    return a + b  {EVIL}"),
        "tests/test_calc.py": TEST.replace("== 5", "in (5, 9)"),
        EVIL_NAME: f"{EVIL}\n```\n",
        "keys.py": f"KEY = '{KEY}'\n",
        "table.txt": "".join(f"{number}\n" for number in range(2000)),
    }
    workshop.write(root, change)
    html_file, md_file = root / "out" / "r.html", tmp_path / "r.md"
    sarif_file, junit_file = tmp_path / "r.sarif", tmp_path / "r.xml"
    files = {"--html": html_file, "--md": md_file, "--sarif": sarif_file, "--junit": junit_file}
    run = workshop.check(root, *(word for option, file in files.items() for word in (option, str(file))))
    assert run.exit == 1, run.stderr
    assert "work-tree-moved" not in {finding.rule for finding in run.report.findings}
    assert "out/r.html" not in run.report.changed
    html, markdown = html_file.read_text("utf-8"), md_file.read_text("utf-8")

    page = Page(html)
    assert page.sections == [
        "Findings",
        "The change",
        "Tests, before and after",
        "Strength of the tests",
        "Checks",
        "Where the evidence is",
    ]
    assert "FAILED" in page.text and run.report.base_reason in page.text and run.report.base_commit[:12] in page.text
    weakened = next(index for index, (_, text) in enumerate(page.rows) if "in (5, 9)" in text)
    assert page.rows[weakened][0] == "added"
    assert page.rows[weakened + 1][1].startswith("weakened-test (major): tests/test_calc.py::test_add"), "just below"
    assert page.rows[weakened - 1] == ("removed", "5-    assert add(2, 3) == 5")
    assert "tests:pytest" in page.text and "check less than before" in page.text
    (row_hash,) = {word for word in page.text.split() if len(word) == 64 and word.isalnum()}
    with closing(open_ledger(workshop.proofstone_home, "read")) as ledger:
        (finished,) = ledger.read(EventRow, run_id=run.report.run_id, type="run.finished")
    assert row_hash == finished.link.hash

    (sarif,) = json.loads(sarif_file.read_bytes())["runs"]
    assert {result["ruleId"] for result in sarif["results"]} == {finding.rule for finding in run.report.findings}
    cases = ElementTree.parse(junit_file).getroot().iter("testcase")
    assert sorted(str(case.get("name")) for case in cases) == [
        "tests/test_calc.py::test_add",
        "tests/test_calc.py::test_half",
    ]
    assert KEY not in sarif_file.read_text("utf-8") + junit_file.read_text("utf-8")

    assert not page.tags & {"script", "img", "link", "iframe", "a", "form", "object"}
    assert not {name for name, _ in page.attributes} & {"src", "href", "style", "onerror"}
    assert "default-src 'none'" in html and "prefers-color-scheme: dark" in html
    for text in (html, markdown):
        assert all(char.isprintable() or char in "\n\t" for char in text), "nothing invisible"
        assert KEY not in text and "may hold a secret" in text
        assert "more lines of this file are left out" in text and "1,200 lines of the diff are left out" in text
    assert "<script>alert(1)</script>" in page.text and "\\u202e" in page.text
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown)
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or ()}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr"}

    again = workshop.proofstone(root, "status", run.report.run_id, "--md", "-")
    assert again.stdout == markdown, "an earlier check has the same page"


def test_a_pass_has_its_reasons_and_goes_to_stdout(workshop: Workshop, tmp_path: Path) -> None:
    root = workshop.repo(FILES)
    workshop.write(root, {"calc.py": CALC.replace("a / 2", "a * 0.5")})
    done = workshop.proofstone(root, "check", "--md", "-", "--html", str(tmp_path / "r.html"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Check of 1 changed file\n\n**PASSED**")
    assert "Confidence: **" in done.stdout
    assert "+    return a * 0.5" in done.stdout
    assert f"wrote {tmp_path / 'r.html'}" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--html", "report.html"), "is in the work tree, so the report would become part of the change"),
        (("--md", "calc.py"), "is in the work tree"),
        (("--html", "out/no/r.html"), "its folder cannot be used"),
        (("--html", "out"), "is a folder"),
        (("--html", ".git/r.html"), "inside git's own folder"),
        (("--html", "../r", "--md", "../r"), "both name the same file"),
        (("--html", "-", "--json"), "both would be written to stdout"),
    ],
)
def test_a_bad_file_is_refused_before_anything_runs(workshop: Workshop, options: tuple[str, ...], says: str) -> None:
    root = workshop.repo(FILES)
    (root / "out").mkdir()
    done = workshop.proofstone(root, "check", *options)
    assert done.returncode == 2
    assert says in done.stderr and "hint: " in done.stderr
    assert not (workshop.proofstone_home / "ledger").exists()
    assert (root / "calc.py").read_text() == CALC


def test_a_report_of_a_change_that_no_check_needed_a_sandbox_for_claims_none(
    workshop: Workshop, tmp_path: Path
) -> None:
    root = workshop.repo({"a.md": "one\n"})
    workshop.write(root, {"a.md": "two\n"})
    run = workshop.check(root, "--md", str(tmp_path / "r.md"))
    assert run.exit == 0, run.stderr
    page = (tmp_path / "r.md").read_text("utf-8")
    assert "no check started a program, so none needed a sandbox" in page and "isolation" not in page
