"""A server that keeps one Lease, and lets a test break the line to single candidates."""

from __future__ import annotations

import asyncio
import enum
import random
from collections.abc import Callable
from typing import Any

from aiohttp import web
from typing_extensions import override

from tests.fakes.loopback_server import LoopbackServer

Json = dict[str, Any]


class LineFault(enum.Enum):
    GOOD = "good"
    HANGS = "hangs"  # never done, never answered
    MUTE = "mute"  # done, never answered
    LATE = "late"  # done `delay` seconds later, also after the client has given up, as by an overloaded server
    REFUSED = "refused"  # 500


class LeaseServer(LoopbackServer):
    """`line(candidate)` decides about each request; candidates differ by User-Agent."""

    def __init__(self) -> None:
        super().__init__(self._handle)
        self.lease: Json | None = None
        self.version = 0
        self.line: Callable[[str], LineFault] = lambda _: LineFault.GOOD
        self.delay = 12.0
        self.writes: list[tuple[float, str]] = []  # (loop time, candidate) of each write that was done
        self._late: set[asyncio.Task[object]] = set()

    @override
    async def __aexit__(self, *_: object) -> None:
        for task in self._late:
            task.cancel()
        await super().__aexit__()

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    def edit(self, **spec: object) -> None:
        assert self.lease is not None
        self.version += 1
        meta = {**self.lease["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**self.lease, "metadata": meta, "spec": {**self.lease["spec"], **spec}}

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        candidate = request.headers["User-Agent"]
        body = await request.json() if request.method != "GET" else None
        match self.line(candidate):
            case LineFault.HANGS:
                await asyncio.Event().wait()
            case LineFault.MUTE:
                self._do(request.method, body, candidate)
                await asyncio.Event().wait()
            case LineFault.REFUSED:
                return web.json_response({"message": "scripted"}, status=500)
            case LineFault.LATE:
                task = asyncio.create_task(self._do_late(request.method, body, candidate))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
                return await asyncio.shield(task)
            case LineFault.GOOD:
                pass
        return self._do(request.method, body, candidate)

    async def _do_late(self, method: str, body: Json | None, candidate: str) -> web.StreamResponse:
        await asyncio.sleep(self.delay)
        return self._do(method, body, candidate)

    def _do(self, method: str, body: Json | None, candidate: str) -> web.StreamResponse:
        if method == "GET" or body is None:
            return web.json_response(self.lease) if self.lease else web.json_response({}, status=404)
        if method == "POST" and self.lease is not None:
            return web.json_response({"reason": "AlreadyExists"}, status=409)
        if method == "PUT":
            if self.lease is None:
                return web.json_response({}, status=404)
            if body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
                return web.json_response({"reason": "Conflict"}, status=409)
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "uid": "u", "resourceVersion": str(self.version)}}
        self.writes.append((asyncio.get_running_loop().time(), candidate))
        return web.json_response(self.lease)


def random_lines(seed: int, until: float) -> Callable[[str], LineFault]:
    """Trouble of every kind, each candidate in its own phases of some seconds; none after `until` (loop time)."""
    rng = random.Random(seed)  # noqa: S311 - it must repeat
    phases: dict[str, tuple[float, LineFault]] = {}

    def line(candidate: str) -> LineFault:
        now = asyncio.get_running_loop().time()
        if now >= until:
            return LineFault.GOOD
        ends, kind = phases.get(candidate, (-1.0, LineFault.GOOD))
        if now >= ends:
            kind = rng.choice([LineFault.GOOD, LineFault.GOOD, LineFault.GOOD, *LineFault])
            phases[candidate] = (now + rng.uniform(1, 40), kind)
        return kind

    return line
