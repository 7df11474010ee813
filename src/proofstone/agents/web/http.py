"""Fetch pages and search the web by HTTP.

Rules:
- a call ends by its deadline or when the work is stopped, whatever the server does; at most `MOST_BYTES` of a response
  are read;
- a service that the person has configured gets their key. Its redirects are not followed, because the key would be sent
  along;
- a page that an agent names is fetched only from a public address, and from exactly the address that was checked,
  because the name could resolve to another one the next time. Each redirect is checked in the same way;
- a service is not asked for a page with a private address either, as far as that can be seen from here;
- proxy variables of the environment are ignored; errors name only the host.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

from proofstone.agents.backends.api.event_loop import lease_loop, return_loop
from proofstone.agents.backends.programs.activity import KeyMask
from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError, format_path, shorten_text
from proofstone.agents.web.addresses import is_clearly_private, is_public
from proofstone.agents.web.pages import WebPage, extract_page_text, format_results, is_text, parse_media_type
from proofstone.config.services import QUERY_PLACEHOLDER, URL_PLACEHOLDER

if TYPE_CHECKING:
    import httpx2


MAX_RESPONSE_BYTES: Final = 2 << 20
MAX_SECONDS: Final = 20.0
"""How many seconds a call may take."""
_READING: Final = 5.0
"""How many of these seconds parsing may take. It keeps the machine busy, and no honest page needs as many."""
_MOST_REDIRECTS: Final = 5
_MOST_ADDRESSES: Final = 3
"""How many addresses of one host are tried."""
_HEADERS: Final = {"user-agent": "proofstone", "accept-encoding": "identity"}
_WORDS: Final = 200
_LONGEST_URL: Final = 2000

T = TypeVar("T")
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True)
class _Deadline:
    """The deadline of a call."""

    end: float
    cancel: threading.Event

    @classmethod
    def of(cls, seconds: float, cancel: threading.Event) -> _Deadline:
        return cls(time.monotonic() + min(seconds, MAX_SECONDS), cancel)

    @property
    def left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    def at_most(self, seconds: float) -> _Deadline:
        return _Deadline(min(self.end, time.monotonic() + seconds), self.cancel)

    def over(self) -> bool:
        return self.cancel.is_set() or self.left == 0


@dataclass(frozen=True)
class ServiceKey:
    header: str
    """`X-Token`, or `Authorization: Bearer` if a word precedes the key."""
    value: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        name, _, word = self.header.partition(": ")
        return {name: f"{word} {self.value.strip()}".lstrip()}


@dataclass(frozen=True)
class _Answer:
    status: int
    reason: str
    kind: str
    """The content type."""
    body: bytes
    location: str = ""

    @property
    def is_complete(self) -> bool:
        return len(self.body) <= MAX_RESPONSE_BYTES

    def text(self, until: _Deadline) -> str:
        body = self.body[:MAX_RESPONSE_BYTES]
        if not is_text(self.kind, body):
            raise ToolFailedError(
                f"It is not text but {shorten_text(parse_media_type(self.kind), 100) or 'something binary'}."
            )
        note = "" if self.is_complete else f"\n[only the first {MAX_RESPONSE_BYTES >> 20} MiB were read]"
        return f"{extract_page_text(self.kind, body, until.at_most(_READING).over)}{note}"


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, in the order in which to try them."""
    results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in results))


@dataclass(frozen=True)
class WebService:
    """A service that the person has configured: a URL with a placeholder for the query or the page."""

    template: str
    key: ServiceKey | None = None
    proxy: str | None = None
    resolve: ResolveHost = resolve_host

    def search(self, wanted: str, seconds: float, cancel: threading.Event) -> str:
        address = self.template.replace(QUERY_PLACEHOLDER, quote(wanted, safe=""))
        return format_results(self._request(address, _Deadline.of(seconds, cancel)))

    def fetch(self, wanted: str, seconds: float, cancel: threading.Event) -> WebPage:
        """Return the page as the service gives it. What the service itself can reach is not checked."""
        until = _Deadline.of(seconds, cancel)
        page = check_page_address(wanted, until.left, cancel, self.resolve)
        in_query = "?" in self.template.partition(URL_PLACEHOLDER)[0]
        address = self.template.replace(URL_PLACEHOLDER, quote(page, safe="") if in_query else page)
        return WebPage((page,), self._request(address, until))

    def _request(self, address: str, until: _Deadline) -> str:
        import httpx2

        url = httpx2.URL(address)
        headers = self.key.headers if self.key else {}

        async def get() -> _Answer:
            async with httpx2.AsyncClient(trust_env=False, proxy=self.proxy, timeout=MAX_SECONDS) as client:
                return await _send_request(client, url, {"accept": "application/json, text/*;q=0.9", **headers})

        mask = KeyMask.from_variables({"_KEY": self.key.value} if self.key else {})
        try:
            return mask(self._read_answer(url.host, _run_until(get, url.host, until), until))
        except ToolFailedError as failed:
            raise ToolFailedError(mask(failed.text)) from None

    def _read_answer(self, host: str, answer: _Answer, until: _Deadline) -> str:
        if answer.location:
            raise ToolFailedError(f"{host} redirects, which is not followed. The person has to correct its address.")
        if answer.status in (401, 403):
            raise ToolFailedError(f"{host} does not let us in ({answer.status}). The person has to check its key.")
        if answer.status >= 400:
            raise ToolFailedError(f"{host} answered {answer.status} {answer.reason}.")
        return answer.text(until)


@dataclass(frozen=True)
class DirectFetch:
    """Fetches pages from any public address."""

    resolve: ResolveHost = resolve_host
    trusted: Collection[str] = ()
    """Addresses that may be reached although they are not public, for tests. There is no setting for this."""

    def __call__(self, wanted: str, seconds: float, cancel: threading.Event) -> WebPage:
        until = _Deadline.of(seconds, cancel)
        first = parse_page_address(wanted, self.trusted)
        last, answer = _run_until(lambda: self._fetch(first), first.host, until)
        if answer.status >= 400:
            raise ToolFailedError(f"{last.host} answered {answer.status} {answer.reason}.")
        return WebPage(tuple(dict.fromkeys((str(first), str(last)))), answer.text(until))

    async def _fetch(self, first: httpx2.URL) -> tuple[httpx2.URL, _Answer]:
        """Return the final URL and its response, after all redirects."""
        url, addresses = first, await self._resolve_addresses(first)
        for _ in range(_MOST_REDIRECTS + 1):
            answer = await self._fetch_one(url, addresses)
            if not answer.location:
                return url, answer
            try:
                url = parse_page_address(str(url.join(answer.location)), self.trusted)
                addresses = await self._resolve_addresses(url)
            except ToolRefusedError as refused:  # the requested URL was allowed, so this is a failure and not a refusal
                raise ToolFailedError(f"{first.host} redirects. {refused.text}") from refused
        raise ToolFailedError(f"{first.host} redirects more than {_MOST_REDIRECTS} times.")

    async def _fetch_one(self, url: httpx2.URL, addresses: Sequence[str]) -> _Answer:
        """Return the response of the first address that accepts a connection."""
        import httpx2

        extensions = {"sni_hostname": url.raw_host.decode()}
        headers = {"host": url.netloc.decode(), "accept": "text/*, application/json;q=0.9, */*;q=0.1"}
        async with httpx2.AsyncClient(trust_env=False, timeout=MAX_SECONDS) as client:
            for address in addresses[:-1]:
                try:
                    return await _send_request(client, url.copy_with(host=address), headers, extensions)
                except httpx2.ConnectError:
                    continue
            return await _send_request(client, url.copy_with(host=addresses[-1]), headers, extensions)

    async def _resolve_addresses(self, url: httpx2.URL) -> Sequence[str]:
        """Return the addresses of the host. Refuse the host if one of them is not allowed."""
        try:
            addresses = await self.resolve(url.raw_host.decode(), _port(url))
        except (OSError, UnicodeError) as error:
            raise ToolFailedError(f"There is no host {format_path(shorten_text(url.host, _WORDS))}.") from error
        if not addresses or not all(is_public(address) or address in self.trusted for address in addresses):
            raise _refuse_private(url.host)
        return addresses[:_MOST_ADDRESSES]


def parse_page_address(address: str, trusted: Collection[str] = ()) -> httpx2.URL:
    """Parse the address of a page and refuse invalid and private ones. The fragment is dropped."""
    import httpx2

    try:
        url = httpx2.URL(address.strip()).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError) as error:
        raise _refuse_address(address, "it is not a valid URL") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise _refuse_address(address, "only http and https are fetched")
    if url.port is not None and not 0 < url.port < 1 << 16:
        raise _refuse_address(address, "there is no such port")
    if url.userinfo:
        raise ToolRefusedError(RefusalRule.OUTSIDE, "A URL with a user or a password in it is not fetched.")
    if len(str(url)) > _LONGEST_URL:
        raise _refuse_address(address, "it is too long")
    if is_clearly_private(url.host, trusted):
        raise _refuse_private(url.host)
    return url


def check_page_address(
    wanted: str, seconds: float, cancel: threading.Event, resolve: ResolveHost = resolve_host
) -> str:
    """Return the address of a page that a service fetches. A name that cannot be resolved here may be known to the
    service; a name that resolves to a private address here is refused."""
    url = parse_page_address(wanted)

    async def addresses() -> Sequence[str]:
        try:
            return await resolve(url.raw_host.decode(), _port(url))
        except (OSError, UnicodeError):
            return ()

    if not all(map(is_public, _run_until(addresses, url.host, _Deadline.of(seconds, cancel)))):
        raise _refuse_private(url.host)
    return str(url)


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _refuse_address(address: str, why: str) -> ToolRefusedError:
    text = f"{format_path(shorten_text(address, _WORDS))}: {why}. Give a whole address: `https://example.org/page`."
    return ToolRefusedError(RefusalRule.OUTSIDE, text)


def _refuse_private(host: str) -> ToolRefusedError:
    text = f"{format_path(shorten_text(host, _WORDS))} is not on the public internet: nothing is fetched from there."
    return ToolRefusedError(RefusalRule.OUTSIDE, text)


async def _send_request(
    client: httpx2.AsyncClient,
    url: httpx2.URL,
    headers: Mapping[str, str],
    extensions: Mapping[str, str] | None = None,
) -> _Answer:
    """Send a request and return the response, up to the size limit."""
    request = client.build_request("GET", url, headers={**_HEADERS, **headers}, extensions=dict(extensions or {}))
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_RESPONSE_BYTES:
                break
    finally:
        await response.aclose()
    location = response.headers.get("location", "") if response.is_redirect else ""
    kind = response.headers.get("content-type", "")
    return _Answer(
        response.status_code, response.reason_phrase[:_WORDS], kind, bytes(body[: MAX_RESPONSE_BYTES + 1]), location
    )


def _run_until(work: Callable[[], Awaitable[T]], host: str, until: _Deadline) -> T:
    """Run the work until the deadline. The event loop is shared, so pages are parsed outside of it."""
    import httpx2

    timeout = until.left
    loop = lease_loop()
    try:
        answer = loop.run(lambda _: asyncio.wait_for(work(), timeout), cancel=until.cancel)
    except TimeoutError as error:
        raise ToolFailedError(f"{host} did not answer within {timeout:.0f} s.") from error
    except httpx2.TimeoutException as error:
        raise ToolFailedError(f"{host} did not answer in time.") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        reason = shorten_text(str(error), _WORDS) or type(error).__name__
        raise ToolFailedError(f"{host} cannot be reached, or the connection broke: {reason}") from error
    finally:
        return_loop()
    if answer is None:
        raise ToolFailedError("The work has been stopped.")
    return answer
