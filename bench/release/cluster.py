"""The cluster under measurement: its nodes, its API server's numbers, and what is put into it and taken out again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from bench.release import deployments
from bench.release.tools import output
from jobset_gate import names
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import JOBSETS, MUTATING_WEBHOOKS, NODES, PODS

Json = dict[str, Any]

TIMEOUT = 180.0
POLL_INTERVAL = 0.5
_KIND = "kind://"


class UnsuitableCluster(Exception):
    """This cluster cannot be measured; says why."""


@dataclass(frozen=True, slots=True)
class MeasuredCluster:
    """Where it is and which of its nodes does what."""

    client: Client
    kubeconfig: str
    node: str
    """Where the gangs run."""
    other: str
    """Where the controllers run; the same node if there is only one."""
    kind: bool
    """Its nodes are containers of the local docker."""
    facts: Json

    async def kubectl(self, *arguments: str, stdin: bytes | None = None) -> str:
        return await output("kubectl", "--kubeconfig", self.kubeconfig, *arguments, stdin=stdin)

    async def raw(self, path: str) -> str:
        """A document of the API server."""
        return await self.kubectl("get", "--raw", path)

    async def on_node(self, node: str, *command: str) -> str:
        """Runs a command on a node of a kind cluster."""
        return await output("docker", "exec", node, *command)

    async def logs(self, jobset: str, namespace: str) -> str:
        """All containers' lines of a gang, each with pod, container and moment."""
        which = ("--namespace", namespace, "--selector", f"{names.JS_NAME}={jobset}")
        return await self.kubectl("logs", *which, "--all-containers", "--prefix", "--timestamps", "--tail=-1")

    async def clear(self, jobset: str, namespace: str) -> None:
        """Deletes a gang and waits until its kubelets have removed the last pod. Raises Unfit if they do not."""
        with suppress(NotFound):
            await self.client.delete(JOBSETS, jobset, namespace, propagation="Background")
        try:
            async with asyncio.timeout(TIMEOUT):
                while await self.pods(jobset, namespace):  # noqa: ASYNC110 - asked for seldom, and nobody else knows
                    await asyncio.sleep(POLL_INTERVAL)
        except TimeoutError as late:
            raise UnsuitableCluster(f"pods of {namespace}/{jobset} are still there after {TIMEOUT:.0f} s") from late

    async def pods(self, jobset: str, namespace: str) -> Sequence[Json]:
        """A gang's pods."""
        listed = await self.client.list(PODS, namespace, label_selector=f"{names.JS_NAME}={jobset}")
        pods: Sequence[Json] = listed["items"]
        return pods


@asynccontextmanager
async def reached(kubeconfig: str) -> AsyncIterator[MeasuredCluster]:
    """The cluster of a kubeconfig. Raises Unfit if a controller of ours would take part that is none of this."""
    async with Client(await access.load_access(kubeconfig), user_agent="bench-release") as client:
        await _refuse_an_installed_gate(client)
        workers = _workers((await client.list(NODES))["items"])
        if not workers:
            raise UnsuitableCluster("no node is ready and open to pods")
        info = workers[0]["status"]["nodeInfo"]
        yield MeasuredCluster(
            client=client,
            kubeconfig=kubeconfig,
            node=_name(workers[0]),
            other=_name(workers[-1]),
            kind=all((node["spec"].get("providerID") or "").startswith(_KIND) for node in workers),
            facts={
                "kubelet": info["kubeletVersion"],
                "runtime": info["containerRuntimeVersion"],
                "kernel": info["kernelVersion"],
                "system": info["osImage"],
                "workers": len(workers),
            },
        )


@asynccontextmanager
async def kept(cluster: MeasuredCluster, image: str) -> AsyncIterator[None]:
    """Puts the controllers in, waits until they are ready, and takes all that it made out again."""
    made = deployments.manifests(image, cluster.other)
    text = "\n---\n".join(json.dumps(each) for each in made).encode()
    try:
        await cluster.kubectl("apply", "--server-side", "--filename", "-", stdin=text)
        ready = ("rollout", "status", "--namespace", deployments.SYSTEM, f"--timeout={TIMEOUT:.0f}s")
        for each in made:
            if each["kind"] == "Deployment":
                await cluster.kubectl(*ready, f"deployment/{each['metadata']['name']}")
        yield
    finally:
        await cluster.kubectl("delete", "--ignore-not-found", "--filename", "-", stdin=text)


async def _refuse_an_installed_gate(client: Client) -> None:
    hooks = (await client.list(MUTATING_WEBHOOKS, label_selector=f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"))["items"]
    if hooks:
        found = ", ".join(_name(hook) for hook in hooks)
        raise UnsuitableCluster(f"{found}: jobset-gate is installed there and would look after the gangs of all ways")


def _workers(nodes: Sequence[Json]) -> list[Json]:
    """Ready nodes without taints, by name."""
    return sorted((node for node in nodes if _ready(node) and not node["spec"].get("taints")), key=_name)


def _ready(node: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])


def _name(body: Json) -> str:
    name: str = body["metadata"]["name"]
    return name
