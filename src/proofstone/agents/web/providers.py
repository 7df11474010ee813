"""Choose the web providers that the person has configured in their own settings. By default there are none.

`SearchWeb` and `FetchPage` are the interfaces of a provider; `build_web` chooses the implementations: `http.py` or an
MCP
server, `mcp.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from proofstone.agents.web.pages import WebPage, format_results
from proofstone.config.services import FETCH_DIRECT, WebSettings
from proofstone.errors import ConfigError

if TYPE_CHECKING:
    from proofstone.agents.web.http import ServiceKey
    from proofstone.agents.web.mcp import McpServer


class SearchWeb(Protocol):
    """Searches the web and returns the results as blocks (see `pages.py`). Raises `ToolFailedError` if that fails and
    `ToolRefusedError` if it is not allowed, both with a text for the agent and without any key."""

    def __call__(self, wanted: str, seconds: float, cancel: threading.Event) -> str: ...


class FetchPage(Protocol):
    """Fetches the page of an address. Raises the same errors as a search."""

    def __call__(self, wanted: str, seconds: float, cancel: threading.Event) -> WebPage: ...


@dataclass(frozen=True)
class WebProviders:
    search: SearchWeb | None = None
    fetch: FetchPage | None = None
    close: Callable[[], None] = lambda: None
    """Ends the program of the provider, if there is one."""


def build_web(settings: WebSettings, environ: Mapping[str, str]) -> WebProviders | None:
    """Return the configured providers, not started yet, or None if there are none. The caller must close them."""
    for variable in settings.key_variables:
        if not environ.get(variable, "").strip():
            raise ConfigError(
                f"[web] names the variable {variable}, which is not set",
                hint=f"export {variable}=…, or remove it from [web] in your own settings",
            )
    if settings.mcp:
        return _build_mcp_web(settings, environ)
    if settings.search or settings.fetch:
        return WebProviders(_http_search(settings, environ), _http_fetch(settings, environ))
    return None


def describe_web(settings: WebSettings) -> str:
    """Describe the providers in one line for a person."""
    search, fetch = settings.describe_service("search"), settings.describe_service("fetch")
    if not search and not fetch:
        return "no web search is configured: [web] in your own proofstone.toml says who searches and fetches"
    providers = f"web search: {search or 'nobody'}; web fetch: {fetch or 'nobody'}"
    return f"{providers} ([web] in your own proofstone.toml)"


def _build_mcp_web(settings: WebSettings, environ: Mapping[str, str]) -> WebProviders:
    from proofstone.agents.web.mcp import McpServer

    server = McpServer(settings.mcp, environ, settings.mcp_pass)
    search = _mcp_search(server, settings.mcp_search) if settings.mcp_search else None
    fetch = _mcp_fetch(server, settings.mcp_fetch) if settings.mcp_fetch else None
    return WebProviders(
        search or _http_search(settings, environ), fetch or _http_fetch(settings, environ), close=server.close
    )


def _mcp_search(server: McpServer, tool: str) -> SearchWeb:
    from proofstone.agents.web.mcp import SEARCH_ARGUMENTS

    def search(wanted: str, seconds: float, cancel: threading.Event) -> str:
        return format_results(server.call(tool, SEARCH_ARGUMENTS, wanted, seconds, cancel))

    return search


def _mcp_fetch(server: McpServer, tool: str) -> FetchPage:
    from proofstone.agents.web.http import check_page_address
    from proofstone.agents.web.mcp import FETCH_ARGUMENTS

    def fetch(wanted: str, seconds: float, cancel: threading.Event) -> WebPage:
        end = time.monotonic() + seconds
        page = check_page_address(wanted, seconds, cancel)
        return WebPage((page,), server.call(tool, FETCH_ARGUMENTS, page, end - time.monotonic(), cancel))

    return fetch


def _http_search(settings: WebSettings, environ: Mapping[str, str]) -> SearchWeb | None:
    from proofstone.agents.web.http import WebService

    if not settings.search:
        return None
    return WebService(
        settings.search, _read_key(settings.search_header, settings.search_key, environ), settings.proxy
    ).search


def _http_fetch(settings: WebSettings, environ: Mapping[str, str]) -> FetchPage | None:
    from proofstone.agents.web.http import DirectFetch, WebService

    if settings.fetch == FETCH_DIRECT:
        return DirectFetch()
    if not settings.fetch:
        return None
    return WebService(
        settings.fetch, _read_key(settings.fetch_header, settings.fetch_key, environ), settings.proxy
    ).fetch


def _read_key(header: str, variable: str | None, environ: Mapping[str, str]) -> ServiceKey | None:
    from proofstone.agents.web.http import ServiceKey

    if variable is None:
        return None
    value = environ[variable].strip()
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(
            f"the key in {variable} contains characters that a header cannot", hint=f"export {variable} again"
        )
    return ServiceKey(header, value)
