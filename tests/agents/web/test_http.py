"""Pages and searches by HTTP: what comes of them, and what never happens."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler

import pytest

from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError
from proofstone.agents.web.http import MAX_RESPONSE_BYTES, DirectFetch, ResolveHost, ServiceKey, WebService
from proofstone.agents.web.pages import WebPage
from tests.agents.web.site import HERE, Reply, Site
from tests.rows import each_row

SECRET = "the-key-that-nobody-may-see"
BEARER = "Authorization: Bearer"
DIRECT = DirectFetch(trusted=(HERE,))


def fetch(url: str, looking: DirectFetch = DIRECT, seconds: float = 10) -> WebPage:
    return looking(url, seconds, threading.Event())


def failed(url: str, looking: DirectFetch = DIRECT, seconds: float = 10) -> str:
    with pytest.raises(ToolFailedError) as failure:
        fetch(url, looking, seconds)
    return failure.value.text


def search(service: WebService, query: str = "q") -> str:
    return service.search(query, 10, threading.Event())


def search_failed(service: WebService) -> str:
    with pytest.raises(ToolFailedError) as failure:
        search(service)
    return failure.value.text


def leading(*addresses: str) -> ResolveHost:
    """Every name to these."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return resolve


# --- a page that an agent has named ---------------------------------------------------------------------------------


def test_a_page_is_shown_as_text_under_its_address(site: Site) -> None:
    site.replies["/a"] = Reply(b"<title>T</title><p>Hello</p><script>x</script>", "text/html")
    assert fetch(site.url("/a?b=c#part")) == WebPage((site.url("/a?b=c"),), "T\n\nHello")
    assert site.asked[0][0] == "/a?b=c"


def test_redirects_are_followed_and_both_addresses_shown(site: Site) -> None:
    site.leads("/a", "/b")
    site.leads("/b", site.url("/c#part"))
    site.replies["/c"] = Reply(b"there")
    assert fetch(site.url("/a")) == WebPage((site.url("/a"), site.url("/c")), "there")


@pytest.mark.parametrize(("count", "arrives"), [(5, True), (6, False)])
def test_five_redirects_are_followed_and_not_six(site: Site, count: int, arrives: bool) -> None:
    for number in range(count):
        site.leads(f"/{number}", f"/{number + 1}")
    site.replies[f"/{count}"] = Reply(b"there")
    if arrives:
        assert fetch(site.url("/0")).text == "there"
    else:
        assert "more than 5 times" in failed(site.url("/0"))
        assert len(site.asked) == 6


@each_row(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://localhost./",
        "http://app.localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://0/",
        "http://127.0.0.1./",
        "http://ip6-localhost/",
        "http://metadata.google.internal/",
        "http://[fec0::1]/",
        f"https://example.org/{'x' * 2000}",
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "data:text/plain,x",
        "//example.org/",
        "example.org",
        "https://",
        "https://user:hunter2@example.org/",
        "http://example.org:99999999/",
        "http://exa mple.org/\x00",
        "",
    ],
)
def test_what_is_not_on_the_public_internet_is_refused(url: str) -> None:
    with pytest.raises(ToolRefusedError) as refusal:
        fetch(url, DirectFetch())
    assert refusal.value.rule is RefusalRule.OUTSIDE and "hunter2" not in refusal.value.text


def test_a_name_that_leads_to_a_private_address_is_refused(site: Site) -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["93.184.216.34", HERE]

    with pytest.raises(ToolRefusedError, match=r"intranet\.example is not on the public internet"):
        fetch(site.url("/", "intranet.example"), DirectFetch(resolve))
    assert not site.asked


def test_it_is_fetched_from_the_address_that_was_looked_at(site: Site) -> None:
    """A name that leads elsewhere the second time gains nothing."""
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return [HERE] if len(asked) == 1 else ["10.0.0.1"]

    site.replies["/a"] = Reply(b"there")
    found = fetch(site.url("/a", "docs.example"), DirectFetch(resolve, (HERE,)))
    assert found.text == "there" and asked == ["docs.example"]
    assert site.asked[0][1]["host"] == f"docs.example:{site.port}"


def test_the_next_address_is_tried_where_one_does_not_answer(site: Site) -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.9", HERE]

    site.replies["/a"] = Reply(b"there")
    assert fetch(site.url("/a", "docs.example"), DirectFetch(resolve, ("127.0.0.9", HERE))).text == "there"


@pytest.mark.parametrize(
    "to", ["http://169.254.169.254/", "http://localhost/", "file:///etc/passwd", "http://u:p@e.org/"]
)
def test_a_redirect_to_what_may_not_be_fetched_fails(site: Site, to: str) -> None:
    site.leads("/a", to)
    assert "redirects" in failed(site.url("/a"))


def test_a_redirect_to_a_name_with_a_private_address_fails(site: Site) -> None:
    async def resolve(host: str, _port: int) -> Sequence[str]:
        return [HERE] if host == HERE else ["192.168.0.1"]

    site.leads("/a", "http://router.example/")
    assert "router.example is not on the public" in failed(site.url("/a"), DirectFetch(resolve, (HERE,)))


def test_a_host_that_there_is_not_fails() -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    assert failed("https://nowhere.example/", DirectFetch(resolve)) == "There is no host nowhere.example."


def test_nobody_there_fails_in_words() -> None:
    with socket.socket() as unused:
        unused.bind((HERE, 0))
        assert "cannot be reached" in failed(f"http://{HERE}:{unused.getsockname()[1]}/")


def test_what_is_too_large_is_shown_as_far_as_it_was_read(site: Site) -> None:
    site.replies["/a"] = Reply(b"x" * (MAX_RESPONSE_BYTES + 5))
    text = fetch(site.url("/a")).text
    assert text.endswith("[only the first 2 MiB were read]") and text.count("x") == MAX_RESPONSE_BYTES
    site.replies["/b"] = Reply(b"x" * MAX_RESPONSE_BYTES)
    assert "only the first" not in fetch(site.url("/b")).text


def test_a_page_that_takes_too_long_to_read_is_left_by_the_deadline(site: Site) -> None:
    site.replies["/a"] = Reply(b"<p>seen</p>" + b"<" * (MAX_RESPONSE_BYTES - 20), "text/html")
    text = fetch(site.url("/a"), seconds=2).text
    assert text.startswith("seen") and text.endswith("[the rest of the page takes too long to read]")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(b"%PDF-1.7", "application/pdf"), "not text but application/pdf"),
        (Reply(b"\0\0", ""), "something binary"),
        (Reply(b"no", status=404), "answered 404 Not Found"),
        (Reply(b"no", status=503), "answered 503"),
        (Reply(b"no gzip", headers={"Content-Encoding": "gzip"}), "the connection broke"),
    ],
)
def test_what_is_no_page_of_text_fails(site: Site, reply: Reply, said: str) -> None:
    site.replies["/a"] = reply
    assert said in failed(site.url("/a"))


def drip(site: Site) -> Reply:
    """Headers without end, a byte at a time: no single wait is ever long."""

    def go(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not site.over.wait(0.02):
            try:
                handler.wfile.write(b"X")
            except OSError:
                break
        handler.close_connection = True

    return Reply(instead=go)


def test_a_server_that_never_comes_to_the_point_is_left(site: Site) -> None:
    site.replies["/a"] = drip(site)
    assert "did not answer within" in failed(site.url("/a"), seconds=0.3)


def test_work_that_is_stopped_does_not_wait_for_the_server(site: Site) -> None:
    site.replies["/a"] = drip(site)
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(ToolFailedError, match="stopped"):
        DIRECT(site.url("/a"), 600, cancel)


def test_proxy_variables_are_not_followed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    site.replies["/a"] = Reply(b"there")
    assert fetch(site.url("/a")).text == "there"
    assert search(WebService(site.url("/a?q={query}"))).endswith("there")


# --- a service that the person has named ------------------------------------------------------------------------------


def test_a_search_is_asked_for_with_its_words_encoded(site: Site) -> None:
    body = b'{"results": [{"title": "T", "url": "https://e.org", "content": "words"}]}'
    site.replies["/s"] = Reply(body, "application/json")
    found = search(WebService(site.url("/s?format=json&q={query}")), "a b&c=d/#{query}")
    assert found == "https://e.org\nT\nwords"
    assert site.asked[0][0] == "/s?format=json&q=a%20b%26c%3Dd%2F%23%7Bquery%7D"


@pytest.mark.parametrize(
    ("header", "name", "value"),
    [(BEARER, "authorization", f"Bearer {SECRET}"), ("X-Subscription-Token", "x-subscription-token", SECRET)],
)
def test_the_key_goes_into_its_header_and_nowhere_else(site: Site, header: str, name: str, value: str) -> None:
    site.replies["/s"] = Reply(b"found")
    assert search(WebService(site.url("/s?q={query}"), ServiceKey(header, SECRET))).endswith("found")
    path, headers = site.asked[0]
    assert headers[name] == value and SECRET not in path
    assert SECRET not in repr(ServiceKey(header, SECRET))


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(b"no", status=401), "does not let us in (401)"),
        (Reply(b"no", status=429), "answered 429 Too Many Requests"),
        (
            Reply(b"x", status=302, headers={"Location": "https://elsewhere.example/"}),
            "redirects, which is not followed",
        ),
        (Reply(b"x", "image/png"), "not text but image/png"),
    ],
)
def test_a_service_that_does_not_serve_is_a_failure_in_words(site: Site, reply: Reply, said: str) -> None:
    site.replies["/s"] = reply
    text = search_failed(WebService(site.url("/s?q={query}"), ServiceKey(BEARER, SECRET)))
    assert said in text and SECRET not in text and "?q=" not in text
    assert len(site.asked) == 1


@pytest.mark.parametrize("status", [200, 500])
def test_a_key_that_comes_back_is_not_shown(site: Site, status: int) -> None:
    def echo(handler: BaseHTTPRequestHandler) -> None:
        said = str(handler.headers["authorization"])
        handler.send_response(status, said)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        handler.wfile.write(f"you sent {said}".encode())

    site.replies["/s"] = Reply(instead=echo)
    service = WebService(site.url("/s?q={query}"), ServiceKey(BEARER, SECRET))
    text = search(service) if status == 200 else search_failed(service)
    assert SECRET not in text and ("you sent" in text or "500" in text)


def test_a_service_that_is_down_is_a_failure(site: Site) -> None:
    with socket.socket() as unused:
        unused.bind((HERE, 0))
        text = search_failed(WebService(f"http://{HERE}:{unused.getsockname()[1]}/?q={{query}}"))
    assert "cannot be reached" in text


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("/read/{url}", "/read/https://example.org/a?b=c"),
        ("/read?page={url}", "/read?page=https%3A%2F%2Fexample.org%2Fa%3Fb%3Dc"),
    ],
)
def test_a_page_is_fetched_by_a_service(site: Site, template: str, path: str) -> None:
    site.replies["/read"] = site.replies["/read/https://example.org/a"] = Reply(b"# Page", "text/markdown")
    service = WebService(site.url(template), resolve=leading("93.184.216.34"))
    found = service.fetch("https://example.org/a?b=c#d", 10, threading.Event())
    assert found == WebPage(("https://example.org/a?b=c",), "# Page") and site.asked[0][0] == path


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "file:///etc/passwd",
        "http://localhost/",
        "https://u:p@e.org",
        "http://2130706433/",
        "http://127.1/",
        "http://0x7f.1/",
        "http://0/",
        "http://127.0.0.1./",
        "http://192.168.1.1./",
        "http://ip6-localhost/",
        "http://metadata.google.internal/",
    ],
)
def test_a_service_is_not_asked_for_what_is_plainly_private(site: Site, url: str) -> None:
    with pytest.raises(ToolRefusedError):
        WebService(site.url("/read/{url}"), resolve=leading("93.184.216.34")).fetch(url, 10, threading.Event())
    assert not site.asked


def test_a_service_is_not_asked_for_a_name_that_leads_to_a_private_address(site: Site) -> None:
    service = WebService(site.url("/read/{url}"), resolve=leading("93.184.216.34", "10.0.0.1"))
    with pytest.raises(ToolRefusedError, match=r"intranet\.example is not on the public internet"):
        service.fetch("http://intranet.example/", 10, threading.Event())
    assert not site.asked


def test_a_service_may_know_a_name_that_is_not_known_here(site: Site) -> None:
    async def unknown(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    site.replies["/read"] = Reply(b"there")
    service = WebService(site.url("/read?page={url}"), resolve=unknown)
    assert service.fetch("https://far.example/", 10, threading.Event()).text == "there"


def test_a_proxy_of_the_persons_is_used_for_services(site: Site) -> None:
    site.replies[site.url("/s", "search.example")] = Reply(b"by proxy")
    template = site.url("/s?q={query}", "search.example")
    assert search(WebService(template, None, site.url())).endswith("by proxy")
