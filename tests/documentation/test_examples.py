"""Every page of the manual can be done as it stands, without a model, and prints what it says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.documentation.page import DOCS, Command, begun_with, deeds, untried
from tests.documentation.reader import Reader, providers
from tests.needs import needs

FOLDERS = ("tutorials", "how-to", "concepts")
"""Whose pages are done from beginning to end."""
REFERENCE: Mapping[str, str] = {
    "README.md": "",
    "agents.md": "",
    "catalogue.md": "",
    "catalogue-composed.md": "",
    "check.md": "",
    "coding-agents.md": "",
    "configuration.md": "",
    "evidence.md": "",
    "gate.md": "",
    "gate-quality.md": "",
    "glossary.md": "",
    "hooks.md": "",
    "plan.md": "",
    "reference/api.md": "",
    "reference/cli.md": "",
    "reference/exit-codes.md": "",
    "reference/seed-conformance.md": "",
    "threat-model.md": "",
    "run.md": "an-example-to-copy",
    "scripts.md": "",
    "simulation.md": "",
    "solve.md": "an-example-to-copy",
    "understanding.md": "",
    "verify-plan.md": "",
}
"""Pages to look things up in, and the section of each that is done."""
FIRST_HOUR = "first-hour.md"
"""`tests/release` does it from the built package."""
WHOLE = sorted(page for folder in FOLDERS for page in (DOCS / folder).rglob("*.md"))
CONTINUED = {one for page in WHOLE for one in begun_with(page)}
"""Pages that are done, from beginning to end, before another that begins with them."""
EXAMPLES = [
    *((page, "") for page in WHOLE if page not in CONTINUED and any(isinstance(one, Command) for one in deeds(page))),
    *((DOCS / page, heading) for page, heading in REFERENCE.items() if heading),
]


@pytest.mark.few(3, ci=99)
@needs("git", "jq", "bwrap")
@pytest.mark.parametrize(("page", "heading"), EXAMPLES, ids=lambda one: getattr(one, "stem", ""))
def test_what_the_page_says_can_be_done_and_prints_that(page: Path, heading: str, tmp_path: Path) -> None:
    commands = [deed for deed in deeds(page, heading) if isinstance(deed, Command)]
    with providers() as (own, keys):
        done = Reader(tmp_path, own, keys).does(deeds(page, heading))
    for one in done:
        assert one.exit == 0, f"$ {one.command.line}\n{one.printed}"
        assert one.command.differs(one.printed) == "", f"$ {one.command.line}\n{one.printed}"
    assert len(done) == len(commands)


def test_no_page_is_forgotten() -> None:
    pages = {page for page in DOCS.rglob("*.md") if page.parent.name not in ("decisions", "rules")}
    assert pages == {*WHOLE, *(DOCS / page for page in (*REFERENCE, FIRST_HOUR))}


@pytest.mark.parametrize("page", WHOLE, ids=lambda page: page.stem)
def test_an_example_of_the_page_is_tried_or_says_why_not(page: Path) -> None:
    assert untried(page) == []


@pytest.mark.parametrize(("name", "heading"), REFERENCE.items(), ids=lambda one: one or "none")
def test_a_command_in_a_page_of_the_reference_is_tried_or_says_why_not(name: str, heading: str) -> None:
    tried = deeds(DOCS / name, heading) if heading else []
    assert [one for one in deeds(DOCS / name) if isinstance(one, Command) and one not in tried] == []
