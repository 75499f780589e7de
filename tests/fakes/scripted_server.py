"""A tiny API server for ConfigMaps of one namespace; a test can replace each response by one of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web
from typing_extensions import override

from tests.fakes.loopback_server import Answer, LoopbackServer

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as it came: `at` is loop time."""

    at: float
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def verb(self) -> str:
        return "watch" if "watch" in self.query else "list" if self.method == "GET" else self.method


class ScriptedServer(LoopbackServer):
    """`put`, `drop` change what is there and tell the open watches, unless `tell=False`: then the event is lost.

    `lists`, `watches` and `others` hold the answers to the next requests of their kind; when they are used up the
    server behaves well.
    """

    def __init__(self) -> None:
        super().__init__(self._dispatch)
        self.objects: dict[str, Json] = {}
        self.version = 100
        self.requests: list[RecordedRequest] = []
        self.lists: deque[Answer] = deque()
        self.watches: deque[Answer] = deque()
        self.others: deque[Answer] = deque()
        self._streams: list[asyncio.Queue[bytes | None]] = []
        self._news = asyncio.Condition()

    @override
    async def __aexit__(self, *_: object) -> None:
        self.close_watches()
        await super().__aexit__()

    # --- what is there

    def put(self, name: str, value: str = "", *, uid: str | None = None, tell: bool = True) -> Json:
        """Makes or changes an object; gives the event."""
        self.version += 1
        old = self.objects.get(name)
        meta = {
            "name": name,
            "namespace": "ns",
            "uid": uid or (old["metadata"]["uid"] if old else f"uid-{self.version}"),
            "resourceVersion": str(self.version),
        }
        self.objects[name] = {"metadata": meta, "data": {"value": value}}
        event = {"type": "MODIFIED" if old else "ADDED", "object": self.objects[name]}
        if tell:
            self.send(event)
        return event

    def drop(self, name: str, *, tell: bool = True) -> Json:
        """Deletes an object; gives the event."""
        self.version += 1
        gone = self.objects.pop(name)
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        event = {"type": "DELETED", "object": gone}
        if tell:
            self.send(event)
        return event

    # --- watches

    @property
    def open_watches(self) -> int:
        return len(self._streams)

    def send(self, event: Json | bytes) -> None:
        """To all open watches: an event, or bytes as they are."""
        data = event if isinstance(event, bytes) else msgspec.json.encode(event) + b"\n"
        for stream in self._streams:
            stream.put_nowait(data)

    def close_watches(self) -> None:
        for stream in self._streams:
            stream.put_nowait(None)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._news:
            await self._news.wait_for(condition)

    async def watched(self, times: int = 1) -> None:
        """Waits until so many watches have been opened, and the last is open."""
        await self.until(lambda: self.count("watch") >= times and self.open_watches > 0)

    def count(self, verb: str) -> int:
        return sum(asked.verb == verb for asked in self.requests)

    # --- answers

    async def _dispatch(self, request: web.Request) -> web.StreamResponse:
        asked = RecordedRequest(
            asyncio.get_running_loop().time(),
            request.method,
            request.path,
            dict(request.query),
            dict(request.headers),
            await request.read(),
        )
        self.requests.append(asked)
        await self._tell_waiting()
        script, good = {"list": (self.lists, self.list), "watch": (self.watches, self._watch)}.get(
            asked.verb, (self.others, self.list)
        )
        return await (script.popleft() if script else good)(request)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """A page of what there is at this moment."""
        names = sorted(self.objects)
        start = int(request.query.get("continue", 0))
        limit = int(request.query.get("limit", 0)) or len(names)
        meta = {"resourceVersion": str(self.version)}
        if start + limit < len(names):
            meta["continue"] = str(start + limit)
        items = [self.objects[name] for name in names[start : start + limit]]
        return web.json_response({"metadata": meta, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        stream: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._streams.append(stream)
        await self._tell_waiting()
        try:
            async with asyncio.timeout(float(request.query["timeoutSeconds"])):
                while (data := await stream.get()) is not None:
                    await response.write(data)
        except TimeoutError:
            pass  # the regular end of a watch
        finally:
            self._streams.remove(stream)
        return response

    async def _tell_waiting(self) -> None:
        async with self._news:
            self._news.notify_all()


def refusal(status: int, *, retry_after: int | None = None, text: str | None = None) -> Answer:
    """An error: a Status, or `text` as a proxy would send it."""

    async def answer(_: web.Request) -> web.StreamResponse:
        headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
        if text is not None:
            return web.Response(status=status, text=text, headers=headers)
        body = {"kind": "Status", "status": "Failure", "code": status, "message": f"scripted {status}"}
        return web.json_response(body, status=status, headers=headers)

    return answer


def stream_of(*chunks: bytes) -> Answer:
    """A watch that sends these bytes and ends."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        return response

    return answer


async def never_ending_watch(request: web.Request) -> web.StreamResponse:
    """A watch that is accepted and then says nothing, for ever."""
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.Event().wait()
    return response


async def no_response(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def abort_connection(request: web.Request) -> web.StreamResponse:
    """The connection breaks before there is an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
