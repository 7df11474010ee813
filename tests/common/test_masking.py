"""Values of secret variables, taken out of what programs say."""

from __future__ import annotations

import base64
import html
import json
import shlex
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from proofstone.common.secrets import MASK, SecretMask, is_maskable
from tests.rows import each_row

SECRET = "s3cr3t/\"Value\" & 'more' ü"
MASKED = SecretMask.from_variables({"TOKEN": SECRET, "KEY": "AAAA-bbbb-1111\nCCCC-dddd-2222\n"})

SPELLINGS = {
    "as it is": SECRET,
    "json": json.dumps(SECRET),
    "json as text": json.dumps(SECRET, ensure_ascii=False),
    "repr": repr(SECRET),
    "xml": html.escape(SECRET),
    "a URL": f"https://x/?k={quote(SECRET, safe='')}",
    "a shell": shlex.quote(SECRET),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 of a header": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "base64 in a longer text": base64.b64encode(f"ab{SECRET}cd".encode()).decode(),
    "hexadecimal": SECRET.encode().hex(),
    "one line of several": "key: CCCC-dddd-2222",
    "cut by its author": "'s3cr3t/\"V...more' ü'",
}


@each_row("text", SPELLINGS.values())
def test_every_spelling_is_masked(text: str) -> None:
    masked = MASKED.mask_text(f"before {text} after")
    assert MASK.decode() in masked and masked.startswith("before ") and masked.endswith(" after")
    for part in ("s3cr3t", "Value", "more", "CCCC", "dddd", base64.b64encode(SECRET.encode()[3:12]).decode()[:8]):
        assert part not in masked


@each_row(
    ("value", "expected"),
    [
        ("short-1", False),
        ("production", False),
        ("Postgres", False),
        ("12345678", False),
        ("127.0.0.1", False),
        ("http://localhost:8080", False),
        ("aB3-xY9z", True),
        ("correcthorsebatterystaple", True),
        ("postgres://me:pa55word@db/x", True),
        ("1234567890123456", True),
    ],
)
def test_what_is_worth_masking(value: str, expected: bool) -> None:
    assert is_maskable(value) is expected


def test_the_password_of_a_url_is_masked_by_itself() -> None:
    mask = SecretMask.from_variables({"DSN": "postgres://me:pa%2055w0rd!@db.example/x"})
    assert mask.mask_text("me:pa%2055w0rd! or pa 55w0rd!; db.example") == "me:*** or ***; db.example"


def test_a_value_that_holds_another_is_masked_as_a_whole() -> None:
    mask = SecretMask.from_variables({"A": "abcd-1234", "B": "abcd-1234-wxyz"})
    assert mask(b"abcd-1234-wxyz abcd-1234") == b"*** ***"


def test_public_values_are_left_alone() -> None:
    assert SecretMask.from_variables({"ROOT": "/srv/project-1"}, public=["/srv/project-1"]).mask_text(
        "/srv/project-1/a"
    ) == ("/srv/project-1/a")


@given(st.lists(st.sampled_from([b"x", b"s3cr3t", b"s3cr3t-Value-12", b"s3cr3t-Value-1", b"\n", b"..."])), st.data())
def test_pieces_are_masked_as_the_whole_is(parts: list[bytes], data: st.DataObject) -> None:
    mask = SecretMask.from_variables({"T": "s3cr3t-Value-12"})
    whole = b"".join(parts)
    stream, shown, at = mask.open_stream(), b"", 0
    while at < len(whole):
        size = data.draw(st.integers(1, 7))
        shown += stream.add(whole[at : at + size])
        at += size
    shown += stream.end()
    assert b"s3cr3t-Value-12" not in shown
    assert shown.count(MASK) >= whole.count(b"s3cr3t-Value-12")
    if b"." not in whole and not mask.pending_length(whole):
        assert shown == mask(whole)


def test_the_beginning_of_a_value_at_the_very_end_is_masked() -> None:
    stream = SecretMask.from_variables({"T": "s3cr3t-Value-12"}).open_stream()
    assert stream.add(b"say s3cr3t-Value") + stream.end() == b"say ***"
    assert stream.add(b"say s3c") + stream.end() == b"say s3c"


def test_the_variables_are_named_and_not_their_values() -> None:
    assert MASKED.find_names(f"x = {json.dumps(SECRET)}") == ["TOKEN"]
    assert MASKED.find_names("AAAA-bbbb-1111") == ["KEY"]
    assert MASKED.find_names("nothing") == []
