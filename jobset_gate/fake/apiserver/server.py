"""The embedded API server: start and stop, and the kinds that stored CRDs add."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import yaml
from aiohttp import web

from jobset_gate.fake.apiserver import rules
from jobset_gate.fake.apiserver.admission import WebhookAdmission
from jobset_gate.fake.apiserver.garbage import GarbageCollector
from jobset_gate.fake.apiserver.http_handler import HttpHandler
from jobset_gate.fake.apiserver.kinds import CRD_KIND, ServedKind, kinds_of_crd
from jobset_gate.fake.apiserver.requests import ServerState
from jobset_gate.fake.apiserver.responses import Obj
from jobset_gate.fake.apiserver.store import ObjectStore, StoreEvent
from jobset_gate.fake.faults import Faults

_NEVER = 1e9
"""Seconds: clients close idle connections, since in virtual time every minute passes at once."""
_LONGEST_LINE = 64 * 1024


class ApiServer:
    """A Kubernetes API server in this process, on 127.0.0.1 and a free port, in memory, without authentication.

    clock: seconds since 1970, for all times it writes. rng: source of names and uids (seed it to repeat a run).
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
        self._state = ServerState(self.store, clock, rng or random.Random(), self.faults)
        self._state.admission = self._admission = WebhookAdmission(self._state)
        self._garbage = GarbageCollector(self._state) if garbage_collection else None
        self._runner: web.ServerRunner | None = None
        self._collector: asyncio.Task[None] | None = None
        self._port = 0
        self.store.listeners.append(self._serve_crds)
        rules.create_initial_namespaces(self._state)

    @property
    def url(self) -> str:
        """Errors: RuntimeError before start()."""
        if not self._port:
            raise RuntimeError("the API server has not been started")
        return f"http://127.0.0.1:{self._port}"

    @property
    def webhook_services(self) -> dict[tuple[str, str], str]:
        """(namespace, name) of a Service that a webhook configuration names -> base URL of the real listener."""
        return self._admission.services

    async def start(self, port: int = 0) -> None:
        """Listen; with a port given, on that one (to restart at the same address)."""
        if self._garbage is not None:
            self._collector = asyncio.create_task(self._garbage.run(), name="garbage-collector")
        server = web.Server(
            HttpHandler(self._state).handle,
            handler_cancellation=True,
            keepalive_timeout=_NEVER,
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
        """Close everything; the objects stay, so that start() continues with them."""
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
        await self._admission.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def kubeconfig(self, path: Path | str) -> Path:
        """Write a kubeconfig for the server."""
        context = {"cluster": "embedded", "user": "embedded", "namespace": "default"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": self.url}}],
            "users": [{"name": "embedded", "user": {}}],
            "contexts": [{"name": "embedded", "context": context}],
            "current-context": "embedded",
        }
        place = Path(path)
        place.write_text(yaml.safe_dump(config))
        return place

    # --- CRDs ---------------------------------------------------------------------------------------------------------

    def _serve_crds(self, kind: ServedKind, change: StoreEvent) -> None:
        """Keep the served kinds equal to the stored CRDs."""
        if kind.key != CRD_KIND.key:
            return
        crd = change.now.fresh()
        for served in kinds_of_crd(crd):
            if change.deleted:
                for row in list(self.store.table(served).rows.values()):
                    self.store.remove(served, row.fresh())
            else:
                self._state.kinds.put(served)
        if change.deleted:
            self._state.kinds.drop(crd["spec"]["group"], crd["spec"]["names"]["plural"])
        elif change.old is None:
            self._establish(crd)

    def _establish(self, crd: Obj) -> None:
        """The status that the API server's own controllers write."""
        now = self._state.now()
        conditions = [
            {"type": type_, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
            for type_, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ]
        stored = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
        crd["status"] = {"conditions": conditions, "acceptedNames": crd["spec"]["names"], "storedVersions": stored}
        self.store.commit(CRD_KIND, crd)
