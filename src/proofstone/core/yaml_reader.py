"""The one way in which YAML of others is read. Pure."""

from __future__ import annotations

from typing import Literal

from ruamel.yaml import YAML


def yaml_reader(kind: Literal["safe", "rt"] = "safe") -> YAML:
    """Return a reader that makes no objects but plain values, and says nothing on standard error.

    Without this, an anchor that is there twice, which YAML allows, is a warning of Python's.
    """
    reader = YAML(typ=kind, pure=True)
    reader.composer.warn_double_anchors = False
    return reader
