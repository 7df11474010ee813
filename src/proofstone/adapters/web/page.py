"""A page, as it was fetched and as it is shown: its addresses, a line each, then a blank line, then what it says.

Written and read back here: whoever looks up what a page says must not take the page's words for an address.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    addresses: tuple[str, ...]
    """Where it was asked for and, if that leads elsewhere, where it was in the end. Without fragments."""
    text: str

    def shown(self) -> str:
        return "\n".join((*self.addresses, "", self.text))


def page_in(shown: str) -> Page:
    head, _, text = shown.partition("\n\n")
    return Page(tuple(head.split("\n")), text)
