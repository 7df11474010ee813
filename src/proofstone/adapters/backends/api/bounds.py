"""What a provider may send at most. Whatever is larger is nobody's answer, and is not taken into memory.

What counts is what has to be held: bytes as they are after decompression. Providers with a client of their own making
(`wire = "other"`) are outside of the transport; what they said is still measured before it becomes a turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import httpx2

LARGEST: Final = 16 * 2**20
"""Of an answer, in bytes on the way and in characters at its end."""
LARGEST_STREAM: Final = 4 * LARGEST
"""Of an answer that is sent while it is written: every token comes in an envelope of some hundred bytes, and models
write more than a hundred thousand tokens."""
MOST_CALLS: Final = 64
"""Of one turn. The engine carries out fewer, and answers the others one by one."""
LONGEST_NAME: Final = 200
"""Of a tool, of a call, of a model."""
MOST_TOKENS: Final = 10**12
"""No model reads or writes as many: whoever reports more has not counted."""


class TooLargeError(RuntimeError):
    def __init__(self, largest: int) -> None:
        super().__init__(f"its answer is larger than {largest // 2**20} MiB")


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Ends a response that grows too large with `TooLargeError`, whoever reads it and however."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        response.request = request
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        headers = response.headers.copy()
        for name in ("content-encoding", "content-length"):  # it is handed on decoded
            headers.pop(name, None)
        return httpx2.Response(
            response.status_code,
            headers=headers,
            stream=_Bounded(response, LARGEST_STREAM if streamed else LARGEST),
            extensions=response.extensions,
        )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, largest: int) -> None:
        self._response = response
        self._largest = largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = line = 0
        async with aclosing(self._response.aiter_bytes()) as pieces:
            async for piece in pieces:
                size += len(piece)
                line = (0 if b"\n" in piece else line) + len(piece) - 1 - piece.rfind(b"\n")
                if size > self._largest:
                    raise TooLargeError(self._largest)
                if line > LARGEST:  # the SDKs read it from its beginning with every piece that comes
                    raise TooLargeError(LARGEST)
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()
