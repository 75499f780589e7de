"""The played kubelet runs pods that are gated one by one: their environment, and what their barrier keeps (K3)."""

from __future__ import annotations

from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind
from jobset_gate.fake.kubelet import PodMatch
from jobset_gate.fake.kubelet.pods import KubeletPod
from jobset_gate.fake.objects import FakeObject
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import PODS
from tests.fakes import start_groups
from tests.fakes.start_groups import StartGroup
from tests.fakes.wire_objects import owner
from tests.unit.fake.world import FakeClusterStory, on_embedded

ONE = PodMatch(name="set-0")


async def send(world: FakeClusterStory, kind: VerdictKind | None) -> None:
    """The annotation of the first pod: the verdict of its gang, addressed to it, or none any more."""
    uid = (await world.get(PODS, "set-0"))["metadata"]["uid"]
    text = None
    if kind is not None:
        its = Verdict(kind=kind, generation=Generation("the owner's", 3, 0), cause=names.REASON_STARTED, message="so")
        text = verdict_codec.render(verdict_codec.addressed(its, uid))
    body = {"metadata": {"annotations": {names.VERDICT: text}}}
    await world.client.patch(PODS, "set-0", world.namespace, body=body, patch=PatchType.MERGE)


def barrier(pod: dict[str, Any]) -> dict[str, Any]:
    statuses = pod.get("status", {}).get("initContainerStatuses") or [{"state": {}, "restartCount": 0}]
    return dict(statuses[-1])


def main(pod: dict[str, Any]) -> dict[str, Any]:
    return dict(pod["status"]["containerStatuses"][0])


def exits(pod: dict[str, Any]) -> int | None:
    """The barrier's exit code, None while it does not exit."""
    ended = barrier(pod)["state"].get("terminated") or {}
    code: int | None = ended.get("exitCode")
    return code


def test_its_environment_names_the_pod_itself_and_its_token_in_the_stream() -> None:
    made = start_groups.gated(start_groups.pod("set-0", owner("StatefulSet", "set", "u")), "http://gate", "t0ken")
    made["metadata"]["uid"] = "u-pod"
    pod = KubeletPod(msgspec.convert(made, FakeObject))
    assert pod.env(pod.init[-1]) == {
        names.ENV_UID: "u-pod",
        names.ENV_ATTEMPT: "0",
        names.ENV_EPOCH: "0",
        names.ENV_LIMIT: "",
        names.ENV_TOKEN: "t0ken",
        names.ENV_STREAM: "http://gate/v1/pods/default/t0ken",
        names.ENV_POD: "u-pod",
    }


def test_a_released_pod_whose_node_boots_passes_without_anybody() -> None:
    async def story(world: FakeClusterStory) -> None:
        await StartGroup(world.client).create()
        await world.until_one(PODS, "set-0", lambda pod: "running" in barrier(pod)["state"])
        await send(world, VerdictKind.RELEASE)
        await world.until_one(PODS, "set-0", lambda pod: main(pod)["started"])
        await send(world, None)
        world.kubelets.restart_sandbox(ONE)
        again = await world.until_one(PODS, "set-0", lambda pod: main(pod)["restartCount"] and main(pod)["started"])
        assert (exits(again), barrier(again)["restartCount"]) == (0, 1)
        assert exits(await world.get(PODS, "set-1")) is None, "its neighbour was released by nobody"

    on_embedded(story)


def test_a_timeout_is_not_kept() -> None:
    async def story(world: FakeClusterStory) -> None:
        await StartGroup(world.client, timeout=None).create()
        await world.until_one(PODS, "set-0", lambda pod: "running" in barrier(pod)["state"])
        await send(world, VerdictKind.TIMEOUT)
        await world.until_one(PODS, "set-0", lambda pod: barrier(pod)["restartCount"] > 1)
        await send(world, None)
        world.kubelets.restart_sandbox(ONE)
        await world.until_one(PODS, "set-0", lambda pod: "running" in barrier(pod)["state"])
        await send(world, VerdictKind.RELEASE)
        await world.until_one(PODS, "set-0", lambda pod: exits(pod) == 0)

    on_embedded(story)
