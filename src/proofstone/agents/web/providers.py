"""Choose the web providers that the person has configured in their own settings. By default there are none.

`Searching` and `Fetching` are the interfaces of a provider; `web_from` chooses the implementations: `http.py` or an MCP
server, `mcp.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from proofstone.agents.web.pages import Page, results_in
from proofstone.config.services import DIRECT, WebSettings
from proofstone.errors import ConfigError

if TYPE_CHECKING:
    from proofstone.agents.web.http import Key
    from proofstone.agents.web.mcp import McpServer


class Searching(Protocol):
    """Searches the web and returns the results as blocks (see `pages.py`). Raises `FailedError` if that fails and
    `RefusedError` if it is not allowed, both with a text for the agent and without any key."""

    def __call__(self, wanted: str, seconds: float, cancel: threading.Event) -> str: ...


class Fetching(Protocol):
    """Fetches the page of an address. Raises the same errors as a search."""

    def __call__(self, wanted: str, seconds: float, cancel: threading.Event) -> Page: ...


@dataclass(frozen=True)
class Web:
    search: Searching | None = None
    fetch: Fetching | None = None
    close: Callable[[], None] = lambda: None
    """Ends the program of the provider, if there is one."""


def web_from(settings: WebSettings, environ: Mapping[str, str]) -> Web | None:
    """Return the configured providers, not started yet, or None if there are none. The caller must close them."""
    for variable in settings.keys:
        if not environ.get(variable, "").strip():
            raise ConfigError(
                f"[web] names the variable {variable}, which is not set",
                hint=f"export {variable}=…, or remove it from [web] in your own settings",
            )
    if settings.mcp:
        return _build_mcp_web(settings, environ)
    if settings.search or settings.fetch:
        return Web(_http_search(settings, environ), _http_fetch(settings, environ))
    return None


def web_in_words(settings: WebSettings) -> str:
    """Describe the providers in one line for a person."""
    search, fetch = settings.served_by("search"), settings.served_by("fetch")
    if not search and not fetch:
        return "no web search is configured: [web] in your own proofstone.toml says who searches and fetches"
    providers = f"web search: {search or 'nobody'}; web fetch: {fetch or 'nobody'}"
    return f"{providers} ([web] in your own proofstone.toml)"


def _build_mcp_web(settings: WebSettings, environ: Mapping[str, str]) -> Web:
    from proofstone.agents.web.mcp import McpServer

    server = McpServer(settings.mcp, environ, settings.mcp_pass)
    search = _mcp_search(server, settings.mcp_search) if settings.mcp_search else None
    fetch = _mcp_fetch(server, settings.mcp_fetch) if settings.mcp_fetch else None
    return Web(search or _http_search(settings, environ), fetch or _http_fetch(settings, environ), close=server.close)


def _mcp_search(server: McpServer, tool: str) -> Searching:
    from proofstone.agents.web.mcp import SEARCHING

    def search(wanted: str, seconds: float, cancel: threading.Event) -> str:
        return results_in(server.call(tool, SEARCHING, wanted, seconds, cancel))

    return search


def _mcp_fetch(server: McpServer, tool: str) -> Fetching:
    from proofstone.agents.web.http import page_for_others
    from proofstone.agents.web.mcp import FETCHING

    def fetch(wanted: str, seconds: float, cancel: threading.Event) -> Page:
        end = time.monotonic() + seconds
        page = page_for_others(wanted, seconds, cancel)
        return Page((page,), server.call(tool, FETCHING, page, end - time.monotonic(), cancel))

    return fetch


def _http_search(settings: WebSettings, environ: Mapping[str, str]) -> Searching | None:
    from proofstone.agents.web.http import Service

    if not settings.search:
        return None
    return Service(
        settings.search, _read_key(settings.search_header, settings.search_key, environ), settings.proxy
    ).search


def _http_fetch(settings: WebSettings, environ: Mapping[str, str]) -> Fetching | None:
    from proofstone.agents.web.http import DirectFetch, Service

    if settings.fetch == DIRECT:
        return DirectFetch()
    if not settings.fetch:
        return None
    return Service(settings.fetch, _read_key(settings.fetch_header, settings.fetch_key, environ), settings.proxy).fetch


def _read_key(header: str, variable: str | None, environ: Mapping[str, str]) -> Key | None:
    from proofstone.agents.web.http import Key

    if variable is None:
        return None
    value = environ[variable].strip()
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(
            f"the key in {variable} contains characters that a header cannot", hint=f"export {variable} again"
        )
    return Key(header, value)
