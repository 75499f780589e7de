"""The embedded API server: start, stop, where to find it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import yaml
from aiohttp import web

from jobset_gate.fake.apiserver import crds, namespaces
from jobset_gate.fake.apiserver.garbage import GarbageCollector
from jobset_gate.fake.apiserver.http_handler import HttpHandler
from jobset_gate.fake.apiserver.state import ServerState
from jobset_gate.fake.apiserver.store import ObjectStore
from jobset_gate.fake.faults import Faults

#: Idle connections are the client's to close: in virtual time every minute passes at once.
_FOR_EVER = 1e9
_LONGEST_LINE = 64 * 1024


class ApiServer:
    """A Kubernetes API server in this process, on 127.0.0.1 and a free port, in memory, without authentication.

    clock: seconds since 1970, for all times it writes. rng: where names and uids come from (seed it to repeat a run).
    garbage_collection: delete dependents and empty namespaces, as kube-controller-manager would.
    """

    def __init__(
        self,
        *,
        faults: Faults | None = None,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        garbage_collection: bool = True,
    ) -> None:
        self.faults = faults or Faults()
        self.store = ObjectStore()
        self._core = ServerState(self.store, clock, rng or random.Random(), self.faults)
        self._garbage = GarbageCollector(self._core) if garbage_collection else None
        self._runner: web.ServerRunner | None = None
        self._collector: asyncio.Task[None] | None = None
        self._port = 0
        crds.CrdRegistrar(self._core)
        namespaces.make_initial(self._core)

    @property
    def url(self) -> str:
        """Errors: RuntimeError before start()."""
        if not self._port:
            raise RuntimeError("the API server has not been started")
        return f"http://127.0.0.1:{self._port}"

    @property
    def webhook_services(self) -> dict[tuple[str, str], str]:
        """(namespace, name) of a Service that a webhook configuration names -> base URL of who really answers."""
        return self._core.admission.hooks.services

    async def start(self, port: int = 0) -> None:
        """Listen; with a port given, on that one (to come back at the same place after a stop)."""
        if self._garbage is not None:
            self._collector = asyncio.create_task(self._garbage.run(), name="garbage-collector")
        server = web.Server(
            HttpHandler(self._core).handle,
            handler_cancellation=True,
            keepalive_timeout=_FOR_EVER,
            access_log=None,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close everything; what is stored stays, so that start() goes on from it."""
        if self._collector is not None:
            self._collector.cancel()
            await asyncio.wait([self._collector])
            if not self._collector.cancelled():
                self._collector.result()
            self._collector = None
        self.faults.close_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        await self._core.admission.hooks.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def kubeconfig(self, path: Path | str) -> Path:
        """Write a kubeconfig with which kubectl finds the server."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": self.url}}],
            "users": [{"name": "embedded", "user": {}}],
            "contexts": [
                {"name": "embedded", "context": {"cluster": "embedded", "user": "embedded", "namespace": "default"}}
            ],
            "current-context": "embedded",
        }
        place = Path(path)
        place.write_text(yaml.safe_dump(config))
        return place
