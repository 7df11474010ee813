"""Objects of the private store that a run still needs, kept from being tidied away: refs hold them."""

from __future__ import annotations

from proofstone.adapters.git.store import Store

_REFS = "refs/proofstone/held"


def hold(store: Store, run_id: str, name: str, thing: str) -> None:
    """Keep a commit or a tree of the run, in place of what was held under that name."""
    store.git().run("update-ref", f"{_REFS}/{run_id}/{name}", thing)


def let_go(store: Store, run_id: str) -> None:
    """The run is over, and what counts of it is in the person's repository."""
    git = store.git()
    names = git.line("for-each-ref", "--format=delete %(refname)", f"{_REFS}/{run_id}")
    if names:
        git.run("update-ref", "--stdin", stdin=f"{names}\n".encode())
