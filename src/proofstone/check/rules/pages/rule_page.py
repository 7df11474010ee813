"""What a page says about a rule."""

from __future__ import annotations

from proofstone.common.models import FrozenModel


class RulePage(FrozenModel):
    """The page of one rule."""

    rule: str
    title: str
    what: str
    """What was found, if a finding has this rule."""
    why: str
    """Why that matters."""
    example: str
    """A small case in which the rule applies."""
    action: str
    """What an honest author does."""
