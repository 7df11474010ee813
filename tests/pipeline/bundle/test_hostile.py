"""Whatever agents and people write stays text, on every page that is made of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.documents.markdown import block_quote, bullet_list, format_ranges, make_visible
from proofstone.pipeline.bundle_builder import build_bundle
from proofstone.pipeline.models.bundle import EvidenceBundle
from proofstone.pipeline.rules.bundle_page import render_bundle_html, render_bundle_page
from tests.pipeline.bundle.reading import HOSTILE, MORE_THAN_TEXT, Html, Markdown
from tests.pipeline.bundle.story import PLAIN, RUN, Words, written
from tests.rows import each_row

LINES = {"request", "summary", "snippet", "person"}
"""What may have several lines; a title is one."""


def told(name: str) -> str:
    return HOSTILE if name in LINES else " ".join(HOSTILE.split())[:300]


def bundled(path: Path, words: Words) -> EvidenceBundle:
    with closing(written(path / "ledger.db", words)) as ledger:
        return build_bundle(ledger, RUN)


@pytest.fixture(params=[field.name for field in fields(Words)])
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> EvidenceBundle:
    name: str = request.param
    return bundled(tmp_path, replace(PLAIN, **{name: told(name)}))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> EvidenceBundle:
    return bundled(tmp_path_factory.mktemp("plain"), PLAIN)


def test_in_html_it_is_neither_tag_nor_attribute_nor_heading(hostile: EvidenceBundle, plain: EvidenceBundle) -> None:
    seen, known = Html(render_bundle_html(hostile)), Html(render_bundle_html(plain))
    assert seen.tags == known.tags
    assert seen.attributes - known.attributes <= {("class", "rows")}
    assert seen.headings[1:] == known.headings[1:]
    assert all(char.isprintable() or char == "\n" for char in render_bundle_html(hostile))


def test_in_markdown_it_is_neither_heading_nor_link_nor_markup(hostile: EvidenceBundle, plain: EvidenceBundle) -> None:
    seen, known = Markdown(render_bundle_page(hostile)), Markdown(render_bundle_page(plain))
    assert len(seen.headings) == len(known.headings)
    assert seen.headings[1:] == known.headings[1:]
    assert not seen.kinds & MORE_THAN_TEXT
    assert seen.in_quotes <= {"paragraph_open", "inline", "paragraph_close"}
    assert all(char.isprintable() or char == "\n" for char in render_bundle_page(hostile))


def test_the_words_are_there_all_the_same(tmp_path: Path) -> None:
    bundle = bundled(tmp_path, replace(PLAIN, issue="<b>bold</b> & sons", reason="*loud* [x](y)"))
    assert "<b>bold</b> & sons" in Html(render_bundle_html(bundle)).text
    assert "*loud* [x](y)" in Html(render_bundle_html(bundle)).text
    assert make_visible("*loud* [x](y)") in render_bundle_page(bundle).replace("\\", "")


def test_the_page_loads_and_runs_nothing(plain: EvidenceBundle) -> None:
    seen = Html(render_bundle_html(plain))
    assert not seen.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "a", "base"}
    assert not {name for name, _ in seen.attributes} & {"src", "href", "action", "style"}
    assert not {name for name, _ in seen.attributes if name.startswith("on")}
    assert "url(" not in render_bundle_html(plain)
    assert "@import" not in render_bundle_html(plain)
    assert "default-src 'none'" in render_bundle_html(plain)
    assert "prefers-color-scheme: dark" in render_bundle_html(plain)
    assert "@media print" in render_bundle_html(plain)
    assert "svg" in seen.tags


@given(st.text())
def test_a_quote_holds_paragraphs_and_nothing_else(text: str) -> None:
    seen = Markdown(f"before\n\n{block_quote(text)}\n\nafter\n")
    assert seen.in_quotes <= {"paragraph_open", "inline", "paragraph_close"}
    assert not seen.kinds & MORE_THAN_TEXT
    assert not seen.headings


@given(st.lists(st.text(min_size=1), min_size=1))
def test_an_item_of_a_list_is_one_paragraph(texts: list[str]) -> None:
    seen = Markdown(bullet_list(texts))
    assert not seen.headings
    assert not seen.kinds & {*MORE_THAN_TEXT, "blockquote_open", "ordered_list_open", "fence", "code_block"}


@each_row(
    ("numbers", "told"), [((), ""), ((3,), "3"), ((7, 3), "3, 7"), ((31, 32, 33, 7), "7, 31–33"), ((2, 2, 3), "2–3")]
)
def test_rows_are_told_as_ranges(numbers: tuple[int, ...], told: str) -> None:
    assert format_ranges(numbers) == told
