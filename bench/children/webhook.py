"""The shipped webhook server in a process of its own, with two more paths: nothing is done, or a patch is ready."""

from __future__ import annotations

import asyncio
import re
from typing import ClassVar
from unittest.mock import patch

from aiohttp import web
from typing_extensions import override

from bench.children import command_loop
from bench.children.command_loop import Json
from jobset_gate import names
from jobset_gate.cli import logs
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.settings import Gangs, Settings
from jobset_gate.sources.table import LWS, SOURCES, START_GROUP
from webhook import review
from webhook import server as its_server
from webhook.certs.serving import self_signed
from webhook.handlers import barrier_pod_handler
from webhook.review import Allowed

NOTHING_PATH = "/nothing"
READY_PATH = "/ready"
_UID = re.compile(rb'"uid":"([^"]+)"')
"""The first in a request is its own."""
_PLACE = "UID"
_ALLOWED = review.encode(_PLACE, Allowed())
_SETTINGS = Settings(gangs=Gangs(sources=tuple(SOURCES)))


class _BenchWebhook(its_server.WebhookServer):
    _ready_made: ClassVar[dict[str, bytes]] = {}
    """By source, with a place for the UID."""

    @override
    def app(self) -> web.Application:
        app = super().app()
        app.router.add_post(NOTHING_PATH, self._nothing)
        app.router.add_post(READY_PATH, self._answer_ready)
        return app

    async def _nothing(self, request: web.Request) -> web.Response:
        return _answer(_ALLOWED, await request.read())

    async def _answer_ready(self, request: web.Request) -> web.Response:
        """The answer to the first pod of a source is given to all: but for a token, each would get the same one."""
        body = await request.read()
        source = LWS.name if names.LWS_NAME.encode() in body else START_GROUP.name
        if source not in self._ready_made:
            made = barrier_pod_handler(_SETTINGS, lambda: "t" * 22)(review.decode(body))
            self._ready_made[source] = review.encode(_PLACE, made)
        return _answer(self._ready_made[source], body)


def _answer(made: bytes, body: bytes) -> web.Response:
    own = _UID.search(body)
    assert own is not None, "a request has a UID"
    answer = made.replace(f'"uid":"{_PLACE}"'.encode(), b'"uid":"%b"' % own[1], 1)
    return web.Response(body=answer, content_type="application/json")


async def main() -> None:
    """Serves until the parent goes."""
    logs.configure(LogFormat.JSON, LogLevel.WARNING)
    bundle = self_signed()
    with patch.object(its_server, "WebhookServer", _BenchWebhook):
        server = await its_server.serve(_SETTINGS, tls=bundle.serving)

        async def where() -> Json:
            return {"url": server.url, "ca": bundle.ca.decode()}

        async def usage() -> Json:
            return command_loop.usage()

        await command_loop.serve({"where": where, "usage": usage})
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
