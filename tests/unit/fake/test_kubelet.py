"""Scheduler, kubelets and their barriers in virtual time: what they write, the verdicts that they read, faults."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Self

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.clock import EPOCH
from jobset_gate.fake.kubelet import Behaviour, PodFault, PodMatch
from jobset_gate.fake.objects import stamp
from jobset_gate.kube.resources import JOBSETS, PODS
from tests.unit.fake.gates import gated, plain
from tests.unit.fake.world import (
    FakeClusterStory,
    condition,
    container_status,
    has,
    label,
    living,
    on_embedded,
    running,
    spread,
    state,
)

BARRIER = names.BARRIER_CONTAINER


def at_barrier(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod for pod in living(pods) if "running" in state(pod, BARRIER)]


def why(pod: dict[str, Any], container: str) -> str:
    """The reason for which a container waits, "" if it does not."""
    return str(state(pod, container).get("waiting", {}).get("reason", ""))


async def waiting(world: FakeClusterStory, count: int) -> list[dict[str, Any]]:
    """The pods at the barrier, once there are so many."""
    return at_barrier(await world.until(PODS, lambda pods: len(at_barrier(pods)) == count, 4000))


def test_a_pod_at_the_barrier_looks_as_a_kubelet_writes_it() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=1))
        pod = (await waiting(world, 1))[0]
        status = pod["status"]
        assert status["phase"] == "Pending"
        assert has(pod, "PodScheduled")
        assert has(pod, "Initialized", "False")
        assert (condition(pod, "Initialized") or {})["message"] == f"containers with incomplete status: [{BARRIER}]"
        assert has(pod, "Ready", "False")
        barrier = container_status(pod, BARRIER)
        assert barrier["ready"] is False
        assert barrier["started"] is True
        assert barrier["state"] == {"running": {"startedAt": stamp(EPOCH + 1)}}
        assert state(pod, "main") == {"waiting": {"reason": "PodInitializing"}}
        assert status["startTime"] == stamp(EPOCH)
        assert status["podIP"].startswith("10.")

    on_embedded(story, behaviour=Behaviour())


def test_init_containers_run_one_after_another_and_sidecars_stay() -> None:
    sidecar = manifests.container("proxy", restartPolicy="Always")
    fetch = manifests.container("fetch")

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=1, init=(sidecar, fetch)))
        pod = (await waiting(world, 1))[0]
        assert "running" in state(pod, "proxy")
        assert container_status(pod, "proxy")["ready"] is True
        assert state(pod, "fetch")["terminated"]["exitCode"] == 0
        assert container_status(pod, "fetch")["ready"] is True
        proxy, fetch_ended = state(pod, "proxy")["running"], state(pod, "fetch")["terminated"]
        assert proxy["startedAt"] <= fetch_ended["startedAt"] < fetch_ended["finishedAt"]
        assert fetch_ended["finishedAt"] <= state(pod, BARRIER)["running"]["startedAt"]

    on_embedded(story, behaviour=Behaviour(init_seconds=5.0))


def test_an_image_that_cannot_be_pulled_is_backed_off_until_the_fault_is_cleared() -> None:
    async def story(world: FakeClusterStory) -> None:
        stuck = world.kubelets.inject_fault(PodFault(PodMatch(index=1), image_pull_backoff=BARRIER))
        await world.create(JOBSETS, gated(pods=2))
        pods = await world.until(PODS, lambda pods: any(why(pod, BARRIER) == "ImagePullBackOff" for pod in pods))
        assert len(at_barrier(pods)) == 1
        world.kubelets.clear_fault(stuck)
        await waiting(world, 2)

    on_embedded(story)


def test_pods_wait_for_nodes_and_nodes_take_only_so_many() -> None:
    """The condition has the scheduler's reason; a late node takes them."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain(pods=5))
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        refused = [condition(pod, "PodScheduled") for pod in pods if not pod["spec"].get("nodeName")]
        assert len(refused) == 3
        for scheduled in refused:
            assert scheduled is not None
            assert scheduled["status"] == "False"
            assert scheduled["reason"] == "Unschedulable"
            assert scheduled["message"] == "0/1 nodes are available: 1 Too many pods."
        await world.kubelets.add_node(late)
        assert await world.until(PODS, lambda pods: len(running(pods)) == 4)

    first, late = spread(2, 2)
    on_embedded(story, nodes=[first])


def test_a_vanished_node_takes_its_pods_along_and_they_are_replaced_elsewhere() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain(pods=4, backoff_limit=6))
        await world.until(PODS, lambda pods: len(running(pods)) == 4)
        lost = await world.kubelets.vanish_node("node-0")
        assert len(lost) == 2
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 4, 200)
        assert {pod["spec"]["nodeName"] for pod in running(pods)} == {"node-1"}
        assert {pod["metadata"]["name"] for pod in pods}.isdisjoint(name for _, name in lost)

    on_embedded(story, nodes=spread(2))


def test_a_deleted_pod_is_failed_before_it_is_gone() -> None:
    """So that the Job controller can count it: the last thing a kubelet writes."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=1))
        pod = (await waiting(world, 1))[0]
        seen: list[dict[str, Any]] = []

        def gone(pods: list[dict[str, Any]]) -> bool:
            seen.extend(it for it in pods if it["metadata"]["uid"] == pod["metadata"]["uid"])
            return all(it["metadata"]["uid"] != pod["metadata"]["uid"] for it in pods)

        async def delete() -> None:
            await world.client.delete(PODS, pod["metadata"]["name"], world.namespace)

        await asyncio.gather(world.until(PODS, gone), delete())
        last = seen[-1]["status"]
        assert last["phase"] == "Failed"
        assert state(seen[-1], BARRIER)["terminated"]["exitCode"] == 143
        assert state(seen[-1], "main")["terminated"]["reason"] == "ContainerStatusUnknown"

    on_embedded(story)


# --- Verdicts --------------------------------------------------------------------------------------------------------


def verdict(pod: dict[str, Any], kind: str = "release", text: str = "") -> str:
    reason = "AllPodsStarted" if kind == "release" else "TimedOut"
    return f"{kind} {label(pod, names.JS_UID)} 0 0 {reason}\n{text}"


def test_a_release_arrives_by_annotation_in_a_moment_and_by_config_map_with_the_next_sync() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=2))
        first, _ = await waiting(world, 2)
        written = world.now
        note = {"metadata": {"annotations": {names.VERDICT: verdict(first)}}}
        await world.merge(PODS, first["metadata"]["name"], note)
        await world.until(PODS, lambda pods: len(running(pods)) == 1)
        assert world.now - written < 2
        written = world.now
        await world.verdict("gang", verdict(first))
        await world.until(PODS, lambda pods: len(running(pods)) == 2, 200)
        assert 60 <= world.now - written < 65

    on_embedded(story, behaviour=Behaviour())


def test_a_timeout_fails_every_barrier_with_the_verdicts_message_and_then_the_jobset() -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, gated(pods=2, restart_policy="Never", backoff_limit=0))
        pods = await waiting(world, 2)
        text = "timed out after 300s: 2/3 pods started"
        for pod in pods:
            note = {names.VERDICT: verdict(pod, "timeout", text + "\n")}
            await world.merge(PODS, pod["metadata"]["name"], {"metadata": {"annotations": note}})
        seen: list[dict[str, Any]] = []

        def failed(pods: list[dict[str, Any]]) -> bool:
            seen[:] = [pod for pod in pods if "terminated" in state(pod, BARRIER)]
            return len(seen) == 2

        await world.until(PODS, failed)
        for pod in seen:
            ended = state(pod, BARRIER)["terminated"]
            assert (ended["exitCode"], ended["message"]) == (names.EXIT_TIMED_OUT, text)
            assert pod["status"]["phase"] == "Failed"
        gone = await world.until_condition(JOBSETS, "gang", "Failed")
        assert "gang-workers-0" in gone["message"]

    on_embedded(story)


class GateService:
    """It holds the barriers' requests and sends the test's answers."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._changed = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1/gangs/default/gang/token"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.answer("")
        await self.until_held(0)

    async def until_held(self, count: int) -> None:
        while len(self._open) != count:
            self._changed.clear()
            await self._changed.wait()

    def answer(self, text: str) -> None:
        """All that is held gets this, after a heartbeat, and is closed."""
        for writer in self._open:
            writer.write(b"\n" + text.encode())
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.paths.append((await reader.readuntil(b"\r\n\r\n")).split()[1].decode())
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        self._open.add(writer)
        self._changed.set()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        self._open.discard(writer)
        self._changed.set()


def test_a_release_over_the_stream_needs_no_other_channel_and_what_is_torn_is_requested_again() -> None:
    async def story(world: FakeClusterStory) -> None:
        async with GateService() as gate:
            await world.create(JOBSETS, gated(pods=2, stream=gate.url))
            pods = await waiting(world, 2)
            await gate.until_held(2)
            own = f"/v1/gangs/default/gang/token/{label(pods[0], names.JS_UID)}/0/0/"
            assert sorted(gate.paths) == sorted(own + pod["metadata"]["uid"] for pod in pods)
            gate.answer(verdict(pods[0])[:-1])
            await gate.until_held(0)
            await gate.until_held(2)
            answered = world.now
            gate.answer(verdict(pods[0]))
            await world.until(PODS, lambda pods: len(running(pods)) == 2)
            assert world.now - answered < 2

    on_embedded(story, behaviour=Behaviour())


def test_a_firewall_breaks_what_is_open_and_lets_nothing_through_until_it_is_cleared() -> None:
    async def story(world: FakeClusterStory) -> None:
        async with GateService() as gate:
            await world.create(JOBSETS, gated(pods=2, stream=gate.url))
            pods = await waiting(world, 2)
            await gate.until_held(2)
            wall = world.kubelets.inject_fault(PodFault(PodMatch(index=1), firewalled=True))
            await gate.until_held(1)
            await world.let_pass(300)
            walled = next(pod["metadata"]["uid"] for pod in pods if "-0-1-" in pod["metadata"]["name"])
            assert sum(path.endswith(walled) for path in gate.paths) == 1
            world.kubelets.clear_fault(wall)
            await gate.until_held(2)

    on_embedded(story)
