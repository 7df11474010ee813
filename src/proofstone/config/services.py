"""Where runs are exported to when they end. The person's own file and environment alone say so: a repository that could
say it could have what a person does sent to a server of its own.

The environment is that of OpenTelemetry, which other programs share; the file is about Proofstone and goes before it.

Who searches and fetches from the web for agents. The person's own file alone says so: a repository that could say it
could have queries, and the person's keys, sent to a server of its own.

Nobody does unless it is said here. Search and fetch are separate: each by HTTP, or by a tool of one MCP server. A key
stands in an environment variable, and what is written here is the name of that variable.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from proofstone.config.backends import Component
from proofstone.config.providers import Url
from proofstone.config.settings import VariableName

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


DIRECT: Final = "direct"
QUERY: Final = "{query}"
URL: Final = "{url}"
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_BEARER: Final = "Authorization: Bearer"


def _template(written: str, place: str) -> str:
    """An address with one place in it, where nobody on the way can read along."""
    try:
        parts = urlsplit(written)
        host = parts.hostname or ""
        _ = parts.port  # raises if it is none
    except ValueError as error:
        raise ValueError(f"{written!r} is no URL: {error}") from error
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _HERE):
        raise ValueError(f"{written!r} must begin with https:// (http:// only for localhost)")
    if not host or "@" in parts.netloc:
        raise ValueError("it must name a host, and no user or password: a key belongs into a variable")
    if any(letter.isspace() or not letter.isprintable() for letter in written) or "#" in written:
        raise ValueError(f"{written!r} holds a space or a `#`, which no server would see")
    if written.count(place) != 1 or "{" in parts.netloc or "{" in written.replace(place, ""):
        raise ValueError(f"{written!r} must hold {place} once, behind the host, and no other braces")
    return written


def _search_template(written: str) -> str:
    return _template(written, QUERY) if written else written


def _fetch_template(written: str) -> str:
    return _template(written, URL) if written not in ("", DIRECT) else written


def _command_line(written: str) -> str:
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise ValueError(f"{written!r} cannot be split into words: {error}") from error
    if written and not words:
        raise ValueError("it names no program")
    return written


_Search = Annotated[
    str,
    Field(strict=True, max_length=2000, title=f"a URL with `{QUERY}`: `https://search.example/?format=json&q={QUERY}`"),
    AfterValidator(_search_template),
]
_Fetch = Annotated[
    str,
    Field(strict=True, max_length=2000, title=f"`{DIRECT}`, or a URL with `{URL}`: `https://reader.example/{URL}`"),
    AfterValidator(_fetch_template),
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
    str, Field(strict=True, pattern=r"^[^\x00\n]*$", title="a command line"), AfterValidator(_command_line)
]
_ToolName = Annotated[str, Field(strict=True, pattern=r"^[^\s\x00]*$", max_length=200, title="the name of a tool")]


class WebSettings(Component):
    """Who searches and fetches from the web for agents. Without it, nobody does. This section counts in your own file
    only."""

    search: _Search = Field(
        default="", description=f"Where a search is asked for, by GET; `{QUERY}` is what is searched for."
    )
    search_key: VariableName | None = Field(
        default=None, description="The environment variable that holds the key for it. None: no key is sent."
    )
    search_header: _Header = Field(default=_BEARER, description="The header that the key goes into.")
    fetch: _Fetch = Field(
        default="",
        description=f"`{DIRECT}`: pages are fetched from here, from public addresses only. Or the service that does, "
        f"by GET; `{URL}` is the page's address, encoded where it stands behind a `?`.",
    )
    fetch_key: VariableName | None = Field(
        default=None, description="The environment variable that holds the key for that service. None: no key is sent."
    )
    fetch_header: _Header = Field(default=_BEARER, description="The header that the key goes into.")
    proxy: Url | None = Field(
        default=None,
        description="A proxy on the way to these services; not for direct fetches. The proxy variables of the "
        "environment are not followed.",
    )
    mcp: _CommandLine = Field(
        default="",
        description="An MCP server that searches or fetches instead, spoken to over its standard input and output. It "
        "is a program of yours and runs outside of the sandbox.",
    )
    mcp_search: _ToolName = Field(default="", description="Its tool that searches.")
    mcp_fetch: _ToolName = Field(default="", description="Its tool that fetches a page.")
    mcp_pass: tuple[VariableName, ...] = Field(
        default=(), description="Variables of your environment that it gets, such as the one with its key."
    )

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables that hold keys."""
        return tuple(filter(None, (self.search_key, self.fetch_key, *self.mcp_pass)))

    def served_by(self, what: Literal["search", "fetch"]) -> str:
        """Who does it, in words for a person; empty: nobody."""
        url, tool = (self.search, self.mcp_search) if what == "search" else (self.fetch, self.mcp_fetch)
        if tool:
            return f"{tool} of {shlex.split(self.mcp)[0]}"
        return url if url in ("", DIRECT) else urlsplit(url).netloc

    @model_validator(mode="after")
    def _fits_together(self) -> WebSettings:
        own = self.model_fields_set
        problems = (
            ("search and mcp_search are two who search: keep one", self.search and self.mcp_search),
            ("fetch and mcp_fetch are two who fetch: keep one", self.fetch and self.mcp_fetch),
            ("search_key is for `search`, which is not set", self.search_key and not self.search),
            (
                "fetch_key is for the service in `fetch`, which names none",
                self.fetch_key and self.fetch in ("", DIRECT),
            ),
            (
                "search_header is for the key in `search_key`, which is not set",
                "search_header" in own and not self.search_key,
            ),
            (
                "fetch_header is for the key in `fetch_key`, which is not set",
                "fetch_header" in own and not self.fetch_key,
            ),
            ("mcp is not set, but what it shall do is", self._of_mcp and not self.mcp),
            ("mcp needs mcp_search or mcp_fetch: the name of its tool", self.mcp and not self._tools),
        )
        for why, wrong in problems:
            if wrong:
                raise ValueError(why)
        return self

    @property
    def _tools(self) -> bool:
        return bool(self.mcp_search or self.mcp_fetch)

    @property
    def _of_mcp(self) -> bool:
        return self._tools or bool(self.mcp_pass)
