"""Proofstone puts the work of AI agents through proof."""

__version__ = "0.1.0"
