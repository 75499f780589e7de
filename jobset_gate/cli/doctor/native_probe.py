"""Proves, by a pair of pods, whether this cluster's scheduler places native gangs: its gates cannot be seen (G6).

A PodGroup wants two pods and gets one. If that one is bound, nobody holds it. If it is not, the second one comes, and
both must be bound.
"""

import asyncio
import secrets
from typing import Any, Final

from controllers.podgroups import native
from jobset_gate import names
from jobset_gate.cli.doctor.check import ClusterReader, Finding, NotReadable, error, ok
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, Forbidden, NotFound
from jobset_gate.kube.resources import PODS, Resource, native_pod_groups
from jobset_gate.objects.unstructured import as_list, nested
from jobset_gate.settings import Barrier

BIND_SECONDS: Final = 10.0
"""Seconds for which a pod is given the time to be bound."""
POLL_SECONDS: Final = 0.5
"""Seconds between two looks at them."""

NOBODY: Final = 65534
_LOCKED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
NOT_SERVED: Final = (
    "the API server has no native PodGroups",
    "switch on their API and the feature gate GenericWorkload (Kubernetes 1.36 or newer)",
)
DROPPED: Final = (
    "the API server drops spec.schedulingGroup from pods",
    "switch on the feature gate GenericWorkload of the API server",
)
NOT_HELD: Final = (
    "one pod of a gang of two was bound alone",
    "switch on the scheduler's feature gate GangScheduling (Kubernetes 1.36) or GenericWorkload (from 1.37 on)",
)
NOT_BOUND: Final = (
    "neither pod of a gang of two was bound in time",
    "see whether there is room for two pods, and the scheduler's log",
)


async def probe_native(
    client: Client, namespace: str, *, patience: float = BIND_SECONDS, image: str = Barrier().image
) -> tuple[str, str] | None:
    """What is wrong, and what to switch on; None if it works. Takes up to twice `patience`; leaves nothing behind."""
    resource = await client.first_served(map(native_pod_groups, native.VERSIONS))
    if resource is None:
        return NOT_SERVED
    probe = f"{names.PROGRAM}-native-probe-{secrets.token_hex(4)}"
    pair = [_pod(probe, number, image) for number in (1, 2)]
    policy = {"schedulingPolicy": {"gang": {"minCount": len(pair)}}}
    try:
        await client.create(resource, {"metadata": {"name": probe}, "spec": policy}, namespace)
        first = await client.create(PODS, pair[0], namespace)
        if "schedulingGroup" not in first["spec"]:
            return DROPPED
        if await _bound(client, namespace, probe, 1, patience):
            return NOT_HELD
        await client.create(PODS, pair[1], namespace)
        return None if await _bound(client, namespace, probe, len(pair), patience) else NOT_BOUND
    finally:
        await _clean_up(client, namespace, probe, resource, pair)


async def _bound(client: Client, namespace: str, probe: str, count: int, patience: float) -> bool:
    """Whether so many of the pods get a node in that time."""
    try:
        async with asyncio.timeout(patience):
            while True:
                listed = await client.list(PODS, namespace, label_selector=f"{names.NATIVE_PROBE}={probe}")
                if sum(bool(nested(it, "spec", "nodeName")) for it in as_list(listed.get("items"))) >= count:
                    return True
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        return False


async def _clean_up(client: Client, namespace: str, probe: str, resource: Resource, pair: list[dict[str, Any]]) -> None:
    """All of it is tried, whatever becomes of the rest."""
    taken = [client.delete(PODS, pod["metadata"]["name"], namespace, grace_seconds=0) for pod in pair]
    done = await asyncio.gather(*taken, client.delete(resource, probe, namespace), return_exceptions=True)
    for refusal in done:
        if isinstance(refusal, BaseException) and not isinstance(refusal, NotFound):
            raise refusal


def _pod(probe: str, number: int, image: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{probe}-{number}", "labels": {names.NATIVE_PROBE: probe}},
        "spec": {
            "schedulingGroup": {"podGroupName": probe},
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            # As a namespace may ask of all its pods; nobody cares whether it runs.
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{"name": "probe", "image": image, "securityContext": _LOCKED}],
        },
    }


async def native_gangs(reader: ClusterReader) -> list[Finding]:
    """Creates two pods and a PodGroup, and takes them away again."""
    try:
        wrong = await probe_native(reader.client, reader.dry_run_namespace)
    except ApiError as no:
        forbidden = isinstance(no, Forbidden)
        what = "cannot create pods and native PodGroups" if forbidden else "native gangs could not be tried"
        raise NotReadable(f"{what} in namespace {reader.dry_run_namespace}: {no.message}") from no
    if wrong is None:
        return [ok("the scheduler places native gangs", "two pods of one gang were bound together")]
    why, remedy = wrong
    return [error("the scheduler does not place native gangs", why, f"set groups.native to Off, or {remedy}")]
