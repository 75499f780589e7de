"""The cluster's nodes: which take pods, what they offer, and - where they are kind's containers - their networks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from e2e import commands, gate
from e2e.environment import Environment
from e2e.extended_resource import ExtendedResource
from e2e.timeouts import TIMEOUT
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import NODES
from tests.fakes.object_view import ObjectView

Json = dict[str, Any]
POLL_INTERVAL: Final = 0.5
API_SERVER: Final = "6443"
"""Its port on a kind cluster's control plane."""


class Nodes:
    """Those that gangs run on."""

    def __init__(self, environment: Environment, client: Client) -> None:
        self._environment, self._client = environment, client

    async def workers(self) -> list[str]:
        """At least two, or the cluster is too small for the suite.

        One that another scenario has just given back may be ready and keep a taint for up to five seconds: the node
        controller adds NoExecute where its round meets a node that is not ready yet, and only its next round takes it
        off. Pods tolerate that one by default, so a node that ran a gang before may still have it.
        """
        async with ObjectView(self._client, NODES) as view:
            nodes = await view.until(lambda seen: sum(map(_takes_pods, seen)) >= 2, TIMEOUT)
        return sorted(str(node["metadata"]["name"]) for node in nodes if _takes_pods(node))

    async def address(self, name: str) -> str:
        """Its address among nodes."""
        node = await self._client.get(NODES, name)
        return next(str(one["address"]) for one in node["status"]["addresses"] if one["type"] == "InternalIP")

    # --- What they offer ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def extended_resource(self, owner: str) -> AsyncIterator[ExtendedResource]:
        """A resource of that owner's, none of it anywhere yet; taken away from all nodes at the end."""
        extended = ExtendedResource(self._client, f"test.{names.DOMAIN}/{owner}", owner, self._environment.small_image)
        try:
            yield extended
        finally:
            await extended.clear()

    @asynccontextmanager
    async def not_joined(self, node: str) -> AsyncIterator[None]:
        """Meanwhile the cluster does not know it: its kubelet is stopped and its Node deleted."""
        await self.run(node, "systemctl", "stop", "kubelet")
        try:
            await self._client.delete(NODES, node)
            yield
        finally:
            await self.run(node, "systemctl", "start", "kubelet")
            await self._until_ready(node)

    async def _until_ready(self, node: str) -> None:
        async with ObjectView(self._client, NODES) as view:
            await view.until(lambda all_: any(one["metadata"]["name"] == node and _back(one) for one in all_), TIMEOUT)

    # --- Their networks ----------------------------------------------------------------------------------------------

    async def run(self, node: str, *command: str) -> str:
        """A program inside the node. Raises commands.Failed."""
        assert self._environment.kind, "only kind's nodes are containers here"
        return await asyncio.to_thread(commands.run, "docker", "exec", node, *command)

    async def container_log(self, node: str, pod: Json, container: str) -> str:
        """What a container has written so far, read on its node: without an API server. "" before it has started."""
        meta = pod["metadata"]
        folder = f"/var/log/pods/{meta['namespace']}_{meta['name']}_{meta['uid']}/{container}"
        return await self.run(node, "sh", "-c", "cat $0/*.log 2>/dev/null || true", folder)

    async def until_logged(self, node: str, pod: Json, container: str, text: str) -> None:
        """Until it has written that text."""
        async with asyncio.timeout(TIMEOUT):
            while text not in await self.container_log(node, pod, container):  # noqa: ASYNC110 - a file in a container
                await asyncio.sleep(POLL_INTERVAL)

    @asynccontextmanager
    async def no_stream(self, node: str) -> AsyncIterator[None]:
        """Pods on that node and the gate service do not hear each other meanwhile."""
        port = str(gate.STREAM_PORT)
        async with self._dropping(node, ("FORWARD", "--dport", port), ("FORWARD", "--sport", port)):
            yield

    @asynccontextmanager
    async def no_api_server(self, node: str) -> AsyncIterator[None]:
        """That node's kubelet and the API server do not hear each other meanwhile."""
        async with self._dropping(node, ("OUTPUT", "--dport", API_SERVER), ("INPUT", "--sport", API_SERVER)):
            yield

    @asynccontextmanager
    async def _dropping(self, node: str, *rules: tuple[str, ...]) -> AsyncIterator[None]:
        """Both directions: on a connection that stands, what one side says arrives even if nobody can answer."""
        tool = ("iptables", "--wait", "5")
        async with AsyncExitStack() as healing:
            for chain, *match in rules:
                rule = (chain, "--protocol", "tcp", *match, "--jump", "DROP")
                await self.run(node, *tool, "--insert", *rule)
                healing.push_async_callback(self.run, node, *tool, "--delete", *rule)
            yield


def _back(node: Json) -> bool:
    """Ready and, which the node controller says a little later (see `workers`), open to pods."""
    conditions = node["status"].get("conditions") or ()
    return _takes_pods(node) and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _takes_pods(node: Json) -> bool:
    taints = node["spec"].get("taints") or ()
    return not any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in taints)
