"""What an agent says and does, while it does: pieces become lines that can be read."""

from __future__ import annotations

from proofstone.cli.render.live_gate import _ActiveTask


def test_pieces_of_words_are_put_together_to_the_last_line_that_says_something() -> None:
    working = _ActiveTask(0.0)
    for piece in ("I will ", "look at the", " cart", " first.\n", "\n"):
        working.heard(piece.encode())
    assert working.said == "I will look at the cart first."
    working.begin("▸ run make")
    assert working.said == "▸ run make"
    working.heard(b"compiling\n")
    assert working.said == "compiling"
    working.heard(b"x" * 10_000)
    assert len(working.said) <= 2000
