"""Translate a provider's errors into faults: a kind, and a message that says what to do. It never contains the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import httpx2
from pydantic_ai import exceptions as theirs

from proofstone.agents.backends.api.model_choice import ModelChoice
from proofstone.agents.backends.api.providers import AnswerTooLargeError
from proofstone.agents.models import Fault, FaultKind
from proofstone.common.models import Usage

_MAX_CHARS = 500
_MIN_KEY_CHARS = 6
"""A shorter value is a placeholder, not a key, and its letters would be found in every word."""

PEER_ERRORS: Final = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    RuntimeError,  # the base of pydantic-ai's own errors
    # The libraries raise these when an answer does not follow the protocol.
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Everything that a request to a model may raise. Only the request itself is guarded by it."""

_STREAM_REMEDY: Final = "wait or, if this always happens, set `stream = false` for the model"

# The first row that matches applies.
_TABLE: Final[tuple[tuple[type[Exception], FaultKind, str, str], ...]] = (
    (AnswerTooLargeError, FaultKind.REJECTED, "sent too much", "ask for less or use another model"),
    (theirs.ContentFilterError, FaultKind.FILTERED, "withheld the answer", "reword the task or use another model"),
    (theirs.ModelQuotaExceededError, FaultKind.DENIED, "has no quota or credit left", "top up the account"),
    (theirs.ModelRateLimitError, FaultKind.UNAVAILABLE, "limits the rate", "wait, or send fewer requests at once"),
    (theirs.ModelOverloadedError, FaultKind.UNAVAILABLE, "is overloaded", "wait, or use another model"),
    (theirs.ModelUnavailableError, FaultKind.UNAVAILABLE, "is not available", "wait, or use another model"),
    (theirs.ModelServerError, FaultKind.UNAVAILABLE, "had a server error", "wait, or use another model"),
    (theirs.ModelTimeoutError, FaultKind.UNAVAILABLE, "stopped responding", "wait, or use another model"),
    (theirs.ModelConnectionError, FaultKind.UNAVAILABLE, "cannot be reached", "check `url` and the network"),
    (
        theirs.ModelContextWindowExceededError,
        FaultKind.REJECTED,
        "does not accept such a long conversation",
        "give it less to read, or use a model with a larger window",
    ),
    (theirs.ModelAuthenticationError, FaultKind.DENIED, "denied access", "check the key and its permissions"),
    (theirs.ModelNotFoundError, FaultKind.DENIED, "does not exist there", "check the name of the model and `url`"),
    (theirs.ModelRequestRejectedError, FaultKind.REJECTED, "rejected the request", "see its message"),
    (theirs.ModelHTTPError, FaultKind.REJECTED, "rejected the request", "see its message, and check `url`"),
    (theirs.ModelAPIError, FaultKind.UNAVAILABLE, "broke off", _STREAM_REMEDY),
    (theirs.UserError, FaultKind.REJECTED, "cannot be used this way", "use another model"),
    (httpx2.InvalidURL, FaultKind.REJECTED, "has no valid address", "check `url`"),
    (httpx2.HTTPError, FaultKind.UNAVAILABLE, "broke off", "check `url` and the network"),
    (httpx2.StreamError, FaultKind.UNAVAILABLE, "broke off", "check the network"),
    (Exception, FaultKind.UNAVAILABLE, "sent an answer that does not follow its protocol", "check `wire` and `url`"),
)


_NOT_CHARGED: Final = Usage(requests=1)
"""A refused request is not charged."""
COST_UNKNOWN: Final = Usage(requests=1, usd=None)
"""The answer was cut short: what was sent until then may have to be paid."""


def build_fault(error: Exception, choice: ModelChoice) -> Fault:
    """Return the fault for an error that a request raised."""
    error = next((cause for cause in _walk_causes(error) if isinstance(cause, AnswerTooLargeError)), error)
    kind, what, remedy = next(row[1:] for row in _TABLE if isinstance(error, row[0]))
    if isinstance(error, theirs.ModelAuthenticationError) and choice.provider.key_variable:
        remedy = f"check the key in `{choice.provider.key_variable}` and its permissions"
    status = f" (HTTP {error.status_code})" if isinstance(error, theirs.ModelHTTPError) else ""
    message = _shorten(_hide_key(_extract_message(error), choice.key))
    why = f"{choice.name} {what}{status}: {message}; {remedy}"
    usage = COST_UNKNOWN if isinstance(error, AnswerTooLargeError) else _NOT_CHARGED
    return Fault(kind=kind, why=why, retry_after=getattr(error, "retry_after", None), usage=usage)


def build_filtered_fault(choice: ModelChoice, details: Mapping[str, object] | None) -> Fault:
    reason = (details or {}).get("finish_reason") or "no reason given"
    why = f"{choice.name} withheld the answer ({_shorten(str(reason))}); reword the task or use another model"
    return Fault(kind=FaultKind.FILTERED, why=why)


def build_incomplete_fault(choice: ModelChoice) -> Fault:
    why = f"{choice.name} ended its answer without marking it complete; {_STREAM_REMEDY}"
    return Fault(kind=FaultKind.UNAVAILABLE, why=why)


def build_timeout_fault(choice: ModelChoice, seconds: float | None) -> Fault:
    why = f"{choice.name} did not answer within {seconds:g} s; allow more time or ask for less"
    return Fault(kind=FaultKind.TIMEOUT, why=why, usage=COST_UNKNOWN)


def build_silence_fault(choice: ModelChoice, has_begun: bool, seconds: float) -> Fault:
    """Return the fault for a model that sent nothing for too long, before its answer or within it."""
    what = "sent nothing more in the middle of its answer" if has_begun else "did not begin its answer"
    setting = "pause_seconds" if has_begun else "first_seconds"
    why = f"{choice.name} {what} for {seconds:g} s; allow more with `{setting}` of the model, or ask for less"
    return Fault(kind=FaultKind.TIMEOUT, why=why, usage=COST_UNKNOWN)


def _walk_causes(error: Exception) -> Iterator[Exception]:
    """Yield the error and its causes: the SDKs wrap whatever goes wrong while they read."""
    current: BaseException | None = error
    while isinstance(current, Exception):
        yield current
        current = current.__cause__ or current.__context__


def _extract_message(error: Exception) -> str:
    """Return the provider's own message, without its wrappers."""
    body = getattr(error, "body", None)
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or str(dict(body))
    return str(body or error) or type(error).__name__


def _hide_key(text: str, key: str | None) -> str:
    return text.replace(key, "…") if key and len(key) >= _MIN_KEY_CHARS else text


def _shorten(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1]}…"
