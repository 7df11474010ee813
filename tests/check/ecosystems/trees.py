"""Small trees as dictionaries, and what discovery says of them."""

from __future__ import annotations

from collections.abc import Mapping

from proofstone.check.discovery import Discovery, discover
from proofstone.check.models import CheckSpec

Files = Mapping[str, str | bytes]


def discovery_of(files: Files) -> Discovery:
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return discover(list(contents), contents.get)


def names_of(files: Files) -> set[str]:
    return {spec.name for spec in discovery_of(files).specs}


def spec_of(files: Files, name: str) -> CheckSpec:
    return {spec.name: spec for spec in discovery_of(files).specs}[name]
