"""Exported definitions, read as whoever is given them reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ruamel.yaml import YAML

from proofstone.export import targets
from proofstone.export.prompts import Host
from proofstone.export.targets import EXPORT_TARGETS

Files = Mapping[str, str]

HOSTS: Mapping[str, Host] = {
    "copilot": targets.COPILOT_HOST,
    "claude": targets.CLAUDE_HOST,
    "generic": targets.GENERIC_HOST,
}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@cache
def exported(kind: str) -> dict[str, str]:
    return EXPORT_TARGETS[kind].build_files()


def agent_pages(host: Host, files: Files) -> dict[str, str]:
    """The pages of agents, by name: all that lie where agents lie, without the references."""
    found = {}
    for path, text in files.items():
        name = path.removeprefix(f"{host.agents}/").removesuffix(host.suffix)
        if path == host.agent_path(name) and "**Type:** Agent definition" in text:
            found[name] = text
    return found


def reference(host: Host, files: Files, topic: str) -> str:
    return files[f"{host.references}/{topic}.md"]


def section(text: str, heading: str) -> str:
    """What stands below a heading of the second level; nothing if there is none. Fences hold no headings."""
    blanked = _FENCE.sub(lambda fence: re.sub("(?m)^#", " ", fence[0]), text)
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", blanked, re.MULTILINE | re.DOTALL)
    return text[found.start(1) : found.end(1)].strip() if found else ""


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", _FENCE.sub("", text), re.MULTILINE)


def fences(text: str, language: str) -> list[str]:
    return [body for kind, body in _FENCE.findall(text) if kind == language]


def front_matter(text: str) -> dict[str, Any]:
    if not text.startswith("---\n"):
        return {}
    found: dict[str, Any] = parsed(text[4 : text.index("\n---\n", 4) + 1])
    return found


def parsed(text: str) -> Any:  # noqa: ANN401  whatever the YAML holds
    return YAML(typ="safe", pure=True).load(text)


def flowing(text: str) -> str:
    """Without its line breaks."""
    return " ".join(text.split())


def sentences(text: str) -> Iterator[str]:
    yield from re.split(r"(?<=[.:;])\s+|\n\s*\n|\n(?=[-|\d])", text)
