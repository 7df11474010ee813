"""Where runs are exported to when they end. The person's own file and environment alone say so: a repository that could
say it could have what a person does sent to a server of its own.

The environment is that of OpenTelemetry, which other programs share; the file is about Proofstone and goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field

from proofstone.config.component import Component
from proofstone.config.providers import Url

_DEFAULT_SECONDS: Final = 5
_PATH: Final = "/v1/traces"
_SPOKEN: Final = "http/protobuf"


class TelemetrySettings(Component):
    """Where runs go as OpenTelemetry traces when they end. Without it, and without OTEL_EXPORTER_OTLP_ENDPOINT in your
    environment, nowhere. This section counts in your own file only."""

    otlp_endpoint: Url | None = Field(
        default=None,
        description="A collector that takes OTLP over HTTP, such as `http://localhost:4318`; `/v1/traces` is added. "
        "Headers with keys are read from OTEL_EXPORTER_OTLP_HEADERS.",
    )
    seconds: int = Field(
        default=_DEFAULT_SECONDS,
        ge=1,
        le=60,
        strict=True,
        description="How long a run waits for the collector at its end. Nothing else depends on it.",
    )


@dataclass(frozen=True)
class Collector:
    """Somebody who takes traces."""

    url: str
    seconds: float = _DEFAULT_SECONDS
    said_in: str = ""
    """Where it is named."""
    ambient: bool = False
    """In the environment, where it need not be meant for Proofstone."""

    @property
    def host(self) -> str:
        """Without what may be secret in an address."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


@dataclass(frozen=True)
class Unusable:
    """A collector that is named, and cannot be reached so."""

    why: str


def traces_url(endpoint: str) -> str:
    """ValueError says what is wrong with it."""
    parts = urlsplit(endpoint)
    _ = parts.port  # raises if it is none
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{endpoint!r} is no http or https URL, such as http://localhost:4318")
    stem = endpoint.rstrip("/")
    return stem if stem.endswith(_PATH) else f"{stem}{_PATH}"


def collector(settings: TelemetrySettings, file: str, environ: Mapping[str, str]) -> Collector | Unusable | None:
    """Who gets the traces of runs; None: nobody."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    if settings.otlp_endpoint is not None:
        return Collector(traces_url(settings.otlp_endpoint), settings.seconds, file)
    return _of_environment(settings, environ)


def _of_environment(settings: TelemetrySettings, environ: Mapping[str, str]) -> Collector | Unusable | None:
    """The names of its variables are OpenTelemetry's; the one about traces goes before the one about everything."""
    for name, whole in (("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", True), ("OTEL_EXPORTER_OTLP_ENDPOINT", False)):
        endpoint = environ.get(name, "").strip()
        if not endpoint:
            continue
        try:
            url = traces_url(endpoint)
        except ValueError as error:
            return Unusable(f"{name}: {error}")
        if protocol := _other_protocol(environ):
            return Unusable(f"{name} is for {protocol}, and Proofstone speaks {_SPOKEN}")
        return Collector(endpoint if whole else url, settings.seconds, name, ambient=True)
    return None


def _other_protocol(environ: Mapping[str, str]) -> str:
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if said := environ.get(name, "").strip():
            return "" if said == _SPOKEN else said
    return ""
