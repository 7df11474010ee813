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


DOES: Final[dict[Layer, str]] = {
    Layer.FROZEN_TREE: "frozen tree: what is checked is a git tree that nothing can change afterwards",
    Layer.PROTECTED_FILES: "protected files: tests and what decides them come from the base unless they are declared",
    Layer.TEST_IDENTITY: "test identity: every test of the base is still there, executed and reported by the engine",
    Layer.CANARY: "canary: a test that must fail is among the tests, and fails",
    Layer.SENSITIVITY: "sensitivity: tests fail without the change's source, and when their expectation is changed",
    Layer.STATIC_SCAN: "static scan: added lines do not reach for the test runner, the exit code or equality itself",
    Layer.SANDBOX: "sandbox: no network, no writing outside, limits, and an environment that nobody tampered with",
    Layer.REVIEW: "independent review",
    Layer.HELD_OUT: "held-out checks: commands that whoever made the change never saw",
}
