"""A whole controller and a whole embedded cluster, in virtual time, and the requests to both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from controllers.barrier import crd_patcher
from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import Verdict
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.settings import Barrier, Settings
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.cluster import Actors, embedded_cluster
from tests.fakes.faults import Faults, Rule
from tests.fakes.jobsets import injected

Json = dict[str, Any]
SPACE = "default"
GANG = "train"


class EmbeddedController:
    """One gang `train` of one Job."""

    def __init__(self, cluster: Actors, faults: Faults, manager: Manager) -> None:
        self.cluster, self.faults, self.manager = cluster, faults, manager
        self._running = asyncio.create_task(manager.run())
        self.kubelets, self.client = cluster.kubelets, cluster.client

    async def stop(self) -> None:
        """The controller ends; the cluster goes on."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def restart(self, **changes: Any) -> None:
        """A new process, after `stop`; `changes` are other options."""
        options = replace(self.manager.options, registry=CollectorRegistry(), **changes)
        self.manager = Manager(self.cluster.access, options)
        self._running = asyncio.create_task(self.manager.run())

    async def make(self, pods: int = 2, timeout: int | None = 30, name: str = GANG, **metadata: Any) -> Json:
        """The gang as the webhook would have it stored. Its Job makes up for lost pods."""
        workers = manifests.replicated_job(parallelism=pods, backoff_limit=6)
        config = {} if timeout is None else {names.TIMEOUT_FIELD: timeout}
        settings = Settings(barrier=Barrier(stream_url=self.manager.stream_url or None))
        manifest = manifests.jobset(name, SPACE, replicated_jobs=[workers], config=config, **metadata)
        gated = injected(manifest, settings, token="t0ken")
        return await self.client.create(JOBSETS, gated, SPACE)

    async def config_map(self) -> Json:
        try:
            return await self.client.get(CONFIGMAPS, names.config_map_name(GANG), SPACE)
        except NotFound:
            return {}

    async def verdict(self) -> Verdict | None:
        return verdict_codec.parse((await self.config_map()).get("data", {}).get(names.KEY_VERDICT, ""))

    async def pod(self, index: int) -> Json:
        """The pod of that completion index; the last one made, if there are several."""
        found = [
            pod
            for pod in (await self.client.list(PODS, SPACE))["items"]
            if pod["metadata"]["annotations"][names.JOB_COMPLETION_INDEX] == str(index)
        ]
        return max(found, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    async def until(self, rule: Rule) -> None:
        """Until this fault has struck."""
        async with asyncio.timeout(600):
            while not rule.struck:  # noqa: ASYNC110 - virtual time costs nothing
                await asyncio.sleep(0.05)

    async def until_verdict(self, seconds: float = 600.0) -> Verdict:
        async with asyncio.timeout(seconds):
            while (found := await self.verdict()) is None:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
        return found


@asynccontextmanager
async def embedded_controller(
    *, stream: bool = False, workers: int = 32, options: Mapping[str, Any] | None = None
) -> AsyncIterator[EmbeddedController]:
    """`options`: further ones of the controller."""
    faults = Faults()
    async with embedded_cluster(hooks=faults) as made:
        await crd_patcher.extend_crd(made.client)
        settings = ManagerOptions(
            leader_elect=False,
            extend_crd=False,
            clock=made.clock,
            stream_port=0 if stream else None,
            workers=workers,
            **(options or {}),
        )
        manager = Manager(made.access, settings)
        at = EmbeddedController(made, faults, manager)
        try:
            await manager.leading.wait()
            if stream:
                await manager.streaming.wait()
            yield at
        finally:
            await at.stop()
