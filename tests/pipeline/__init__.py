"""The whole pipeline, as decisions."""
