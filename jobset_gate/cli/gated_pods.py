"""The pods that our scheduling gate holds: found, and freed one by one with bounded concurrency."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Invalid, InvalidResponse, NotFound, Unreachable
from jobset_gate.kube.resources import PODS
from jobset_gate.objects.unstructured import as_list, as_map
from jobset_gate.podgroups import decode, wire
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.paging import ListScope, list_pages

PAGE = 500
UNBOUND = "spec.nodeName="
"""Field selector: a pod with a gate has no node. Our label is not asked for, since users may have removed it."""


@dataclass(slots=True)
class UngatedPods:
    """What became of some pods."""

    by_group: Counter[str] = field(default_factory=Counter)
    """By group."""
    gone: int = 0
    """Deleted meanwhile, or freed by somebody else."""
    failures: list[str] = field(default_factory=list)


async def gated_pods(client: Client, namespace: str | None, wanted: Callable[[MemberPod], bool]) -> list[MemberPod]:
    """Those that our gate holds and that are wanted, by namespace and name."""
    found: list[MemberPod] = []
    async for page, _ in list_pages(client, ListScope(PODS, namespace, field_selector=UNBOUND), PAGE):
        for raw in page:
            pod = decode.member(msgspec.json.decode(raw, type=wire.GroupPod))
            if pod.gated and wanted(pod):
                found.append(pod)
    return sorted(found, key=lambda it: (it.namespace, it.name))


def in_groups(group_names: Sequence[str], namespace: str) -> Callable[[MemberPod], bool]:
    """Whether a pod is in one of these groups of a namespace, whosever design they are."""
    keys = [PodGroupKey(design=design, namespace=namespace, name=name) for design in Flavor for name in group_names]
    labels = {group_label(key) for key in keys}

    def wanted(pod: MemberPod) -> bool:
        if pod.group_label:
            return pod.group_label in labels
        return pod.membership is not None and pod.membership.key in keys

    return wanted


def group_of(pod: MemberPod) -> str:
    """The group it is held for, for people."""
    if pod.membership is None or (pod.group_label and group_label(pod.membership.key) != pod.group_label):
        return f"{pod.namespace}/<of label {pod.group_label[:8]}>"
    return f"{pod.namespace}/{pod.membership.key.name or '<none>'} ({pod.membership.key.design})"


async def remove_gates(client: Client, held: Sequence[MemberPod], concurrency: int) -> UngatedPods:
    """Removes our gate from each of them; what goes wrong with one holds up no other."""
    freed, waiting = UngatedPods(), iter(held)

    async def work() -> None:
        for pod in waiting:
            await _free(client, pod, freed)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(concurrency, len(held))):
            tasks.create_task(work())
    return freed


async def _free(client: Client, pod: MemberPod, freed: UngatedPods) -> None:
    body = {
        "metadata": {"uid": pod.uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]},
    }
    try:
        await client.patch(
            PODS, pod.name, pod.namespace, body=body, patch=PatchType.STRATEGIC, field_manager=names.FIELD_MANAGER
        )
    except (NotFound, Conflict):
        freed.gone += 1
    except Invalid as refused:
        # An API server calls the UID immutable when the name is another pod's by now.
        if any(as_map(it).get("field") == "metadata.uid" for it in as_list(refused.details.get("causes"))):
            freed.gone += 1
            return
        freed.failures.append(f"pod {pod.namespace}/{pod.name}: {refused}")
    except (ApiError, InvalidResponse, Unreachable) as error:
        freed.failures.append(f"pod {pod.namespace}/{pod.name}: {error}")
    else:
        freed.by_group[group_of(pod)] += 1
