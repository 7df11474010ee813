"""What agents may spend, and what they have."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from proofstone.contracts.base import Contract


class Allowance(Contract):
    """Limits of one run, role or task. None: no limit of this kind here."""

    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    requests: int | None = Field(default=None, ge=1)
    """Calls of a model."""
    tool_calls: int | None = Field(default=None, ge=1)
    minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """That agents are at work, one beside the other added up."""


class Budget(Contract):
    """Limits of a whole run, of each of its tasks, and of all dispatches of a role in it."""

    run: Allowance = Allowance()
    task: Allowance = Allowance()
    roles: Mapping[str, Allowance] = {}


class Spent(Contract):
    """What one run, role or task has used so far."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    usd: float = 0.0
    """As far as prices are known."""
    unpriced: int = 0
    """Requests whose price is not known: the cost is more than `usd` then."""
    tool_calls: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @classmethod
    def of_turn(cls, usage: Usage, seconds: float) -> Spent:
        return cls(
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            usd=usage.usd or 0.0,
            unpriced=usage.requests if usage.usd is None else 0,
            seconds=seconds,
        )

    def __add__(self, other: Spent) -> Spent:
        return Spent.model_construct(
            **{name: getattr(self, name) + getattr(other, name) for name in Spent.model_fields}
        )


class Usage(Contract):
    """What a turn, or several, have used."""

    requests: int = 0
    input_tokens: int = 0
    """All of them, those from a cache too."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = 0.0
    """None: the price of the model is not known."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        known = self.usd is not None and other.usd is not None
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            usd=(self.usd or 0.0) + (other.usd or 0.0) if known else None,
        )
