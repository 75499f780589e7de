"""The shipped webhook server in a process of its own, with one more path behind which nothing is done."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from unittest.mock import patch

from aiohttp import web
from typing_extensions import override

from bench.children import talk
from bench.children.talk import Json
from jobset_gate.cli import logs
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.settings import Settings
from webhook import selfsigned
from webhook import server as its_server
from webhook.app import AdmissionServer

NOTHING_PATH = "/nothing"
_ANSWER = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",'
    b'"response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}'
)


class _BenchWebhook(AdmissionServer):
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
    bundle = selfsigned.make()
    with tempfile.TemporaryDirectory() as folder, patch.object(its_server, "AdmissionServer", _BenchWebhook):
        server = await its_server.serve(Settings(), tls=bundle.write(Path(folder)))

        async def where() -> Json:
            return {"url": server.url, "ca": bundle.ca.decode()}

        async def usage() -> Json:
            return talk.usage()

        await talk.serve({"where": where, "usage": usage})
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
