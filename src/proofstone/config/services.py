"""Settings of services that a user has configured: where runs are exported to, and who searches and fetches for agents.

They are read from the user's own file and environment only. A repository that could set them could have the user's
activity, queries and keys sent to a server of its own.

*Telemetry.* The environment variables are those of OpenTelemetry, which other programs share; the user's file is about
Proofstone alone and takes precedence.

*Web.* There is no web access unless it is configured here. Search and fetch are separate: each by HTTP, or by a tool of
one MCP server. A key is held by an environment variable, and the settings contain the name of that variable.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from proofstone.config.backends import SettingsModel
from proofstone.config.providers import Url
from proofstone.config.settings import VariableName

_DEFAULT_SECONDS: Final = 5
_TRACES_PATH: Final = "/v1/traces"
_SUPPORTED_PROTOCOL: Final = "http/protobuf"


class TelemetrySettings(SettingsModel):
    """Where runs are exported to as OpenTelemetry traces when they end. Without this section, and without
    OTEL_EXPORTER_OTLP_ENDPOINT in your environment, they are not exported. This section counts only in your own file.
    """

    otlp_endpoint: Url | None = Field(
        default=None,
        description="A collector that accepts OTLP over HTTP, such as `http://localhost:4318`; `/v1/traces` is added. "
        "Headers with keys are read from OTEL_EXPORTER_OTLP_HEADERS.",
    )
    seconds: int = Field(
        default=_DEFAULT_SECONDS,
        ge=1,
        le=60,
        strict=True,
        description="How long a run waits for the collector at its end.",
    )


@dataclass(frozen=True)
class TraceCollector:
    """A collector of traces."""

    url: str
    seconds: float = _DEFAULT_SECONDS
    source: str = ""
    """The file or variable that names it."""
    is_ambient: bool = False
    """Whether it comes from the environment, where it may be meant for other programs."""

    @property
    def host(self) -> str:
        """The host and port, without parts of the URL that may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


@dataclass(frozen=True)
class UnusableCollector:
    """A collector that is configured but cannot be used."""

    reason: str


def to_traces_url(endpoint: str) -> str:
    """Return the URL for traces. A `ValueError` says what is wrong with the endpoint."""
    parts = urlsplit(endpoint)
    _ = parts.port  # raises ValueError for an invalid port
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{endpoint!r} is not an http or https URL such as http://localhost:4318")
    stem = endpoint.rstrip("/")
    return stem if stem.endswith(_TRACES_PATH) else f"{stem}{_TRACES_PATH}"


def choose_collector(
    settings: TelemetrySettings, file: str, environ: Mapping[str, str]
) -> TraceCollector | UnusableCollector | None:
    """Return the collector for the traces of runs, or None if there is none."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    if settings.otlp_endpoint is not None:
        return TraceCollector(to_traces_url(settings.otlp_endpoint), settings.seconds, file)
    return _read_environment(settings, environ)


def _read_environment(
    settings: TelemetrySettings, environ: Mapping[str, str]
) -> TraceCollector | UnusableCollector | None:
    """Read OpenTelemetry's variables; the one for traces takes precedence over the general one."""
    for name, is_full_url in (("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", True), ("OTEL_EXPORTER_OTLP_ENDPOINT", False)):
        endpoint = environ.get(name, "").strip()
        if not endpoint:
            continue
        try:
            url = to_traces_url(endpoint)
        except ValueError as error:
            return UnusableCollector(f"{name}: {error}")
        if protocol := _find_unsupported_protocol(environ):
            return UnusableCollector(f"{name} is for {protocol}, but Proofstone supports only {_SUPPORTED_PROTOCOL}")
        return TraceCollector(endpoint if is_full_url else url, settings.seconds, name, is_ambient=True)
    return None


def _find_unsupported_protocol(environ: Mapping[str, str]) -> str:
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if protocol := environ.get(name, "").strip():
            return "" if protocol == _SUPPORTED_PROTOCOL else protocol
    return ""


FETCH_DIRECT: Final = "direct"
QUERY_PLACEHOLDER: Final = "{query}"
URL_PLACEHOLDER: Final = "{url}"
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_BEARER: Final = "Authorization: Bearer"


def _validate_template(written: str, placeholder: str) -> str:
    """Validate a URL with one placeholder, on a connection that nobody can intercept."""
    try:
        parts = urlsplit(written)
        host = parts.hostname or ""
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError as error:
        raise ValueError(f"{written!r} is not a URL: {error}") from error
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL_HOSTS):
        raise ValueError(f"{written!r} must begin with https:// (http:// only for localhost)")
    if not host or "@" in parts.netloc:
        raise ValueError("the URL must have a host and no user or password; put a key into a variable")
    if any(char.isspace() or not char.isprintable() for char in written) or "#" in written:
        raise ValueError(f"{written!r} contains a space or a `#`, which a server would not see")
    if written.count(placeholder) != 1 or "{" in parts.netloc or "{" in written.replace(placeholder, ""):
        raise ValueError(f"{written!r} must contain {placeholder} once, after the host, and no other braces")
    return written


def _validate_search_url(written: str) -> str:
    return _validate_template(written, QUERY_PLACEHOLDER) if written else written


def _validate_fetch_url(written: str) -> str:
    return _validate_template(written, URL_PLACEHOLDER) if written not in ("", FETCH_DIRECT) else written


def _validate_command_line(written: str) -> str:
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise ValueError(f"{written!r} cannot be split into words: {error}") from error
    if written and not words:
        raise ValueError("the command line names no program")
    return written


_Search = Annotated[
    str,
    Field(
        strict=True,
        max_length=2000,
        title=f"a URL with `{QUERY_PLACEHOLDER}`: `https://search.example/?format=json&q={QUERY_PLACEHOLDER}`",
    ),
    AfterValidator(_validate_search_url),
]
_Fetch = Annotated[
    str,
    Field(
        strict=True,
        max_length=2000,
        title=f"`{FETCH_DIRECT}`, or a URL with `{URL_PLACEHOLDER}`: `https://reader.example/{URL_PLACEHOLDER}`",
    ),
    AfterValidator(_validate_fetch_url),
]
_Header = Annotated[
    str,
    Field(
        strict=True,
        pattern=r"^[A-Za-z0-9-]+(: [A-Za-z0-9_-]+)?$",
        title=f"a header, and after a colon the word before the key: `X-Subscription-Token`, `{_BEARER}`",
    ),
]
_CommandLine = Annotated[
    str, Field(strict=True, pattern=r"^[^\x00\n]*$", title="a command line"), AfterValidator(_validate_command_line)
]
_ToolName = Annotated[str, Field(strict=True, pattern=r"^[^\s\x00]*$", max_length=200, title="the name of a tool")]


class WebSettings(SettingsModel):
    """Who searches and fetches from the web for agents. Without this section, agents have no web access. This section
    counts only in your own file.
    """

    search: _Search = Field(
        default="", description=f"The URL for searches, called by GET; `{QUERY_PLACEHOLDER}` is replaced by the query."
    )
    search_key: VariableName | None = Field(
        default=None, description="The environment variable that holds its key. None: no key is sent."
    )
    search_header: _Header = Field(default=_BEARER, description="The header for the key.")
    fetch: _Fetch = Field(
        default="",
        description=f"`{FETCH_DIRECT}`: fetch pages from this machine, from public addresses only. Or the URL "
        f"of a service "
        f"that fetches them, called by GET; `{URL_PLACEHOLDER}` is the page's address, encoded if it comes "
        f"after a `?`.",
    )
    fetch_key: VariableName | None = Field(
        default=None, description="The environment variable that holds the key of that service. None: no key is sent."
    )
    fetch_header: _Header = Field(default=_BEARER, description="The header for the key.")
    proxy: Url | None = Field(
        default=None,
        description="A proxy to reach these services; it is not used for direct fetches. The proxy variables of the "
        "environment are ignored.",
    )
    mcp: _CommandLine = Field(
        default="",
        description="An MCP server that searches or fetches instead, over its standard input and output. It is a "
        "program of yours and runs outside the sandbox.",
    )
    mcp_search: _ToolName = Field(default="", description="The server's tool for searches.")
    mcp_fetch: _ToolName = Field(default="", description="The server's tool for fetching a page.")
    mcp_pass: tuple[VariableName, ...] = Field(
        default=(), description="Environment variables that are passed to it, such as the one with its key."
    )

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The variables that hold keys."""
        return tuple(filter(None, (self.search_key, self.fetch_key, *self.mcp_pass)))

    def describe_service(self, what: Literal["search", "fetch"]) -> str:
        """Return a description of the service, or an empty string if there is none."""
        url, tool = (self.search, self.mcp_search) if what == "search" else (self.fetch, self.mcp_fetch)
        if tool:
            return f"{tool} of {shlex.split(self.mcp)[0]}"
        return url if url in ("", FETCH_DIRECT) else urlsplit(url).netloc

    @model_validator(mode="after")
    def _validate_combinations(self) -> WebSettings:
        set_fields = self.model_fields_set
        problems = (
            ("search and mcp_search both set the search service; keep one", self.search and self.mcp_search),
            ("fetch and mcp_fetch both set the fetch service; keep one", self.fetch and self.mcp_fetch),
            ("search_key is for `search`, which is not set", self.search_key and not self.search),
            (
                "fetch_key is for the service in `fetch`, which is not set",
                self.fetch_key and self.fetch in ("", FETCH_DIRECT),
            ),
            (
                "search_header is for the key in `search_key`, which is not set",
                "search_header" in set_fields and not self.search_key,
            ),
            (
                "fetch_header is for the key in `fetch_key`, which is not set",
                "fetch_header" in set_fields and not self.fetch_key,
            ),
            ("mcp is not set, but other mcp settings are", self._uses_mcp and not self.mcp),
            ("mcp needs mcp_search or mcp_fetch, the name of a tool", self.mcp and not self._has_tools),
        )
        for problem, is_wrong in problems:
            if is_wrong:
                raise ValueError(problem)
        return self

    @property
    def _has_tools(self) -> bool:
        return bool(self.mcp_search or self.mcp_fetch)

    @property
    def _uses_mcp(self) -> bool:
        return self._has_tools or bool(self.mcp_pass)
