"""The layers of evidence, by name. Each finding says which of them saw it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Layer(StrEnum):
    FROZEN_TREE = "L1"
    PROTECTED_FILES = "L2"
    TEST_IDENTITY = "L3"
    CANARY = "L4"
    SENSITIVITY = "L5"
    STATIC_SCAN = "L6"
    SANDBOX = "L7"
    REVIEW = "L8"
    HELD_OUT = "L9"


TITLES: Final[dict[Layer, str]] = {
    Layer.FROZEN_TREE: "frozen tree",
    Layer.PROTECTED_FILES: "protected files",
    Layer.TEST_IDENTITY: "test identity",
    Layer.CANARY: "canary",
    Layer.SENSITIVITY: "sensitivity",
    Layer.STATIC_SCAN: "static scan",
    Layer.SANDBOX: "sandbox and environment",
    Layer.REVIEW: "independent review",
    Layer.HELD_OUT: "held-out checks",
}
