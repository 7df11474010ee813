"""Pages and searches by HTTP.

Rules:
- a call ends by its deadline or when the work is stopped, whatever the other side does or sends; no more than
  `MOST_BYTES` of an answer are taken;
- a service that the person has named gets their key and no redirect of its is followed: the key would go along;
- a page that an agent has named is fetched from a public address only, and from the very address that was looked at: a
  name could lead elsewhere the next time. Each redirect is looked at in the same way;
- nobody else is asked for a page either that has a private address, as far as that can be seen from here;
- proxy variables of the environment are not followed; what goes wrong is said with the host's name alone.
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

from proofstone.agents.backends.api.event_loop import give_back, lease
from proofstone.agents.backends.programs.activity import Mask
from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.tool_rules import FailedError, RefusedError, shortened, shown
from proofstone.agents.web.addresses import is_plainly_private, is_public
from proofstone.agents.web.pages import Page, is_text, media_type, results_in, text_of
from proofstone.config.services import QUERY, URL

if TYPE_CHECKING:
    import httpx2


MOST_BYTES: Final = 2 << 20
LONGEST: Final = 20.0
"""Seconds that one look may take."""
_READING: Final = 5.0
"""Seconds of them that reading an answer may take: it keeps the machine busy, and no honest page needs as much."""
_MOST_REDIRECTS: Final = 5
_MOST_ADDRESSES: Final = 3
"""Of one host, that are tried one after another."""
_HEADERS: Final = {"user-agent": "proofstone", "accept-encoding": "identity"}
_WORDS: Final = 200
_LONGEST_URL: Final = 2000

T = TypeVar("T")
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True)
class _Until:
    """How long a look may still take."""

    end: float
    cancel: threading.Event

    @classmethod
    def of(cls, seconds: float, cancel: threading.Event) -> _Until:
        return cls(time.monotonic() + min(seconds, LONGEST), cancel)

    @property
    def left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    def at_most(self, seconds: float) -> _Until:
        return _Until(min(self.end, time.monotonic() + seconds), self.cancel)

    def over(self) -> bool:
        return self.cancel.is_set() or self.left == 0


@dataclass(frozen=True)
class Key:
    header: str
    """`X-Token`, or `Authorization: Bearer` where a word stands before the key."""
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
    def whole(self) -> bool:
        return len(self.body) <= MOST_BYTES

    def text(self, until: _Until) -> str:
        body = self.body[:MOST_BYTES]
        if not is_text(self.kind, body):
            raise FailedError(f"It is no text but {shortened(media_type(self.kind), 100) or 'something binary'}.")
        note = "" if self.whole else f"\n[only the first {MOST_BYTES >> 20} MiB were read]"
        return f"{text_of(self.kind, body, until.at_most(_READING).over)}{note}"


async def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, in the order in which they are to be tried."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True)
class Service:
    """One that the person has named: an address with a place for what is wanted."""

    template: str
    key: Key | None = None
    proxy: str | None = None
    resolve: Resolve = resolved

    def search(self, wanted: str, seconds: float, cancel: threading.Event) -> str:
        address = self.template.replace(QUERY, quote(wanted, safe=""))
        return results_in(self._asked(address, _Until.of(seconds, cancel)))

    def fetch(self, wanted: str, seconds: float, cancel: threading.Event) -> Page:
        """What the service makes of the page. Where it can reach is its own matter."""
        until = _Until.of(seconds, cancel)
        page = page_for_others(wanted, until.left, cancel, self.resolve)
        in_query = "?" in self.template.partition(URL)[0]
        address = self.template.replace(URL, quote(page, safe="") if in_query else page)
        return Page((page,), self._asked(address, until))

    def _asked(self, address: str, until: _Until) -> str:
        import httpx2

        url = httpx2.URL(address)
        headers = self.key.headers if self.key else {}

        async def get() -> _Answer:
            async with httpx2.AsyncClient(trust_env=False, proxy=self.proxy, timeout=LONGEST) as client:
                return await _got(client, url, {"accept": "application/json, text/*;q=0.9", **headers})

        mask = Mask.of({"_KEY": self.key.value} if self.key else {})
        try:
            return mask(self._taken(url.host, _within(get, url.host, until), until))
        except FailedError as failed:
            raise FailedError(mask(failed.text)) from None

    def _taken(self, host: str, answer: _Answer, until: _Until) -> str:
        if answer.location:
            raise FailedError(f"{host} sends us elsewhere, which is not followed. The person has to set it right.")
        if answer.status in (401, 403):
            raise FailedError(f"{host} does not let us in ({answer.status}). The person has to see to its key.")
        if answer.status >= 400:
            raise FailedError(f"{host} answered {answer.status} {answer.reason}.")
        return answer.text(until)


@dataclass(frozen=True)
class DirectFetch:
    """Pages from anywhere that anybody can reach."""

    resolve: Resolve = resolved
    trusted: Collection[str] = ()
    """Addresses that may be reached though they are not public. There is no setting for it."""

    def __call__(self, wanted: str, seconds: float, cancel: threading.Event) -> Page:
        until = _Until.of(seconds, cancel)
        first = page_address(wanted, self.trusted)
        last, answer = _within(lambda: self._fetched(first), first.host, until)
        if answer.status >= 400:
            raise FailedError(f"{last.host} answered {answer.status} {answer.reason}.")
        return Page(tuple(dict.fromkeys((str(first), str(last)))), answer.text(until))

    async def _fetched(self, first: httpx2.URL) -> tuple[httpx2.URL, _Answer]:
        """What was there, and where in the end."""
        url, addresses = first, await self._addresses(first)
        for _ in range(_MOST_REDIRECTS + 1):
            answer = await self._hop(url, addresses)
            if not answer.location:
                return url, answer
            try:
                url = page_address(str(url.join(answer.location)), self.trusted)
                addresses = await self._addresses(url)
            except RefusedError as refused:  # what was asked for was allowed, and nothing came of it
                raise FailedError(f"{first.host} leads elsewhere. {refused.text}") from refused
        raise FailedError(f"{first.host} leads elsewhere more than {_MOST_REDIRECTS} times.")

    async def _hop(self, url: httpx2.URL, addresses: Sequence[str]) -> _Answer:
        """From the first of the addresses that answers at all."""
        import httpx2

        extensions = {"sni_hostname": url.raw_host.decode()}
        headers = {"host": url.netloc.decode(), "accept": "text/*, application/json;q=0.9, */*;q=0.1"}
        async with httpx2.AsyncClient(trust_env=False, timeout=LONGEST) as client:
            for address in addresses[:-1]:
                try:
                    return await _got(client, url.copy_with(host=address), headers, extensions)
                except httpx2.ConnectError:
                    continue
            return await _got(client, url.copy_with(host=addresses[-1]), headers, extensions)

    async def _addresses(self, url: httpx2.URL) -> Sequence[str]:
        """Those of a host of which all may be reached."""
        try:
            found = await self.resolve(url.raw_host.decode(), _port(url))
        except (OSError, UnicodeError) as error:
            raise FailedError(f"There is no host {shown(shortened(url.host, _WORDS))}.") from error
        if not found or not all(is_public(item) or item in self.trusted for item in found):
            raise _private(url.host)
        return found[:_MOST_ADDRESSES]


def page_address(address: str, trusted: Collection[str] = ()) -> httpx2.URL:
    """The page's address, if it may be one at all; without its fragment, which is not sent."""
    import httpx2

    try:
        url = httpx2.URL(address.strip()).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError) as error:
        raise _not_fetched(address, "it is no valid URL") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise _not_fetched(address, "only http and https are fetched")
    if url.port is not None and not 0 < url.port < 1 << 16:
        raise _not_fetched(address, "there is no such port")
    if url.userinfo:
        raise RefusedError(RefusalRule.OUTSIDE, "A URL with a user or a password in it is not fetched.")
    if len(str(url)) > _LONGEST_URL:
        raise _not_fetched(address, "it is too long")
    if is_plainly_private(url.host, trusted):
        raise _private(url.host)
    return url


def page_for_others(wanted: str, seconds: float, cancel: threading.Event, resolve: Resolve = resolved) -> str:
    """The address of a page that somebody else is to fetch. A name that is not known here may be known to them; one
    that leads to a private address from here is not for them either."""
    url = page_address(wanted)

    async def addresses() -> Sequence[str]:
        try:
            return await resolve(url.raw_host.decode(), _port(url))
        except (OSError, UnicodeError):
            return ()

    if not all(map(is_public, _within(addresses, url.host, _Until.of(seconds, cancel)))):
        raise _private(url.host)
    return str(url)


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _not_fetched(address: str, why: str) -> RefusedError:
    text = f"{shown(shortened(address, _WORDS))}: {why}. Give a whole address: `https://example.org/page`."
    return RefusedError(RefusalRule.OUTSIDE, text)


def _private(host: str) -> RefusedError:
    text = f"{shown(shortened(host, _WORDS))} is not on the public internet: nothing is fetched from there."
    return RefusedError(RefusalRule.OUTSIDE, text)


async def _got(
    client: httpx2.AsyncClient,
    url: httpx2.URL,
    headers: Mapping[str, str],
    extensions: Mapping[str, str] | None = None,
) -> _Answer:
    """One answer, as much of it as is taken."""
    request = client.build_request("GET", url, headers={**_HEADERS, **headers}, extensions=dict(extensions or {}))
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MOST_BYTES:
                break
    finally:
        await response.aclose()
    location = response.headers.get("location", "") if response.is_redirect else ""
    kind = response.headers.get("content-type", "")
    return _Answer(response.status_code, response.reason_phrase[:_WORDS], kind, bytes(body[: MOST_BYTES + 1]), location)


def _within(work: Callable[[], Awaitable[T]], host: str, until: _Until) -> T:
    """What comes of it in time. The loop is shared: reading a page is not for it."""
    import httpx2

    longest = until.left
    loop = lease()
    try:
        answer = loop.run(lambda _: asyncio.wait_for(work(), longest), cancel=until.cancel)
    except TimeoutError as error:
        raise FailedError(f"{host} did not answer within {longest:.0f} s.") from error
    except httpx2.TimeoutException as error:
        raise FailedError(f"{host} did not answer in time.") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        why = shortened(str(error), _WORDS) or type(error).__name__
        raise FailedError(f"{host} cannot be reached, or broke off: {why}") from error
    finally:
        give_back()
    if answer is None:
        raise FailedError("The work has been stopped.")
    return answer
