"""What answers in free words name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofstone.supervision.rules.mentions import (
    Mention,
    find_interface_changes,
    find_mentioned_files,
    means_none,
    mentions_change_of,
    mentions_symbol,
)
from tests.rows import each_row
from tests.supervision.watching import ANSWER, HANDLER, LIMITER

KNOWN = (HANDLER, "src/shop/cart.py", "tests/cart.py", "Makefile", "build/gen.py", "docs/read me.md")


def test_the_answer_of_the_seed_is_understood() -> None:
    assert find_mentioned_files(ANSWER) == (Mention(HANDLER, new=False), Mention(LIMITER, new=True))
    assert find_interface_changes(ANSWER) == ("Interface change: handler signature adds rate_config parameter.",)
    assert mentions_symbol(ANSWER, "rate_config") and mentions_symbol(ANSWER, "auth.handler")


@each_row(
    ("text", "expected"),
    [
        ("`src/a.py:12`, **src/b.py**; see src/c.py:3:4.", "src/a.py src/b.py src/c.py"),
        ("(src/a.py), “src/b.ts”, 'src/c.go'!", "src/a.py src/b.ts src/c.go"),
        ("- ./src/a.py\n- src/b.py: the rest\n1. [c](src/c.py)", "src/a.py src/b.py src/c.py"),
        ("src/a.py#L10-L12 and src\\win\\b.ts", "src/a.py src/win/b.ts"),
        ("src/a.py→src/b.py — src/c.py…", "src/a.py src/b.py src/c.py"),
        ("src/a.py's caller, src/b.py.", "src/a.py src/b.py"),
        ("handler.py, auth/handler.py and Makefile", f"{HANDLER} Makefile"),
        ("build/gen.py and docs/read me.md", "docs/read me.md build/gen.py"),
        ("cart.py", "cart.py"),
        ("and/or Node.js 3.12, e.g. i.e. etc.", ""),
        ("", ""),
    ],
)
def test_files_are_found_however_they_are_written(text: str, expected: str) -> None:
    found = [one.path for one in find_mentioned_files(text, KNOWN)]
    assert " ".join(found) == expected


@each_row(
    "text",
    [
        "src/new.py (NEW)",
        "`src/new.py` (new)",
        "**src/new.py** [NEW]",
        "src/new.py: NEW".replace(":", ""),
        "New file: `src/new.py`",
        "I create src/new.py.",
        "It adds a new file src/new.py",
    ],
)
def test_what_is_said_to_be_new_is_new(text: str) -> None:
    assert find_mentioned_files(text) == (Mention("src/new.py", new=True),)


@each_row(
    ("text", "expected"),
    [
        ("I will not touch src/a.py but src/b.py.", "src/b.py"),
        ("I don't change src/a.py, src/c.py. Then src/b.py.", "src/b.py"),
        ("We can’t edit src/a.py; src/b.py it is.", "src/b.py"),
        ("src/a.py stays unchanged, src/b.py changes", "src/b.py"),
        ("I change src/b.py and leave src/a.py as it is.", "src/b.py"),
        ("src/b.py instead of src/a.py", "src/b.py"),
        ("There is no need to modify src/a.py", ""),
        ("src/a.py is not touched", ""),
        ("Everything as declared, except src/b.py (NEW).", "src/b.py"),
    ],
)
def test_what_is_left_alone_is_not_named(text: str, expected: str) -> None:
    assert " ".join(one.path for one in find_mentioned_files(text)) == expected


@each_row(
    ("text", "announced"),
    [
        ("Interface change: handler signature adds rate_config parameter.", True),
        ("`handle` no longer takes the `ctx` parameter", True),
        ("The public API gains a second argument, which must not be None", True),
        ("The return type becomes a list", True),
        ("Interface change: none.", False),
        ("No interface changes.", False),
        ("The signature does not change", False),
        ("The interface stays as it is", False),
        ("All signatures are unchanged; the file changes", False),
        ("It changes the colour.", False),
    ],
)
def test_a_changed_interface_is_heard_and_an_unchanged_one_is_not(text: str, announced: bool) -> None:
    assert bool(find_interface_changes(text)) is announced


@each_row(
    ("text", "name", "expected"),
    [
        ("`Store.get()` changes", "Store.get", True),
        ("the function get", "Store.get", True),
        ("Store::get", "Store.get", True),
        ("getter", "Store.get", False),
        ("T-3 rests on it", "T-3", True),
        ("T-31 rests on it", "T-3", False),
        ("the Checkout Page follows", "checkout page", True),
        ("anything", "", False),
    ],
)
def test_names_are_found_as_whole_words(text: str, name: str, expected: bool) -> None:
    assert mentions_symbol(text, name) is expected


@each_row(
    ("text", "expected"),
    [
        ("`Cart.add` takes a tax", True),
        ("Cart.total is unchanged; add takes a tax", True),
        ("Cart.add keeps the same signature", False),
        ("No signature of Cart.add changes", False),
        ("none", False),
    ],
)
def test_a_symbol_that_stays_as_it_is_is_no_change_of_it(text: str, expected: bool) -> None:
    assert mentions_change_of(text, "Cart.add") is expected


@each_row("text", ["none", "None.", "N/A", "no", "-", "No interface change", "no changes"])
def test_nothing_can_be_said_in_many_ways(text: str) -> None:
    assert means_none(text)
    assert not means_none(f"{text} for readers, but handle() takes rate_config")


@given(st.lists(st.sampled_from(["src/a.py", "lib/b.ts", "c/d.go", "x.rs"]), unique=True), st.text(alphabet="`*(), \n"))
def test_each_path_in_a_plain_list_is_found_once(paths: list[str], between: str) -> None:
    text = f" {between} ".join(paths)
    assert [one.path for one in find_mentioned_files(text)] == paths


@each_row("text", ["." * 20_000, " " * 20_000 + "x", "not " * 5_000, "a/" * 10_000, "src/a.py " * 2_000])
def test_a_text_that_was_made_to_take_long_is_read_all_the_same(text: str) -> None:
    assert len(find_mentioned_files(text, KNOWN)) <= 1
    find_interface_changes(text)
