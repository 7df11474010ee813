"""Values whose references multiply are seen before anybody walks through them."""

from __future__ import annotations

from proofstone.common.parsing import is_bounded


def test_values_are_counted_with_every_reference_written_out() -> None:
    value: list[object] = ["x"]
    for _ in range(40):
        value = [value, value]
    assert not is_bounded(value)
    assert is_bounded({"a": [1, {"b": None}]})
    assert is_bounded([0] * 99, most=100)
    assert not is_bounded([0] * 100, most=100)


def test_a_value_within_itself_is_not_bounded() -> None:
    ring: list[object] = []
    ring.append(ring)
    assert is_bounded([ring[0]][:0])
    assert not is_bounded([ring, ring])
