"""What was found out about a plan, in one line: `[VERIFIED: source | finding | impact]`.

That word is the engine's. It is written where there is something to look up and all of it holds, and the source is then
what the engine itself has seen: that is all it answers for. Anything else is `[UNVERIFIED: …]` with the source that the
agent names, whatever it says of it. What an agent wrote cannot break the line, nor look like another one:
brackets, bars and line breaks in it are escaped, and `parse_finding` gives it back to the letter.

| what was looked up                 | resolution                                                       |
|------------------------------------|------------------------------------------------------------------|
| a claim does not hold              | UNRESOLVABLE                                                     |
| there is a claim, and all hold     | as the researcher says                                           |
| nothing, or it cannot be looked up | CONFIRMED and REFUTED are PARTIALLY_RESOLVED; the others stay    |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.contracts.plan_gate.answers import UnknownDraft
from proofstone.contracts.plan_gate.evidence import ClaimKind, LookedUp, RepositoryClaim
from proofstone.contracts.plan_gate.record import UnknownResolution
from proofstone.core.agent.tool_rules import shortened, shown

_SETTLED: Final = frozenset({UnknownResolution.CONFIRMED, UnknownResolution.REFUTED})
_SHOWN: Final = 200
_SEEN: Final = 2000
_ESCAPES: Final = {
    **{sign: f"\\{sign}" for sign in "\\|[]"},
    "\n": "\\n",
    "\r": "\\r",
    **{sign: f"\\u{ord(sign):04x}" for sign in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"},
}
"""What would end the line, the part or the form."""
_MEANT: Final = {written: sign for sign, written in _ESCAPES.items()}
_ESCAPED: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_PART: Final = r"((?:[^\\|\[\]\n]|\\.)*)"
_FORM: Final = re.compile(rf"\[(UN)?VERIFIED: {_PART} \| {_PART} \| {_PART}\]")

_CLAIMED: Final = {
    ClaimKind.FILE: ("{path} is there", "{path} is not there"),
    ClaimKind.SYMBOL: ("{name} is defined{within}", "{name} is not defined{within}"),
    ClaimKind.TEXT: ("{path} holds “{text}”", "{path} does not hold “{text}”"),
    ClaimKind.COMMIT: (
        "commit {revision} says or changes “{text}”",
        "commit {revision} neither says nor changes “{text}”",
    ),
    ClaimKind.MEMORY: ("the memory's entry {entry} holds “{text}”", "no entry {entry} of the memory holds “{text}”"),
    ClaimKind.WEB: ("{url} says “{text}”", "{url} does not say “{text}”"),
}


@dataclass(frozen=True)
class FoundOut:
    """A finding, in its parts."""

    verified: bool
    source: str
    finding: str
    impact: str


def is_verified(looked: Sequence[LookedUp]) -> bool:
    """Whether there was something to look up, and all of it holds."""
    return bool(looked) and all(one.holds for one in looked)


def is_substantial(looked: Sequence[LookedUp]) -> bool:
    """Whether it is verified by more than that files are there, or that something is not: that holds of any plan."""
    return is_verified(looked) and any(one.claim.kind is not ClaimKind.FILE and not one.claim.absent for one in looked)


def finding_text(draft: UnknownDraft, looked: Sequence[LookedUp]) -> tuple[str, UnknownResolution]:
    """The line, and what has become of the unknown."""
    text = _line("VERIFIED", _seen(looked), draft) if is_verified(looked) else unverified(draft)
    return text, _resolution(draft.resolution, looked)


def unverified(draft: UnknownDraft) -> str:
    return _line("UNVERIFIED", draft.source, draft)


def parse_finding(text: str) -> FoundOut | None:
    """None: it is not of this form."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    not_so, source, finding, impact = found.groups()
    return FoundOut(not_so is None, _meant(source), _meant(finding), _meant(impact))


def claimed(claim: RepositoryClaim) -> str:
    """A claim in words: `src/app.py is there`. In one line, and not longer than a person reads."""
    fields = ("path", "name", "revision", "entry", "url")
    words = {field: shown(shortened(getattr(claim, field), _SHOWN)) for field in fields}
    within = f" in {words['path']}" if claim.path else ""
    text = shown(shortened(" ".join(claim.text.split()), _SHOWN))
    return _CLAIMED[claim.kind][claim.absent].format(**words, within=within, text=text)


def _resolution(said: UnknownResolution, looked: Sequence[LookedUp]) -> UnknownResolution:
    if any(one.holds is False for one in looked):
        return UnknownResolution.UNRESOLVABLE
    return UnknownResolution.PARTIALLY_RESOLVED if said in _SETTLED and not is_verified(looked) else said


def _seen(looked: Sequence[LookedUp]) -> str:
    return shortened("; ".join(one.saw for one in looked), _SEEN)


def _line(word: str, source: str, draft: UnknownDraft) -> str:
    return f"[{word}: {' | '.join(map(_escaped, (source, draft.finding, draft.impact)))}]"


def _escaped(part: str) -> str:
    return "".join(_ESCAPES.get(sign, sign) for sign in part)


def _meant(part: str) -> str:
    return _ESCAPED.sub(lambda escape: _MEANT.get(escape[0], escape[0]), part)
