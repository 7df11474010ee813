"""What a server sends becomes text, whatever it is."""

from __future__ import annotations

from proofstone.agents.web.pages import extract_page_text, is_text
from tests.rows import each_row

HTML = "text/html; charset=utf-8"


@each_row(
    ("html", "text"),
    [
        ("<title>T</title><body><p>One</p><p>Two &amp; &lt;three&gt;</p>", "T\n\nOne\n\nTwo & <three>"),
        ("<p>a <b>bold</b>\n   word</p>", "a bold word"),
        ("<script>alert('x')</script><style>p {}</style>seen", "seen"),
        ("<template><p>hidden</p></template>seen<noscript>no</noscript>", "seen"),
        ("<pre>def f():\n    return 1\n</pre>", "def f():\n    return 1"),
        ("<ul><li>one<li>two</ul>", "one\ntwo"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\n\nc"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("never ended <b>bold", "never ended bold"),
        ("a & b", "a & b"),
        ("<svg><svg>x</svg><p>y</p></svg>seen", "seen"),
        ("<template/>seen", "seen"),
        ("<!-- hidden -->seen", "seen"),
        ("", ""),
    ],
)
def test_html_becomes_what_a_reader_sees(html: str, text: str) -> None:
    found = extract_page_text(HTML, html.encode())
    assert [line.strip() for line in found.split("\n") if line.strip()] == [
        line.strip() for line in text.split("\n") if line.strip()
    ]


def test_code_keeps_its_indentation() -> None:
    assert "def f():\n    return 1" in extract_page_text(HTML, b"<p>See</p><pre>def f():\n    return 1\n</pre>")


@each_row(
    "page",
    [
        b"<!--" * 500_000,
        b"<a " + b"a='" * 60_000,
        b"<![CDATA[" * 200_000,
        b"<script>" + b"</scrip" * 250_000,
        b"</" * 200_000,
        b"<" * 200_000,
        b"&" * 1_000_000,
        b"<svg>" * 50_000 + b"</p>" * 50_000,
    ],
)
def test_a_page_made_to_keep_a_parser_busy_comes_to_an_end(page: bytes) -> None:
    assert isinstance(extract_page_text(HTML, b"<p>seen</p>" + page), str)


def test_what_never_ends_is_given_up_and_said() -> None:
    text = extract_page_text(HTML, b"<p>seen</p><!--" + b"x" * (1 << 21))
    assert text.startswith("seen") and "[the rest of the page is not valid HTML]" in text


def test_a_page_is_left_when_the_time_is_over_and_what_was_read_is_kept() -> None:
    answers = iter([False, False, True])
    text = extract_page_text(HTML, b"<p>seen</p>" + b"<" * 33_000 + b"<p>unseen</p>" * 2000, lambda: next(answers))
    assert text.startswith("seen") and text.endswith("\n[the rest of the page takes too long to read]")
    assert "unseen" not in text and next(answers, None) is None


@each_row(
    ("header", "body", "text"),
    [
        ("text/plain; charset=iso-8859-1", "Größe".encode("latin-1"), "Größe"),
        ("text/plain", "Größe".encode(), "Größe"),
        ("text/html", '<meta charset="windows-1252">Größe'.encode("cp1252"), "Größe"),
        ("text/plain; charset=utf-16", "Größe".encode("utf-16"), "Größe"),
        ("text/plain; charset=punycode", b"plain", "plain"),
        ("text/plain; charset=zlib", b"plain", "plain"),
        ("text/plain; charset=nonsense", b"plain", "plain"),
        ("text/plain", b"\xff", "\N{REPLACEMENT CHARACTER}"),
        ("text/plain", b"\xef\xbb\xbfplain", "plain"),
        ("application/json", b'{"a": "<p>"}', '{"a": "<p>"}'),
    ],
)
def test_text_is_read_in_the_encoding_that_it_is_in(header: str, body: bytes, text: str) -> None:
    assert extract_page_text(header, body) == text


@each_row(
    ("header", "body", "text"),
    [
        ("text/html", b"x", True),
        ("text/markdown; charset=utf-8", b"x", True),
        ("application/json", b"{}", True),
        ("application/atom+xml", b"<a/>", True),
        ("", b"x", True),
        ("", b"\0x", False),
        ("text/plain", b"\0x", False),
        ("text/plain; charset=utf-16", b"\0x", True),
        ("application/pdf", b"%PDF", False),
        ("image/png", b"x", False),
        ("application/octet-stream", b"x", False),
    ],
)
def test_only_text_is_text(header: str, body: bytes, text: bool) -> None:
    assert is_text(header, body) is text
