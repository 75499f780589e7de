"""What an operator does with the installed release, for scenarios: upgrades, tests, removes, and looks what is left."""

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from e2e import admission_load, gate, helm, leftovers
from e2e.cluster import E2eCluster
from e2e.environment import Environment
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT
from jobset_gate import names
from jobset_gate.kube.errors import KubeError

Json = dict[str, Any]
POLL_INTERVAL: Final = 0.5


class ReleaseAdmin:
    """With Helm and kubectl."""

    def __init__(self, environment: Environment) -> None:
        self.cluster = E2eCluster(environment.kubeconfig, environment.kind)
        self._release = gate.release(environment.kubeconfig)
        self._usual = gate.values(environment.image, environment.small_image, environment.steady_node)

    async def apply(self, chart: Path = helm.CHART, changes: Mapping[str, Any] | None = None) -> None:
        """Installs or upgrades with the suite's values and these; returns when only the new pods are there, and asked.

        Until then API servers may go on asking the old ones, on connections that they have; and a Service whose pods
        are ready reaches nobody for a moment where there was none before. Raises commands.Failed.
        """
        await asyncio.to_thread(self._release.apply, merged(self._usual, changes or {}), chart)
        end = time.monotonic() + TIMEOUT
        while await self._leaving():
            assert time.monotonic() < end, "pods of the release before are still there"
            await asyncio.sleep(POLL_INTERVAL)
        await asyncio.to_thread(gate.wait_in_force, self.cluster)

    async def _leaving(self) -> bool:
        """Whether there are pods on their way out."""
        pods = json.loads(await self.kubectl("get", "pods", "--output=json"))["items"]
        return any("deletionTimestamp" in pod["metadata"] for pod in pods)

    async def install(self, changes: Mapping[str, Any]) -> None:
        """As the suite does it: returns when JobSets get their barrier."""
        await asyncio.to_thread(gate.install, self.cluster, merged(self._usual, changes))

    async def test(self) -> str:
        return await asyncio.to_thread(self._release.test)

    async def no_controllers(self) -> None:
        """None run, and none will."""
        await self.kubectl("scale", f"deployment/{gate.CONTROLLER}", "--replicas=0")
        await self.kubectl("wait", "--for=delete", "pod", f"--selector={gate.CONTROLLERS}", "--timeout=100s")

    async def remove(self) -> None:
        await asyncio.to_thread(self._release.remove)

    async def kubectl(self, *args: str) -> str:
        """In the release's namespace."""
        return await asyncio.to_thread(self.cluster.kubectl, "--namespace", gate.NAMESPACE, *args)

    async def left_behind(self, within: float) -> set[str]:
        """What is there after at most so many seconds: pods need some to end."""
        end = time.monotonic() + within
        while True:
            found = await asyncio.to_thread(leftovers.all_of, self.cluster)
            if not found or time.monotonic() > end:
                return found
            await asyncio.sleep(POLL_INTERVAL)

    async def field_in_crd(self) -> bool:
        return await asyncio.to_thread(leftovers.field_in_crd, self.cluster, names.JOBSET_CRD, names.CONFIG_FIELD)


async def until_barriers_injected(scenario: Scenario) -> None:
    """Until some in a row get their barrier, from whichever replica."""
    held = 0
    async with asyncio.timeout(TIMEOUT):
        while held < gate.IN_A_ROW:
            try:
                held = held + 1 if admission_load.has_barrier(await admission_load.admit_once(scenario)) else 0
            except KubeError:
                held = 0
            if held == 0:
                await asyncio.sleep(POLL_INTERVAL)


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> Json:
    """As Helm merges: maps by key, all else replaced."""
    both = dict(values)
    for key, change in changes.items():
        before = both.get(key)
        both[key] = merged(before, change) if isinstance(before, dict) and isinstance(change, Mapping) else change
    return both
