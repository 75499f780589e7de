"""The shipped controller, for the groups of all namespaces as it is installed, asked for its figures."""

from __future__ import annotations

import asyncio
import contextlib
import gc

from prometheus_client import CollectorRegistry

from bench.children import command_loop
from bench.children.command_loop import Json
from controllers.manager import Manager, ManagerOptions
from jobset_gate.cli import logs
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.settings import Groups

DECISIONS = "jobset_gate_group_decision_seconds"


class GroupControllerProcess:
    """The commands."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._running: asyncio.Task[None] | None = None

    async def run(self, kubeconfig: str, namespace: str) -> Json:
        """Returns once it leads and its caches are full."""
        options = ManagerOptions(
            namespace=namespace, identity="bench", groups=Groups(),
            pod_group_crds=False, extend_crd=False, registry=self._registry,
        )  # fmt: skip
        access = await from_kubeconfig(kubeconfig)
        gc.collect()
        gc.freeze()  # as the program does that is shipped
        manager = Manager(access, options)
        self._running = asyncio.create_task(manager.run())
        leading = asyncio.create_task(manager.leading.wait())
        await asyncio.wait((leading, self._running), return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            self._running.result()
        return command_loop.usage()

    async def figures(self) -> Json:
        """What it has used, and its decisions by seconds, as the histogram has them."""
        assert self._running is not None, "it does not run"
        if self._running.done():
            self._running.result()
        samples = [sample for family in self._registry.collect() for sample in family.samples]
        buckets = {one.labels["le"]: one.value for one in samples if one.name == f"{DECISIONS}_bucket"}
        return {**command_loop.usage(), "decisions": buckets}

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running


async def main() -> None:
    """Serves until the parent goes."""
    logs.configure(LogFormat.JSON, LogLevel.ERROR)
    its = GroupControllerProcess()
    await command_loop.serve({"run": its.run, "figures": its.figures})
    await its.stop()


if __name__ == "__main__":
    asyncio.run(main())
