"""What an agent is shown of the web, whoever looks there for it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.tool_rules import ToolFailedError
from proofstone.agents.web.http import DirectFetch
from proofstone.agents.web.pages import WebPage
from proofstone.agents.web.providers import FetchPage, SearchWeb, WebProviders
from tests.agents.tools.desk import Desk
from tests.agents.web.site import HERE, Reply, running_site


def showing(text: str) -> SearchWeb:
    """One who shows this, after what was wanted."""
    return lambda wanted, seconds, cancel: f"{wanted}: {text}"


def fetching(text: str, *more: str) -> FetchPage:
    """One who fetches this, from where it was wanted and from where else that leads."""
    return lambda wanted, seconds, cancel: WebPage((wanted, *more), text)


def down(wanted: str, seconds: float, cancel: threading.Event) -> str:
    raise ToolFailedError("search.example answered 503.")


def desk_with(folder: Path, web: WebProviders | None) -> Desk:
    return Desk(folder, ground_more={"web": web})


def test_a_search_shows_what_was_found(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, WebProviders(search=showing("found")))
    assert desk.ok("web_search", query="tls 1.3", reason="API_BEHAVIOR") == "tls 1.3: found"


def test_a_page_is_fetched_from_a_real_server(tmp_path: Path) -> None:
    with running_site() as site:
        site.replies["/a"] = Reply(b"<h1>Changes</h1>", "text/html")
        desk = desk_with(tmp_path, WebProviders(fetch=DirectFetch(trusted=(HERE,))))
        assert desk.ok("web_fetch", url=site.url("/a")) == f"{site.url('/a')}\n\nChanges"


def test_an_address_of_this_machine_is_refused(tmp_path: Path) -> None:
    with running_site() as site:
        desk = desk_with(tmp_path, WebProviders(fetch=DirectFetch()))
        assert desk.refused("web_fetch", url=site.url("/")) == RefusalRule.OUTSIDE
        assert not site.asked


@pytest.mark.parametrize(
    ("web", "offered"),
    [
        (None, set()),
        (WebProviders(), set()),
        (WebProviders(search=showing("x")), {"web_search"}),
        (WebProviders(fetch=fetching("x")), {"web_fetch"}),
        (WebProviders(search=showing("x"), fetch=fetching("x")), {"web_search", "web_fetch"}),
    ],
)
def test_only_what_somebody_serves_is_offered(tmp_path: Path, web: WebProviders | None, offered: set[str]) -> None:
    desk = desk_with(tmp_path, web)
    assert {spec.name for spec in desk.toolbox.specs if spec.name.startswith("web")} == offered
    for tool, arguments in (("web_search", {"query": "q", "reason": "API_BEHAVIOR"}), ("web_fetch", {"url": "u"})):
        assert (desk.call(tool, **arguments).refused is RefusalRule.UNLISTED) is (tool not in offered)


def test_a_provider_that_is_down_is_a_failed_call(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, WebProviders(search=down))
    assert desk.failed("web_search", query="q", reason="API_BEHAVIOR") == "search.example answered 503."


def test_a_long_result_is_shown_without_its_middle(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, WebProviders(fetch=fetching("a" * 30_000 + "THE END")))
    text = desk.ok("web_fetch", url="https://e.org")
    assert text.startswith("https://e.org\n\naaa") and text.endswith("aTHE END")
    assert "[10,007 characters left out here]" in text and len(text) < 20_100


def test_the_addresses_of_a_page_are_shown_whole_and_before_its_words(tmp_path: Path) -> None:
    last = f"https://e.org/{'b' * 1900}"
    desk = desk_with(tmp_path, WebProviders(fetch=fetching("\n\nhttps://docs.example\n" + "c" * 30_000, last)))
    assert desk.ok("web_fetch", url="https://e.org/a").startswith(f"https://e.org/a\n{last}\n\nhttps://docs.example\nc")


def test_nothing_found_is_said(tmp_path: Path) -> None:
    nothing: SearchWeb = lambda wanted, seconds, cancel: " \n"  # noqa: E731
    desk = desk_with(tmp_path, WebProviders(search=nothing, fetch=fetching(" \n")))
    assert desk.ok("web_search", query="q", reason="API_BEHAVIOR") == "It found nothing."
    assert desk.ok("web_fetch", url="https://e.org") == "https://e.org\n\nThe page is empty."


def test_half_a_character_can_be_kept(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, WebProviders(search=showing("\ud83d!")))
    assert desk.ok("web_search", query="q", reason="API_BEHAVIOR") == "q: ?!"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("web_search", {"query": "q"}),
        ("web_search", {"query": "q", "reason": "WHIM"}),
        ("web_search", {"query": "", "reason": "API_BEHAVIOR"}),
        ("web_search", {"query": "q" * 401, "reason": "API_BEHAVIOR"}),
        ("web_fetch", {"url": ""}),
        ("web_fetch", {"url": "https://e.org/" + "x" * 2000}),
    ],
)
def test_arguments_that_are_not_right_are_refused(tmp_path: Path, tool: str, arguments: dict[str, str]) -> None:
    desk = desk_with(tmp_path, WebProviders(search=showing("x"), fetch=fetching("x")))
    assert desk.refused(tool, **arguments) == RefusalRule.ARGUMENTS


def test_whoever_looks_is_told_how_long_it_may_take_and_of_the_stop(tmp_path: Path) -> None:
    heard: list[tuple[float, threading.Event]] = []

    def look(wanted: str, seconds: float, cancel: threading.Event) -> WebPage:
        heard.append((seconds, cancel))
        return WebPage((wanted,), "x")

    desk = desk_with(tmp_path, WebProviders(fetch=look))
    assert desk.call("web_fetch", 5.0, url="https://e.org").ok
    ((seconds, cancel),) = heard
    assert 0 < seconds <= 5 and cancel is desk.cancel
