"""What a turn cost: by the user's own prices, else by the table of genai-prices, else unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from genai_prices import calc_price
from pydantic_ai.usage import RequestUsage

from proofstone.config.providers import ModelSettings

_TABLE_NAMES: Final[Mapping[str, str]] = {
    "openai-chat": "openai",
    "xai": "x-ai",
    "bedrock": "aws",
    "google-cloud": "google",
}


def compute_cost(usage: RequestUsage, provider: str, model: str, settings: ModelSettings) -> float | None:
    """Return the cost in US dollars, or None if it is unknown."""
    if usage.unmeasured_requests:
        return None
    if settings.input_usd is not None and settings.output_usd is not None:
        return _apply_prices(settings, usage, settings.input_usd, settings.output_usd)
    try:
        usd = float(calc_price(usage, model, provider_id=_TABLE_NAMES.get(provider, provider)).total_price)
    except (LookupError, ValueError, ArithmeticError):  # an unknown model, or counts that do not add up
        return None
    return usd if 0 <= usd < math.inf else None


def _apply_prices(settings: ModelSettings, usage: RequestUsage, input_usd: float, output_usd: float) -> float:
    fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
    read = input_usd if settings.cache_read_usd is None else settings.cache_read_usd
    write = input_usd if settings.cache_write_usd is None else settings.cache_write_usd
    total = (
        fresh * input_usd
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
        + usage.output_tokens * output_usd
    )
    return total / 1_000_000
