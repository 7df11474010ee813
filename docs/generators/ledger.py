"""The ledger: its tables, and how one entry follows another."""

from __future__ import annotations

from dataclasses import fields

from generators.page import mermaid, table
from proofstone.ledger.rules.chain import ChainLink
from proofstone.ledger.schema import TABLES


def tables() -> str:
    """In the words of their contracts."""
    rows = [
        (f"`{one.name}`", _first_sentence(model.__doc__ or ""), ", ".join(f"`{name}`" for name in one.columns))
        for model, one in TABLES.items()
    ]
    return table(("table", "a row says", "columns"), rows)


def chain() -> str:
    names = [one.name for one in fields(ChainLink)]
    entries = {"n1": "entry n − 1", "n": "entry n", "n2": "entry n + 1"}
    drawn = [f'    {node}["{title}<br/>{"<br/>".join(names)}"]' for node, title in entries.items()]
    held = 'row["the row itself, in its table"]'
    arrows = ["    n -->|prev_hash| n1", "    n2 -->|prev_hash| n", f"    n -->|payload_hash| {held}"]
    anchor = '    anchor["refs/proofstone/ledger, in the repository"] -->|hash| n2'
    return mermaid("\n".join(["flowchart RL", *drawn, *arrows, anchor]))


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())
