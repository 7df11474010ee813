"""The ecosystems that discovery knows. A new one is a module with an `Ecosystem` and a place in this list."""

from __future__ import annotations

from typing import Final

from assay.adapters.checks.ecosystems.compiled import GO, RUST
from assay.adapters.checks.ecosystems.dotnet import DOTNET
from assay.adapters.checks.ecosystems.jvm import GRADLE, MAVEN
from assay.adapters.checks.ecosystems.native import CMAKE, MAKE
from assay.adapters.checks.ecosystems.node import NODE
from assay.adapters.checks.ecosystems.python import PYTHON
from assay.adapters.checks.ecosystems.ruby import RUBY
from assay.adapters.checks.ecosystems.rule import Ecosystem

ECOSYSTEMS: Final[tuple[Ecosystem, ...]] = (PYTHON, NODE, GO, RUST, MAVEN, GRADLE, DOTNET, RUBY, CMAKE)

__all__ = ["ECOSYSTEMS", "MAKE"]
