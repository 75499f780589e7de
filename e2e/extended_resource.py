"""What pods need to be scheduled, and what only one scenario's pods ask for: nobody else is disturbed.

Kubelets compare what a pod asks for with their own view of the node, which may be older than the scheduler's: a pod
that is bound at once could be rejected by a kubelet that knows the old capacity only, and with backoffLimit 0
its Job fails. A kubelet that knows no such resource checks nothing. So before a node gets more it gets none
for a moment, and the raise comes when its kubelet is known to have heard of that.
"""

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any, Final

from e2e.timeouts import TIMEOUT
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Forbidden
from jobset_gate.kube.resources import NAMESPACES, NODES, PODS
from jobset_gate_demo.fake import manifests
from tests.fakes.object_view import ObjectView

Json = dict[str, Any]
MARK: Final = "jobset-gate-e2e"
"""Label on the namespaces of scenarios."""
POLL_INTERVAL: Final = 0.2
NUMBERS: Final = count()


class ExtendedResource:
    """Of one scenario. `owner` is its namespace, `image` one that the nodes have."""

    def __init__(self, client: Client, resource: str, owner: str, image: str) -> None:
        self._client, self._resource, self._image = client, resource, image
        self._probes = f"{owner}-probes"
        self._counts: dict[str, int | None] = {}
        self._markers: set[tuple[str, str]] = set()
        self._ready = False

    @property
    def request(self) -> Json:
        """The resources of a container that needs one."""
        return _of(self._resource)

    async def set_capacity(self, node: str, count: int | None) -> None:
        """The node has so many, as a device plugin would say; None: it knows nothing of such resource."""
        before = self._counts.get(node)
        self._counts[node] = count
        if before is not None and count is not None and count > before:
            await self._reset_kubelet(node)
        await self._patch_capacity(node, {self._resource: count})

    async def clear(self) -> None:
        """Nothing is left of it on any node."""
        for node in self._counts:
            await self._patch_capacity(
                node, {self._resource: None, **{it: None for at, it in self._markers if at == node}}
            )
        if self._ready:
            await self._client.delete(NAMESPACES, self._probes)

    async def _reset_kubelet(self, node: str) -> None:
        """Returns when the node's kubelet knows of none: it then knows, too, that there is none of a marker."""
        marker = f"{self._resource}-{next(NUMBERS)}"
        self._markers.add((node, marker))
        await self._patch_capacity(node, {self._resource: None, marker: 0})
        while not await self._kubelet_rejects(node, marker):
            pass

    async def _kubelet_rejects(self, node: str, marker: str) -> bool:
        """Whether the kubelet refuses a pod that asks for one."""
        name = f"probe-{next(NUMBERS)}"
        main = manifests.container("main", self._image, command=["true"], resources=_of(marker))
        # Bound without a scheduler.
        spec = {"nodeName": node, "tolerations": [{"operator": "Exists"}], "containers": [main]}
        pod = {"metadata": {"name": name, "namespace": self._probes}, "spec": {"restartPolicy": "Never", **spec}}
        await self._create(pod)
        async with ObjectView(self._client, PODS, self._probes, field_selector=f"metadata.name={name}") as view:
            (seen,) = await view.until(lambda pods: any(map(_kubelet_answered, pods)), TIMEOUT)
        return bool(seen["status"]["phase"] == "Failed")

    async def _create(self, pod: Json) -> None:
        """Once the control plane has given the namespace the account that pods need."""
        if not self._ready:
            await self._client.create(NAMESPACES, {"metadata": {"name": self._probes, "labels": {MARK: "true"}}})
            self._ready = True
        while True:
            try:
                await self._client.create(PODS, pod)
            except Forbidden:
                await asyncio.sleep(POLL_INTERVAL)
                continue
            return

    async def _patch_capacity(self, node: str, counts: dict[str, int | None]) -> None:
        amounts = {resource: None if count is None else str(count) for resource, count in counts.items()}
        body = {"status": {"capacity": amounts, "allocatable": amounts}}
        while True:
            # An API server tries a patch again a few times only where kubelets and other scenarios write, too.
            with suppress(Conflict):
                await self._client.patch(NODES, node, body=body, patch=PatchType.MERGE, subresource="status")
                return


def _of(resource: str) -> Json:
    return {"requests": {resource: "1"}, "limits": {resource: "1"}}


def _kubelet_answered(pod: Json) -> bool:
    """The kubelet has refused or accepted it."""
    return pod["status"].get("phase") == "Failed" or bool(pod["status"].get("containerStatuses"))
