"""What the layers of evidence found about one check that passed."""

from __future__ import annotations

from collections.abc import Iterable

from proofstone.contracts.base import Contract
from proofstone.contracts.finding import Finding


class Examined(Contract):
    findings: tuple[Finding, ...] = ()
    edited: tuple[str, ...] = ()
    """Tests that pass only because they were edited."""
    sensitive: tuple[str, ...] = ()
    """Tests that were seen to fail without the change's source."""
    caps: tuple[str, ...] = ()
    """What keeps the confidence from being high, in words."""
    not_measured: tuple[str, ...] = ()
    """Runs that died although the verdict needs them, in words: the check cannot be verified then."""


def together(parts: Iterable[Examined]) -> Examined:
    listed = list(parts)
    return Examined(
        findings=tuple(finding for part in listed for finding in part.findings),
        edited=tuple(sorted({test for part in listed for test in part.edited})),
        sensitive=tuple(sorted({test for part in listed for test in part.sensitive})),
        caps=tuple(dict.fromkeys(cap for part in listed for cap in part.caps)),
        not_measured=tuple(dict.fromkeys(words for part in listed for words in part.not_measured)),
    )
