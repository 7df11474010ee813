"""Counts, slugs, and long texts that are cut."""

from __future__ import annotations

from proofstone.common.text import cut_to_tail


def test_a_long_output_is_cut_to_its_last_lines() -> None:
    assert cut_to_tail("one\ntwo\n") == "one\ntwo"
    assert cut_to_tail("") == ""
    assert cut_to_tail("\n".join(map(str, range(100)))) == "\n".join(("[...]", *map(str, range(60, 100))))
    assert cut_to_tail("x" * 5000) == "[...]\n" + "x" * 3000
