"""Ask the person at this terminal whether they accept the findings that refuse a change.

The question names every finding. An acceptance needs a reason, which the person types; if they gave one on the command
line, they confirm it. No answer accepts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.check.rules.acceptance import (
    build_acceptances,
    find_acceptable,
    is_acceptance_enough,
    is_reason_sufficient,
)
from proofstone.cli.output import LineReader, read_typed_line
from proofstone.common.models import Acceptance, AcceptanceMethod, Finding
from proofstone.common.text import escape_control, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

_MAX_FINDINGS: Final = 20
"""The most findings of one rule that a question names; the report has all."""
_YES: Final = ("y", "yes")


@dataclass(frozen=True)
class AcceptanceQuestions:
    """The questions about the findings of one check."""

    console: Console
    person: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons that the person gave on the command line, by rule."""
    read_line: LineReader = read_typed_line
    pause: Callable[[], AbstractContextManager[object]] = nullcontext
    """Stops the live display while a question is asked."""

    def ask(self, findings: Sequence[Finding]) -> Sequence[Acceptance]:
        """Return what the person accepts.

        If other findings refuse the change too, accepting these would not make it pass: then only the rules that the
        person named on the command line are asked about.
        """
        acceptable = find_acceptable(findings)
        rules = dict.fromkeys(finding.rule for finding in acceptable)
        if not is_acceptance_enough(findings):
            rules = {rule: None for rule in rules if rule in self.reasons}
        accepted: dict[str, str] = {}
        with self.pause():
            for rule in rules:
                if reason := self._ask_about(rule, [finding for finding in acceptable if finding.rule == rule]):
                    accepted[rule] = reason
        return build_acceptances(accepted, self.person, AcceptanceMethod.INTERACTIVE)

    def _ask_about(self, rule: str, findings: Sequence[Finding]) -> str:
        """Return the person's reason to accept the findings of one rule; empty if they do not."""
        self._print(f"\n{rule}: {pluralize(len(findings), 'finding')} that only a person may accept", "bold yellow")
        for finding in findings[:_MAX_FINDINGS]:
            self._show(finding)
        if len(findings) > _MAX_FINDINGS:
            self._print(f"  … and {len(findings) - _MAX_FINDINGS} more", "dim")
        if given := self.reasons.get(rule):
            self._print(f"your reason: {' '.join(given.split())}")
            self._print("accept for this reason? type y to accept, or an empty line to refuse", "dim")
            return given if (self.read_line() or "").strip().lower() in _YES else ""
        while True:
            self._print("to accept, type why; an empty line refuses", "dim")
            reason = (self.read_line() or "").strip()
            if not reason:
                return ""
            if "\0" in reason or reason.encode("utf-8", "ignore").decode("utf-8") != reason:
                self._print("this is not valid UTF-8 text; type it again", "yellow")
            elif is_reason_sufficient(reason):
                return reason
            else:
                self._print("say why in a few words: the reason is recorded with your name", "yellow")

    def _show(self, finding: Finding) -> None:
        where = f"{finding.path}:{finding.line}: " if finding.path and finding.line else ""
        self._print(f"  {where}{finding.detail}")
        for mark, lines in (("-", finding.before), ("+", finding.after)):
            for line in (lines or "").splitlines():
                self._print(f"    {mark} {line}")

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(escape_control(text), style=style, soft_wrap=True)
