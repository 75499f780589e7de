"""The shipped webhook server in a process of its own, with one more path behind which nothing is done."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

from aiohttp import web
from typing_extensions import override

from bench.children import command_loop
from bench.children.command_loop import Json
from jobset_gate.cli import logs
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.settings import Gangs, Settings
from jobset_gate.sources.table import SOURCES
from webhook import server as its_server
from webhook.certs.serving import self_signed

NOTHING_PATH = "/nothing"
_ANSWER = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",'
    b'"response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}'
)


class _BenchWebhook(its_server.WebhookServer):
    @override
    def app(self) -> web.Application:
        app = super().app()
        app.router.add_post(NOTHING_PATH, self._nothing)
        return app

    async def _nothing(self, request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=_ANSWER, content_type="application/json")


async def main() -> None:
    """Serves until the parent goes."""
    logs.configure(LogFormat.JSON, LogLevel.WARNING)
    bundle = self_signed()
    with patch.object(its_server, "WebhookServer", _BenchWebhook):
        server = await its_server.serve(Settings(gangs=Gangs(sources=tuple(SOURCES))), tls=bundle.serving)

        async def where() -> Json:
            return {"url": server.url, "ca": bundle.ca.decode()}

        async def usage() -> Json:
            return command_loop.usage()

        await command_loop.serve({"where": where, "usage": usage})
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
