"""The ecosystems that discovery knows. To add one, write a module with an `Ecosystem` and add it to this list."""

from __future__ import annotations

from typing import Final

from proofstone.check.ecosystems.compiled import CMAKE, GO, MAKE, RUST
from proofstone.check.ecosystems.ecosystem import Ecosystem
from proofstone.check.ecosystems.managed import DOTNET, GRADLE, MAVEN
from proofstone.check.ecosystems.node import NODE
from proofstone.check.ecosystems.python import PYTHON
from proofstone.check.ecosystems.ruby import RUBY

ECOSYSTEMS: Final[tuple[Ecosystem, ...]] = (PYTHON, NODE, GO, RUST, MAVEN, GRADLE, DOTNET, RUBY, CMAKE)

__all__ = ["ECOSYSTEMS", "MAKE"]
