"""Who looks at the web is what the person's own settings say, and nobody without them."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.rules.tool_rules import ToolRefusedError
from proofstone.agents.web.pages import WebPage
from proofstone.agents.web.providers import WebProviders, build_web, describe_web
from proofstone.config.loader import load_settings_text
from proofstone.config.services import WebSettings
from proofstone.config.trust import check_consent, explain_permission, list_requested_permissions
from proofstone.config.user import UserConfig, UserSettings, load_user_config
from proofstone.errors import ConfigError
from tests.agents.web.site import Reply, Site
from tests.rows import each_row

SEARCH = "https://search.example/?q={query}"
FETCH = "https://reader.example/{url}"


PAGE = "https://93.184.216.34/a"
"""An address that is looked up nowhere."""


def search(web: WebProviders | None, wanted: str) -> str:
    assert web is not None and web.search is not None
    return web.search(wanted, 20, threading.Event())


def fetch(web: WebProviders | None, wanted: str) -> WebPage:
    assert web is not None and web.fetch is not None
    return web.fetch(wanted, 20, threading.Event())


@each_row(
    "table",
    [
        {},
        {"search": SEARCH},
        {"search": "http://localhost:8080/search?format=json&q={query}"},
        {"search": "http://[::1]:8080/search?q={query}"},
        {"search": SEARCH, "search_key": "SEARCH_KEY", "search_header": "X-Subscription-Token"},
        {"search": SEARCH, "search_key": "SEARCH_KEY", "search_header": "Authorization: Token"},
        {"fetch": "direct"},
        {"fetch": FETCH, "fetch_key": "READER_KEY"},
        {"mcp": "npx -y some-server", "mcp_search": "search", "mcp_pass": ["SOME_KEY"]},
        {"mcp": "some-server", "mcp_search": "search", "fetch": "direct"},
        {"search": SEARCH, "proxy": "http://proxy.example:3128"},
    ],
)
def test_these_settings_are_right(table: dict[str, Any]) -> None:
    WebSettings.model_validate(table)


WRONG: list[tuple[str, str]] = [
    ('search = "http://search.example/?q={query}"', "must begin with https://"),
    ('search = "ftp://search.example/?q={query}"', "must begin with https://"),
    ('search = "search.example"', "must begin with https://"),
    ('search = "https://search.example/"', "must contain {query} once"),
    ('search = "https://search.example/?q={query}&r={query}"', "must contain {query} once"),
    ('search = "https://{query}.example/"', "must contain {query} once, after the host"),
    ('search = "https://search.example/{url}?q={query}"', "no other braces"),
    ('search = "https://me:word@search.example/?q={query}"', "no user or password"),
    ('search = "https://search.example/?q={query} #"', "a space or a `#`"),
    ('search = "https://search.example:port/?q={query}"', "is not a URL"),
    ("search = 3", "it takes a URL with `{query}`"),
    ('fetch = "https://reader.example/"', "must contain {url} once"),
    ('fetch = "yes"', "must begin with https://"),
    (f'search = "{SEARCH}"\nsearch_key = "not a name"', "the name of an environment variable"),
    (f'search = "{SEARCH}"\nsearch_key = "K"\nsearch_header = "X: a b"', "it takes a header"),
    (f'search = "{SEARCH}"\nsearch_header = "X-Token"', "search_header is for the key"),
    ('search_key = "K"', "search_key is for `search`"),
    ('fetch = "direct"\nfetch_key = "K"', "fetch_key is for the service"),
    ('mcp_search = "search"', "mcp is not set"),
    ('mcp_pass = ["K"]', "mcp is not set"),
    ('mcp = "server"', "mcp needs mcp_search or mcp_fetch"),
    ('mcp = "a \'b"\nmcp_search = "s"', "cannot be split into words"),
    ('mcp = " "\nmcp_search = "s"', "the command line names no program"),
    (f'search = "{SEARCH}"\nmcp = "server"\nmcp_search = "s"', "both set the search service"),
    ('fetch = "direct"\nmcp = "server"\nmcp_fetch = "f"', "both set the fetch service"),
    (f'serach = "{SEARCH}"', "did you mean web.search?"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_settings_that_are_wrong_are_named_with_their_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    file = tmp_path / "proofstone.toml"
    file.write_text(f"[web]\n{text}\n")
    monkeypatch.setenv("PROOFSTONE_CONFIG", str(file))
    with pytest.raises(ConfigError) as error:
        load_user_config()
    assert str(error.value).startswith(f"{file}:") and said in str(error.value)


def test_a_repository_cannot_say_who_looks() -> None:
    with pytest.raises(ConfigError, match=r"proofstone\.toml:1: web: not allowed in a repository's file"):
        load_settings_text(f'[web]\nsearch = "{SEARCH}"\n', "proofstone.toml")


def test_a_repository_cannot_have_the_keys_of_those_who_look() -> None:
    mine = {"search": SEARCH, "search_key": "FIND_IT", "mcp": "s", "mcp_fetch": "f", "mcp_pass": ["OF_THE_SERVER"]}
    person = UserConfig(UserSettings.model_validate({"web": mine}), Path("/nowhere/proofstone.toml"))
    repository = load_settings_text('[environment]\npass = ["FIND_IT", "OF_THE_SERVER", "TZ"]\n', "proofstone.toml")
    needs = list_requested_permissions(repository, Path("/nowhere/project"))
    missing = check_consent(needs, person, (), repository=Path("/nowhere/project")).missing
    keys = [need.value for need in missing if "a key of yours" in explain_permission(need, person)]
    assert keys == ['"FIND_IT"', '"OF_THE_SERVER"'] and len(missing) == 3


@each_row(
    ("table", "search", "fetch"),
    [
        ({"search": SEARCH}, True, False),
        ({"fetch": "direct"}, False, True),
        ({"search": SEARCH, "fetch": FETCH}, True, True),
        ({"mcp": "server", "mcp_search": "s"}, True, False),
        ({"mcp": "server", "mcp_fetch": "f"}, False, True),
        ({"mcp": "server", "mcp_fetch": "f", "search": SEARCH}, True, True),
    ],
)
def test_there_is_what_was_named_and_no_more(table: dict[str, Any], search: bool, fetch: bool) -> None:
    web = build_web(WebSettings.model_validate(table), {})
    assert web is not None and (web.search is not None, web.fetch is not None) == (search, fetch)
    web.close()


def test_nobody_looks_unless_somebody_is_named() -> None:
    assert build_web(WebSettings(), dict(os.environ)) is None


@pytest.mark.parametrize("environ", [{}, {"SEARCH_KEY": " "}])
def test_a_key_that_is_not_set_is_an_error_before_anything_is_asked(environ: dict[str, str]) -> None:
    settings = WebSettings.model_validate({"search": SEARCH, "search_key": "SEARCH_KEY"})
    with pytest.raises(ConfigError, match="SEARCH_KEY, which is not set"):
        build_web(settings, environ)


@pytest.mark.parametrize("key", ["schlüssel-key", "two\nlines"])
def test_a_key_that_fits_into_no_header_is_an_error_that_does_not_show_it(key: str) -> None:
    settings = WebSettings.model_validate({"search": SEARCH, "search_key": "SEARCH_KEY"})
    with pytest.raises(ConfigError) as error:
        build_web(settings, {"SEARCH_KEY": key})
    assert "SEARCH_KEY" in error.value.message and key not in error.value.message


def test_a_service_on_this_machine_serves(site: Site) -> None:
    site.replies["/s"] = site.replies["/read"] = Reply(b"found")
    settings = WebSettings.model_validate(
        {
            "search": site.url("/s?q={query}"),
            "search_key": "SEARCH_KEY",
            "search_header": "X-Token",
            "fetch": site.url("/read?page={url}"),
            "fetch_key": "READER_KEY",
        }
    )
    web = build_web(settings, {"SEARCH_KEY": "first-key\n", "READER_KEY": "second-key"})
    assert search(web, "words").endswith("found")
    assert fetch(web, PAGE) == WebPage((PAGE,), "found")
    assert [headers.get("x-token") for _, headers in site.asked] == ["first-key", None]
    assert [headers.get("authorization") for _, headers in site.asked] == [None, "Bearer second-key"]


def test_an_mcp_server_serves_until_it_is_closed(tmp_path: Path) -> None:
    program = Path(__file__).with_name("mcp_program.py")
    settings = WebSettings(
        mcp=shlex.join((sys.executable, str(program), str(tmp_path / "log"))), mcp_search="search", mcp_fetch="read"
    )
    web = build_web(settings, {"HOME": str(tmp_path)})
    assert web is not None
    try:
        assert search(web, "words") == "https://e.org\nT\nwords"
        assert fetch(web, f"{PAGE}#part") == WebPage((PAGE,), f'{{"urls": ["{PAGE}"]}}')
        for private in ("http://169.254.169.254/", "http://127.1/", "http://metadata.google.internal/"):
            with pytest.raises(ToolRefusedError):
                fetch(web, private)
    finally:
        web.close()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "no web search is configured: [web] in your own proofstone.toml says who searches and fetches"),
        ({"search": SEARCH}, "web search: search.example; web fetch: nobody ([web] in your own proofstone.toml)"),
        (
            {"mcp": "npx -y server --key x", "mcp_search": "find", "fetch": "direct"},
            "web search: find of npx; web fetch: direct ([web] in your own proofstone.toml)",
        ),
    ],
)
def test_who_looks_is_said_in_a_line(table: dict[str, Any], said: str) -> None:
    assert describe_web(WebSettings.model_validate(table)) == said
