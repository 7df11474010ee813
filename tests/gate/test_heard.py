"""What an agent says and does, while it does: pieces become lines that can be read."""

from __future__ import annotations

from proofstone.cli.render.live_gate import _ActiveTask


def test_pieces_of_words_are_put_together_to_the_last_line_that_says_something() -> None:
    active = _ActiveTask(0.0)
    for piece in ("I will ", "look at the", " cart", " first.\n", "\n"):
        active.add_output(piece.encode())
    assert active.last_line == "I will look at the cart first."
    active.begin("▸ run make")
    assert active.last_line == "▸ run make"
    active.add_output(b"compiling\n")
    assert active.last_line == "compiling"
    active.add_output(b"x" * 10_000)
    assert len(active.last_line) <= 2000
