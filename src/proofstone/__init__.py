"""Proofstone puts the work of AI agents through proof."""

from __future__ import annotations

__version__ = "0.1.0"
