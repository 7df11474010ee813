"""The chain is pure: any change to any entry is found, at the entry that was changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from proofstone.errors import LedgerError
from proofstone.ledger.rules.chain import (
    ChainBreak,
    ChainEntry,
    ChainLink,
    RowPayload,
    canonical_json,
    find_first_break,
    genesis_hash,
    next_link,
    payload_hash,
    sort_breaks,
)

LEDGER = "a-ledger"
any_text = st.text(st.characters(codec=None, categories=None, exclude_categories=()), max_size=20)
scalars = st.none() | st.integers(-(2**63), 2**63 - 1) | any_text
payloads = st.dictionaries(any_text, scalars, max_size=5)
floats = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=10,
)


def chain_of(rows: Sequence[tuple[str, RowPayload]]) -> list[ChainEntry]:
    entries: list[ChainEntry] = []
    prev = genesis_hash(LEDGER)
    for seq, (table, payload) in enumerate(rows, start=1):
        link = next_link(prev, seq, table, payload)
        entries.append(ChainEntry(link, link, payload))
        prev = link.hash
    return entries


rows = st.tuples(st.sampled_from(["events", "messages"]), payloads)
chains = st.lists(rows, min_size=1, max_size=8).map(chain_of)


def broken_at(entries: list[ChainEntry]) -> int | None:
    found = find_first_break(LEDGER, entries)
    return None if found is None else found.seq


@given(values)
def test_canonical_json_reads_back_as_the_same_value(value: JsonValue) -> None:
    assert json.loads(canonical_json(value)) == value


@given(values)
def test_canonical_json_is_ascii_and_canonical_again(value: JsonValue) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert canonical_json(json.loads(text)) == text


@given(payloads)
def test_the_order_of_columns_does_not_matter(payload: dict[str, str | int | None]) -> None:
    assert payload_hash(dict(reversed(payload.items()))) == payload_hash(payload)


@given(payloads, payloads)
def test_different_payloads_have_different_hashes(one: RowPayload, other: RowPayload) -> None:
    assert (payload_hash(one) == payload_hash(other)) == (one == other)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_that_are_not_finite_are_refused(value: JsonValue) -> None:
    with pytest.raises(LedgerError, match="cannot be recorded"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: "a"}, [{"a": {None: 1}}]])
def test_keys_that_are_not_text_are_refused(value: object) -> None:
    with pytest.raises(LedgerError, match="is not text"):
        canonical_json(value)  # type: ignore[arg-type]


def test_the_form_is_fixed_for_ever() -> None:
    """Ledgers on people's disks were hashed like this: a change here would break every one of them."""
    payload: RowPayload = {"b": 'é"\ud800', "a": None, "c": -1}
    assert canonical_json(payload) == '{"a":null,"b":"\\u00e9\\"\\ud800","c":-1}'
    link = next_link(genesis_hash(LEDGER), 1, "events", payload)
    assert link.payload_hash == "5175332c99b6b0c577bdd41cd6c7fffa9af3e664d64a67b63fd4177acea6a50e"
    assert link.hash == "80fdae5f5d0155925d96d75c593966b03af66df5c4dcc31557bb4b9b3f8e6c4c"


@given(chains)
def test_what_was_chained_verifies(entries: list[ChainEntry]) -> None:
    assert find_first_break(LEDGER, entries) is None


def test_a_row_that_is_gone_in_part_does_not_exist() -> None:
    entry = chain_of([("events", {"a": 1})])[0]
    for damaged in (replace(entry, row=None), replace(entry, payload=None), replace(entry, row=None, payload=None)):
        found = find_first_break(LEDGER, [damaged])
        assert found == ChainBreak(1, "the chain names a row of events that does not exist")


@given(chains)
def test_a_chain_does_not_fit_another_ledger(entries: list[ChainEntry]) -> None:
    assert find_first_break("another", entries) == ChainBreak(1, "prev_hash is not the hash of the previous entry")


@given(chains, st.data())
def test_a_changed_payload_is_found_where_it_was_changed(entries: list[ChainEntry], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    changed = data.draw(payloads.filter(lambda payload: payload != entries[place].payload))
    entries[place] = replace(entries[place], payload=changed)
    assert broken_at(entries) == place + 1


@given(chains, st.data())
def test_a_rehashed_entry_is_found_at_the_next_one(entries: list[ChainEntry], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    old = entries[place]
    assert old.link is not None
    link = next_link(old.link.prev_hash, old.link.seq, old.link.table, {"another": 1})
    entries[place] = ChainEntry(link, link, {"another": 1})
    last = place == len(entries) - 1 or old.payload == {"another": 1}
    assert broken_at(entries) == (None if last else place + 2)  # only an anchor sees a re-hashed last entry


@given(chains, st.data(), st.sampled_from(["payload_hash", "prev_hash", "hash", "table"]), st.booleans())
def test_a_changed_hash_or_table_is_found_in_chain_and_row(
    entries: list[ChainEntry], data: st.DataObject, field: str, in_chain: bool
) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    entry = entries[place]
    assert entry.link is not None
    changes: dict[str, Any] = {field: data.draw(any_text)}
    forged = replace(entry.link, **changes)
    if forged == entry.link:
        return
    entries[place] = replace(entry, link=forged) if in_chain else replace(entry, row=forged)
    assert broken_at(entries) == place + 1


@given(chains, st.data())
def test_a_removed_row_is_found(entries: list[ChainEntry], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    entries[place] = replace(entries[place], row=None, payload=None)
    assert broken_at(entries) == place + 1


@given(chains, st.data())
def test_a_removed_entry_is_found_unless_it_is_the_tail(entries: list[ChainEntry], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    del entries[place]
    assert broken_at(entries) == (None if place == len(entries) else place + 1)  # the tail is for the anchors


def test_a_row_without_a_place_in_the_chain_is_found() -> None:
    link = ChainLink(7, "events", "0" * 64, "0" * 64, "0" * 64)
    assert find_first_break(LEDGER, [ChainEntry(None, link, {})]) == ChainBreak(
        7, "a row of events has no place in the chain"
    )


def test_breaks_are_sorted_by_number_and_those_without_a_number_come_last() -> None:
    schema, second, fifth = ChainBreak(None, "schema"), ChainBreak(2, "a"), ChainBreak(5, "b")
    assert sort_breaks([schema, fifth, second]) == (second, fifth, schema)
