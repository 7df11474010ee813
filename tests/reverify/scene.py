"""The scope change of the seed: rate limiting comes to the login while somebody works on its handler."""

from __future__ import annotations

HANDLER = "src/auth/handler.py"
LIMITER = "src/auth/rate_limiter.py"
REQUIREMENT = "Rate limiting on auth endpoints"
ANSWER = (
    "Rate limiting requires adding middleware layer before auth handler. Original plan had auth handler as direct "
    "endpoint handler. New approach: auth handler delegates to rate limiter first. Affected files: src/auth/handler.py "
    "(original), src/auth/rate_limiter.py (NEW). Interface change: handler signature adds rate_config parameter."
)
"""What implementer-1 answers at T+14, word for word."""
