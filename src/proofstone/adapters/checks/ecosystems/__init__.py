"""The ecosystems that discovery knows. A new one is a module with an `Ecosystem` and a place in this list."""

from __future__ import annotations

from typing import Final

from proofstone.adapters.checks.ecosystems.compiled import GO, RUST
from proofstone.adapters.checks.ecosystems.dotnet import DOTNET
from proofstone.adapters.checks.ecosystems.jvm import GRADLE, MAVEN
from proofstone.adapters.checks.ecosystems.native import CMAKE, MAKE
from proofstone.adapters.checks.ecosystems.node import NODE
from proofstone.adapters.checks.ecosystems.python import PYTHON
from proofstone.adapters.checks.ecosystems.ruby import RUBY
from proofstone.adapters.checks.ecosystems.rule import Ecosystem

ECOSYSTEMS: Final[tuple[Ecosystem, ...]] = (PYTHON, NODE, GO, RUST, MAVEN, GRADLE, DOTNET, RUBY, CMAKE)

__all__ = ["ECOSYSTEMS", "MAKE"]
