"""What an interruption looks like by the time it comes out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptions() -> Iterator[None]:
    """A signal can be heard between the moment a lock is let go and the moment somebody knows of it (in
    `Condition.wait`, say); the lock is then let go twice on the way out, and it is that error which arrives. What it
    came from is the interruption, and this is what the caller hears of."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise
