"""What a provider's errors mean to us: a kind, and words that tell a person what to do. The key is never in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import httpx2
from pydantic_ai import exceptions as theirs

from proofstone.agents.backends.api.choice import Choice
from proofstone.agents.backends.api.providers import TooLargeError
from proofstone.agents.models import Fault, FaultKind
from proofstone.common.models import Usage

_MOST = 500
_SHORTEST_KEY = 6
"""A shorter one is no key but a placeholder, and its letters are in every word."""

PEER_ERRORS: Final = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    RuntimeError,  # pydantic-ai's own are among them
    # What the libraries trip over when an answer is not of the protocol.
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Everything that asking a model may raise. Only the asking itself stands under it."""

_IF_ALWAYS: Final = "wait, or set `stream = false` for the model if it always does"

# The first that fits.
_TABLE: Final[tuple[tuple[type[Exception], FaultKind, str, str], ...]] = (
    (TooLargeError, FaultKind.REJECTED, "says too much", "ask for less or use another model"),
    (theirs.ContentFilterError, FaultKind.FILTERED, "withheld the answer", "word the task differently or use another"),
    (theirs.ModelQuotaExceededError, FaultKind.DENIED, "has no quota or credit left", "top up the account"),
    (theirs.ModelRateLimitError, FaultKind.UNAVAILABLE, "limits the rate", "wait, or ask less at the same time"),
    (theirs.ModelOverloadedError, FaultKind.UNAVAILABLE, "is overloaded", "wait, or use another model"),
    (theirs.ModelUnavailableError, FaultKind.UNAVAILABLE, "is not available", "wait, or use another model"),
    (theirs.ModelServerError, FaultKind.UNAVAILABLE, "failed on its own side", "wait, or use another model"),
    (theirs.ModelTimeoutError, FaultKind.UNAVAILABLE, "fell silent", "wait, or use another model"),
    (theirs.ModelConnectionError, FaultKind.UNAVAILABLE, "cannot be reached", "check `url` and the network"),
    (
        theirs.ModelContextWindowExceededError,
        FaultKind.REJECTED,
        "does not take so long a conversation",
        "give it less to read, or use a model with a larger window",
    ),
    (theirs.ModelAuthenticationError, FaultKind.DENIED, "does not let us in", "check the key and what it allows"),
    (theirs.ModelNotFoundError, FaultKind.DENIED, "is not known there", "check the name of the model and `url`"),
    (theirs.ModelRequestRejectedError, FaultKind.REJECTED, "does not take the request", "see what it says"),
    (theirs.ModelHTTPError, FaultKind.REJECTED, "does not take the request", "see what it says, and check `url`"),
    (theirs.ModelAPIError, FaultKind.UNAVAILABLE, "broke off", _IF_ALWAYS),
    (theirs.UserError, FaultKind.REJECTED, "cannot be asked this way", "use another model"),
    (httpx2.InvalidURL, FaultKind.REJECTED, "has no valid address", "check `url`"),
    (httpx2.HTTPError, FaultKind.UNAVAILABLE, "broke off", "check `url` and the network"),
    (httpx2.StreamError, FaultKind.UNAVAILABLE, "broke off", "check the network"),
    (Exception, FaultKind.UNAVAILABLE, "gave an answer that is not of its protocol", "check `wire` and `url`"),
)


_REFUSED_AT_ONCE: Final = Usage(requests=1)
"""Nobody charges for a call that they did not take."""
COST_UNKNOWN: Final = Usage(requests=1, usd=None)
"""It was cut short: what was said until then may have to be paid."""


def fault(error: Exception, choice: Choice) -> Fault:
    error = next((cause for cause in _and_causes(error) if isinstance(cause, TooLargeError)), error)
    kind, what, remedy = next(row[1:] for row in _TABLE if isinstance(error, row[0]))
    if isinstance(error, theirs.ModelAuthenticationError) and choice.provider.key_variable:
        remedy = f"check the key in `{choice.provider.key_variable}` and what it allows"
    status = f" (HTTP {error.status_code})" if isinstance(error, theirs.ModelHTTPError) else ""
    said = _bounded(_without_key(_said(error), choice.key))
    why = f"{choice.name} {what}{status}: {said}; {remedy}"
    usage = COST_UNKNOWN if isinstance(error, TooLargeError) else _REFUSED_AT_ONCE
    return Fault(kind=kind, why=why, retry_after=getattr(error, "retry_after", None), usage=usage)


def filtered(choice: Choice, details: Mapping[str, object] | None) -> Fault:
    reason = (details or {}).get("finish_reason") or "no reason given"
    why = f"{choice.name} withheld the answer ({_bounded(str(reason))}); word the task differently or use another model"
    return Fault(kind=FaultKind.FILTERED, why=why)


def broken_off(choice: Choice) -> Fault:
    why = f"{choice.name} ended its answer without saying that it is complete; {_IF_ALWAYS}"
    return Fault(kind=FaultKind.UNAVAILABLE, why=why)


def late(choice: Choice, seconds: float | None) -> Fault:
    why = f"{choice.name} did not answer within {seconds:g} s; allow more time or ask for less"
    return Fault(kind=FaultKind.TIMEOUT, why=why, usage=COST_UNKNOWN)


def _and_causes(error: Exception) -> Iterator[Exception]:
    """The SDKs wrap whatever goes wrong while they read."""
    at: BaseException | None = error
    while isinstance(at, Exception):
        yield at
        at = at.__cause__ or at.__context__


def _said(error: Exception) -> str:
    """The provider's own words, out of whatever it wrapped them in."""
    body = getattr(error, "body", None)
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or str(dict(body))
    return str(body or error) or type(error).__name__


def _without_key(text: str, key: str | None) -> str:
    return text.replace(key, "…") if key and len(key) >= _SHORTEST_KEY else text


def _bounded(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _MOST else f"{line[: _MOST - 1]}…"
