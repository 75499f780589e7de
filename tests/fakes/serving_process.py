"""An admission server in a process of its own, whose memory differs from its clients'."""

import asyncio
import logging
import sys
from pathlib import Path

import structlog

from jobset_gate.runtime.connections import ConnectionLimits
from jobset_gate.settings import Settings
from tests.fakes.admission_server import BUNDLE
from webhook.server import serve


async def main(seconds: float, ca: Path) -> None:
    """Writes its CA and says its URL; serves until standard input ends."""
    ca.write_bytes(BUNDLE.ca)  # noqa: ASYNC240 - nobody is served yet
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    server = await serve(Settings(), tls=BUNDLE.serving, limits=ConnectionLimits(request_seconds=seconds))
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


asyncio.run(main(float(sys.argv[1]), Path(sys.argv[2])))
