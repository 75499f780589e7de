"""HTTP requests to the API server and their retries: session, tokens, deadlines, Retry-After, lines of a watch."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field

import aiohttp
from typing_extensions import override

from jobset_gate.kube.access import Access
from jobset_gate.kube.errors import (
    ApiError,
    ConnectionStage,
    ResponseTooLarge,
    ServerError,
    Throttled,
    Unauthorized,
    Unreachable,
    WatchIdleTimeout,
    error_from_response,
)

Guard = Callable[[], float | None]
"""Called before each write: raises NotLeader, or returns the seconds that the write may take (None: no limit)."""
ObserveRequest = Callable[[str, str, str, float], None]
"""observe(verb, resource, code, seconds), once per request; the code is the HTTP status, or "<error>" without one."""

MAX_RETRIES = 5
MAX_RETRY_AFTER = 30.0  # seconds; a larger Retry-After is left to the caller
DEFAULT_RETRY_AFTER = 1.0
MAX_READ_RETRIES = 2  # after a broken connection
METHODS = {"create": "POST", "post": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
"""HTTP methods of the verbs that write; the others read."""
LONGEST_LINE = 8 * 1024 * 1024  # bytes; etcd's limit for an object is 1.5 MiB, JSON escapes can swell it
TOO_LONG = b""  # stands for a line that was longer and was dropped


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request. `verb` and `resource` are for metrics; `body` is JSON."""

    verb: str
    resource: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    max_bytes: int | None = None
    """Of the response's body; a longer one raises ResponseTooLarge before it is read to its end."""

    @property
    def method(self) -> str:
        return METHODS.get(self.verb, "GET")

    @property
    def is_read(self) -> bool:
        return self.verb not in METHODS


class _Response(aiohttp.ClientResponse):
    """Aborts the connection if it is left early: over TLS, closing waits for the server, and the loop may end before.

    aiohttp closes a response whose head does not come; once a body has been read to its end there is no connection.
    """

    @override
    def close(self) -> None:
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()
        super().close()


class Transport:
    """Owns the connections. `timeout` is in seconds and includes the wait for a connection."""

    def __init__(
        self, access: Access, *, user_agent: str, timeout: float, connections: int, observe: ObserveRequest | None
    ) -> None:
        self._access = access
        self._agent = user_agent
        self._timeout = timeout
        self._connections = connections
        self._observe = observe
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Needs a running loop."""
        # Uncompressed bodies: unpacking a page of 3 MiB would block the loop for tens of milliseconds.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, ssl=self._access.ssl or True, keepalive_timeout=60),
            response_class=_Response,
            headers=[
                ("User-Agent", self._agent),
                ("Accept", "application/json"),
                ("Accept-Encoding", "identity"),
                *self._access.headers,
            ],
            read_bufsize=2**18,
            trust_env=False,
        )
        # aiohttp would retry requests of a broken connection, PUT and DELETE too, beyond our limits.
        self._session._retry_connection = False  # noqa: SLF001 - there is no public switch; a test covers it

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, call: ApiRequest, guard: Guard | None, retries: int) -> bytes:
        """The body of a 2xx response. Raises ApiError, Unreachable, and what `guard` raises.

        Retried are: 429 (the server has done nothing yet) for every verb, 503 with Retry-After for all but POST, a
        broken connection for reads only, since a create whose response was lost may have been done, and 401 once, at
        once, if there is another token now.
        """
        for repeat in range(retries + 1):
            try:
                return await self._authorized(call, guard)
            except Unreachable:
                if not call.is_read or repeat >= min(retries, MAX_READ_RETRIES):
                    raise
                await asyncio.sleep(DEFAULT_RETRY_AFTER * (repeat + 1) / 4)
            except ApiError as error:
                pause = _retry_after(error, call)
                if pause is None or pause > MAX_RETRY_AFTER or repeat == retries:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last repeat returns or raises")

    @asynccontextmanager
    async def stream(self, call: ApiRequest, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch. Raises WatchIdleTimeout after `idle_timeout` seconds without a byte."""
        timeout = aiohttp.ClientTimeout(
            total=None, connect=self._timeout, sock_connect=self._timeout, sock_read=idle_timeout
        )
        with self._observed(call) as outcome:
            response = await self._request(call, timeout, call.params, await self._token())
            outcome.code = str(response.status)
        with closing(response):
            if response.status == 401 and self._access.token_rejected is not None:
                self._access.token_rejected()
            if response.status >= 300:
                raise _response_error(response, await self._body(call, response))
            async with aclosing(_lines(call, response)) as lines:
                yield lines

    async def _authorized(self, call: ApiRequest, guard: Guard | None) -> bytes:
        token = await self._token()  # first: a slow exec plugin must not use up the time that the guard grants
        try:
            return await self._exchange(call, guard, token)
        except Unauthorized:
            if self._access.token_rejected is None:
                raise
            self._access.token_rejected()
            fresh = await self._token()
            if fresh == token:
                raise
            return await self._exchange(call, guard, fresh)

    async def _exchange(self, call: ApiRequest, guard: Guard | None, token: str | None) -> bytes:
        timeout, params = self._timeout, call.params
        if guard is not None and not call.is_read and (granted := guard()) is not None and granted < timeout:
            # The server gets the deadline too, so that it drops a queued request that is no longer waited for.
            timeout, params = granted, {**call.params, "timeout": f"{max(1, int(granted * 1000))}ms"}
        with self._observed(call) as outcome:
            response = await self._request(call, aiohttp.ClientTimeout(total=timeout), params, token)
            with closing(response):
                body = await self._body(call, response)
                outcome.code = str(response.status)
        if response.status >= 300:
            raise _response_error(response, body)
        return body

    async def _request(
        self, call: ApiRequest, timeout: aiohttp.ClientTimeout, params: Mapping[str, str], token: str | None
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open: use `async with Client(...)`")
        headers = {"Authorization": token} if token is not None else {}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        with _network_errors_mapped(call):
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

    async def _body(self, call: ApiRequest, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async with aclosing(_chunks(call, response)) as chunks:
            async for chunk in chunks:
                body += chunk
                if call.max_bytes is not None and len(body) > call.max_bytes:
                    raise ResponseTooLarge(f"{call.method} {call.path}: more than {call.max_bytes} bytes")
        return bytes(body)

    @contextmanager
    def _observed(self, call: ApiRequest) -> Iterator["_ObservedResponse"]:
        clock = asyncio.get_running_loop().time
        outcome, start = _ObservedResponse(), clock()
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
class _ObservedResponse:
    code: str = "<error>"


async def _chunks(call: ApiRequest, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    while True:
        with _network_errors_mapped(call):
            chunk = await response.content.readany()
        if not chunk:
            return
        yield chunk


async def _lines(call: ApiRequest, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    splitter = LineSplitter()
    async with aclosing(_chunks(call, response)) as chunks:
        async for chunk in chunks:
            for line in splitter.feed(chunk):
                yield line
    for line in splitter.feed(b"\n"):  # the server closed the connection within a line
        yield line


class LineSplitter:
    """feed() takes chunks as they come and returns the complete lines, TOO_LONG for each dropped one."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []  # of an incomplete line, joined once, so that long lines cost O(n)
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, without blank ones. Consume them all before the next chunk."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._keep(end)
            line = b"".join(self._pieces)
            if self._size > self._longest or line.strip():
                yield line or TOO_LONG
            self._pieces, self._size = [], 0
        self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._longest:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)


@contextmanager
def _network_errors_mapped(call: ApiRequest) -> Iterator[None]:
    try:
        yield
    except aiohttp.SocketTimeoutError as error:
        raise WatchIdleTimeout(f"{call.method} {call.path}: {describe_error(error)}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        unreachable = Unreachable(f"{call.method} {call.path}: {describe_error(error)}")
        unreachable.stage = _stage(error)
        raise unreachable from error


def _stage(error: BaseException) -> ConnectionStage | None:
    """What went wrong on the way; None if that is not known: there was no answer in time."""
    if isinstance(error, aiohttp.ClientSSLError):
        return ConnectionStage.TLS
    if isinstance(error, aiohttp.ClientConnectorError):
        return ConnectionStage.DNS if isinstance(error.os_error, socket.gaierror) else ConnectionStage.TCP
    return None if isinstance(error, TimeoutError) else ConnectionStage.HTTP


def _response_error(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    return error_from_response(
        response.status, body, response.headers.get("Retry-After"), default_message=response.reason or ""
    )


def _retry_after(error: ApiError, call: ApiRequest) -> float | None:
    """Seconds until a retry, None for no retry."""
    if isinstance(error, Throttled):
        return error.retry_after or DEFAULT_RETRY_AFTER
    if isinstance(error, ServerError) and error.status == 503 and call.method != "POST":
        return error.retry_after
    return None


def describe_error(error: BaseException) -> str:
    """Why there was no response, in one line for users; aiohttp's texts are for those who debug aiohttp."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot trust {error.host}:{error.port}: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {_system(error.os_error)}"
    return str(error) or type(error).__name__


def _system(error: OSError) -> str:
    """Without the address, which asyncio adds."""
    if error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
