"""One HTTP exchange with the API server and its repetition: the session, tokens, deadlines, Retry-After."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import aiohttp

from jobset_gate.kube.access import Access
from jobset_gate.kube.broken import told
from jobset_gate.kube.errors import (
    ApiError,
    ServerError,
    Silent,
    Throttled,
    TooLarge,
    Unauthorized,
    Unreachable,
    error_of,
)
from jobset_gate.kube.lines import LineCutter

Observe = Callable[[str, str, str, float], None]
"""observe(verb, resource, code, seconds), once per exchange; the code is the HTTP status, or "<error>" without one."""

MAX_REPEATS = 5
LONGEST_PAUSE = 30.0  # seconds; a larger Retry-After is given to the caller, who may have something better to do
PAUSE_WITHOUT_ADVICE = 1.0
_TURNS_TO_CLOSE = 3
"""Of the loop: a connection that was cut off in the middle of a request or handshake closes its socket only then."""

REPEATS_OF_READS = 2  # after a connection that broke


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `verb` and `resource` are for metrics; `body` is JSON already."""

    verb: str
    resource: str
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    repeats: int = MAX_REPEATS
    most_bytes: int | None = None
    """Of the body of an answer; a longer one is not read to its end and raises TooLarge."""

    @property
    def reads(self) -> bool:
        return self.method == "GET"


class Transport:
    """Owns the connections. `timeout` is in seconds and covers an exchange from the wait for a connection on."""

    def __init__(
        self, access: Access, *, user_agent: str, timeout: float, connections: int, observe: Observe | None
    ) -> None:
        self._access = access
        self._agent = user_agent
        self._timeout = timeout
        self._connections = connections
        self._observe = observe
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Needs a running loop."""
        # Bodies are asked for uncompressed: unpacking a page of 3 MiB would hold the loop for tens of milliseconds.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, ssl=self._access.ssl or True, keepalive_timeout=60),
            headers={"User-Agent": self._agent, "Accept": "application/json", "Accept-Encoding": "identity"},
            read_bufsize=2**18,
            trust_env=False,
        )
        # aiohttp would repeat what a broken connection interrupts, PUT and DELETE too, behind the back of our limits.
        self._session._retry_connection = False  # noqa: SLF001 - there is no public switch; a test watches over it

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            for _ in range(_TURNS_TO_CLOSE):
                await asyncio.sleep(0)

    async def send(self, call: Call, guard: Callable[[], float | None] | None = None) -> bytes:
        """The body of a 2xx answer. Raises ApiError, Unreachable, and what `guard` raises.

        429 (the server has done nothing yet) is repeated for every verb, a 503 with Retry-After for all but POST, a
        broken connection for reads only: a create whose answer was lost may have been done. A 401 is repeated once, at
        once, if there is another token now.
        """
        for repeat in range(call.repeats + 1):
            try:
                return await self._authorized(call, guard)
            except Unreachable:
                if not call.reads or repeat >= min(call.repeats, REPEATS_OF_READS):
                    raise
                await asyncio.sleep(PAUSE_WITHOUT_ADVICE * (repeat + 1) / 4)
            except ApiError as error:
                pause = _pause(error, call)
                if pause is None or pause > LONGEST_PAUSE or repeat == call.repeats:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last repeat returns or raises")

    @asynccontextmanager
    async def stream(self, call: Call, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a long answer; `silence` is the longest wait for a byte, in seconds, then Silent."""
        timeout = aiohttp.ClientTimeout(
            total=None, connect=self._timeout, sock_connect=self._timeout, sock_read=silence
        )
        with self._observed(call) as outcome:
            response = await self._request(call, timeout, call.params, await self._token())
            outcome.code = str(response.status)
        try:
            if response.status == 401 and self._access.refused is not None:
                self._access.refused()
            if response.status >= 300:
                raise _error(response, await self._body(call, response))
            async with aclosing(_lines(call, response)) as lines:
                yield lines
        finally:
            response.close()

    async def _authorized(self, call: Call, guard: Callable[[], float | None] | None) -> bytes:
        token = await self._token()  # first: a slow exec plugin must not eat up what the guard grants
        try:
            return await self._exchange(call, guard, token)
        except Unauthorized:
            if self._access.refused is None:
                raise
            self._access.refused()
            fresh = await self._token()
            if fresh == token:
                raise
            return await self._exchange(call, guard, fresh)

    async def _exchange(self, call: Call, guard: Callable[[], float | None] | None, token: str | None) -> bytes:
        timeout, params = self._timeout, call.params
        if guard is not None and not call.reads and (granted := guard()) is not None and granted < timeout:
            # The server gets the deadline too, so that it drops what it has queued once nobody waits for it.
            timeout, params = granted, {**call.params, "timeout": f"{max(1, int(granted * 1000))}ms"}
        with self._observed(call) as outcome:
            response = await self._request(call, aiohttp.ClientTimeout(total=timeout), params, token)
            async with response:
                body = await self._body(call, response)
                outcome.code = str(response.status)
        if response.status >= 300:
            raise _error(response, body)
        return body

    async def _request(
        self, call: Call, timeout: aiohttp.ClientTimeout, params: Mapping[str, str], token: str | None
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open: use `async with Client(...)`")
        headers = {"Authorization": token} if token is not None else {}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        with _reached(call):
            return await self._session.request(
                call.method,
                self._access.server + call.path,
                params=params,
                data=call.body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=self._access.proxy,
                server_hostname=self._access.server_name,
            )

    async def _body(self, call: Call, response: aiohttp.ClientResponse) -> bytes:
        if call.most_bytes is None:
            with _reached(call):
                return await response.read()
        body = bytearray()
        while True:
            with _reached(call):
                chunk = await response.content.readany()
            if not chunk:
                return bytes(body)
            body += chunk
            if len(body) > call.most_bytes:
                response.close()  # with the connection: the rest is not read
                raise TooLarge(f"{call.method} {call.path}: more than {call.most_bytes} bytes")

    @contextmanager
    def _observed(self, call: Call) -> Iterator[_Outcome]:
        clock = asyncio.get_running_loop().time
        outcome, start = _Outcome(), clock()
        try:
            yield outcome
        finally:
            if self._observe is not None:
                self._observe(call.verb, call.resource, outcome.code, clock() - start)

    async def _token(self) -> str | None:
        """The Authorization header's value."""
        token = await self._access.token() if self._access.token is not None else None
        return token if token is None or " " in token else f"Bearer {token}"


@dataclass(slots=True)
class _Outcome:
    code: str = "<error>"


async def _lines(call: Call, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    cutter = LineCutter()
    while True:
        with _reached(call):
            chunk = await response.content.readany()
        if not chunk:
            break
        for line in cutter.feed(chunk):
            yield line
    rest = cutter.end()
    if rest is not None:
        yield rest


@contextmanager
def _reached(call: Call) -> Iterator[None]:
    try:
        yield
    except aiohttp.SocketTimeoutError as error:
        raise Silent(f"{call.method} {call.path}: {told(error)}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(f"{call.method} {call.path}: {told(error)}") from error


def _error(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    return error_of(response.status, body, response.headers.get("Retry-After"), says=response.reason or "")


def _pause(error: ApiError, call: Call) -> float | None:
    """Seconds until the same request may be sent again, None for never."""
    if isinstance(error, Throttled):
        return error.retry_after or PAUSE_WITHOUT_ADVICE
    if isinstance(error, ServerError) and error.status == 503 and call.method != "POST":
        return error.retry_after
    return None
