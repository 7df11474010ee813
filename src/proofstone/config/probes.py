"""What `proofstone backends --probe` found out about models: how they give an answer, and whether they call tools.

The record is a file in the state folder. It holds measurements and no settings: a setting takes precedence over it, and
without it everything works as the table of `config.providers` says. A record that cannot be read counts as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from proofstone.config.home import find_proofstone_home
from proofstone.config.providers import AnswerMode, Provider

_FILE_NAME: Final = "probes.json"
_MAX_BYTES: Final = 1 << 20


class ProbeRecord(BaseModel):
    """What a probe found out about a model at an address."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    answer: AnswerMode
    """The first way of answering that worked."""
    calls_tools: bool | None = None
    """Whether it called a tool that it was told to call. None: this is not known."""
    probed_at: str = ""


_RECORDS: Final = TypeAdapter(dict[str, ProbeRecord])


def build_probe_key(provider: Provider, model: str) -> str:
    """Return the key of a model: another server at another address is another model."""
    return f"{provider.url or provider.wire} {model}"


def find_probe_file() -> Path:
    return find_proofstone_home() / _FILE_NAME


def read_probe_records(file: Path | None = None) -> Mapping[str, ProbeRecord]:
    """Return everything that was found out; nothing if there is no record or it cannot be read."""
    path = file or find_probe_file()
    try:
        content = path.read_bytes()
        return _RECORDS.validate_json(content) if len(content) <= _MAX_BYTES else {}
    except (OSError, ValidationError):
        return {}


def format_probe_records(records: Mapping[str, ProbeRecord]) -> str:
    """Return the content of the file."""
    return json.dumps({key: record.model_dump() for key, record in sorted(records.items())}, indent=1) + "\n"
