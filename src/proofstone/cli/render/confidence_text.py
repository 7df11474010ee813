"""Print a confidence, always with its reasons and with what would raise it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from proofstone.common.models import Confidence, ConfidenceReason
from proofstone.common.text import escape_control

if TYPE_CHECKING:
    from rich.console import Console

CONFIDENCE_STYLES: Final = {Confidence.HIGH: "green", Confidence.MEDIUM: "yellow", Confidence.LOW: "red"}
_MAX_REASONS: Final = 20
"""The most reasons; the rest is counted, and --json has all."""


def print_confidence(
    console: Console,
    confidence: Confidence,
    reasons: Sequence[ConfidenceReason],
    *,
    indent: str = "  ",
    subject: str = "confidence",
) -> None:
    """Print the confidence in one line, and each reason with its remedy below it."""
    because = ", because:" if reasons else ""
    console.print(
        f"{indent}{escape_control(subject)} {confidence.value}{because}",
        style=CONFIDENCE_STYLES[confidence],
        soft_wrap=True,
    )
    for reason in reasons[:_MAX_REASONS]:
        console.print(f"{indent}- {_to_line(reason.reason)}", soft_wrap=True)
        if reason.remedy:
            console.print(f"{indent}  to raise it: {_to_line(reason.remedy)}", style="dim", soft_wrap=True)
    if len(reasons) > _MAX_REASONS:
        console.print(f"{indent}- … and {len(reasons) - _MAX_REASONS} more", style="dim")


def _to_line(text: str) -> str:
    return escape_control(" ".join(text.split()))
