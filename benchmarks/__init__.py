"""Measurements that the README quotes. Each compares two ways within one run, so that the machine cancels out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    name: str
    value: float
    unit: str
    aim: str
    met: bool

    def __str__(self) -> str:
        word = "met" if self.met else "MISSED"
        return f"{self.name:<60} {self.value:>10.3f} {self.unit:<4} aim {self.aim:<10} {word}"
