"""G2: while the pod webhook cannot be reached, nobody else's pod is refused; a group's is, and is not let in unheld."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from urllib.parse import urlsplit

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.admission_server import BUNDLE
from tests.fakes.grouped_pods import owned
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment, Json
from webhook.server import serve

AT_ONCE = 32
ORDINARY = 100
OTHERS = 40
"""Pods of each other scheduler, and of DaemonSets."""


@pytest.fixture
async def outage(make_stage: MakeGroupEnvironment) -> AsyncIterator[GroupEnvironment]:
    """The configuration for pods is in force, and nobody answers."""
    async with make_stage(controller=False) as stage:
        assert stage.webhook is not None
        await stage.webhook.stop()
        yield stage


def ordinary(number: int) -> Json:
    """What users have in a cluster, and what comes near to naming a group."""
    name = f"ordinary-{number}"
    shapes: tuple[Json, ...] = (
        manifests.pod(name),
        manifests.pod(name, labels={"app": "web"}, annotations={"team": "a"}),
        manifests.pod(name, gates=["example.com/theirs"]),
        manifests.pod(name, labels={names.ALIBABA_MINIMUM: "3"}, annotations={names.KOORDINATOR_MINIMUM: "3"}),
        manifests.pod(name, nodeSelector={"zone": "a"}, schedulerName="default-scheduler"),
    )
    made = shapes[number % len(shapes)]
    return {**made, "metadata": made["metadata"] | owned("ReplicaSet")} if number % 10 == 0 else made


def theirs(kind: str, number: int) -> Json:
    """Pods that name groups in our words and are not ours."""
    name = f"{kind}-{number}"
    ways = list(Format)
    way = ways[number % len(ways)]
    if kind == "daemon":
        made = manifests.pod(name, "g", way, None)
        return {**made, "metadata": made["metadata"] | owned("DaemonSet")}
    return manifests.pod(name, "g", way, None, schedulerName=kind)


async def created(client: Client, namespace: str, pods: Iterable[Json]) -> Counter[str]:
    """What became of each: "" or the words of its refusal. Each is called for once."""
    asking, limit = client.without_retries(), asyncio.Semaphore(AT_ONCE)

    async def one(pod: Json) -> str:
        async with limit:
            try:
                await asking.create(PODS, pod, namespace)
            except ApiError as refusal:
                return str(refusal)
        return ""

    return Counter(await asyncio.gather(*map(one, pods)))


async def test_of_ordinary_pods_none_is_refused(outage: GroupEnvironment) -> None:
    found = await created(outage.client, outage.namespace, map(ordinary, range(ORDINARY)))
    assert found == {"": ORDINARY}


@pytest.mark.parametrize("kind", ["volcano", "koord-scheduler", "scheduler-plugins-scheduler", "daemon"])
async def test_of_pods_that_others_read_the_same_keys_on_none_is_refused(outage: GroupEnvironment, kind: str) -> None:
    found = await created(outage.client, outage.namespace, (theirs(kind, number) for number in range(OTHERS)))
    assert found == {"": OTHERS}


@pytest.mark.parametrize("way", Format)
async def test_a_groups_pod_is_refused_and_the_refusal_names_the_webhook(outage: GroupEnvironment, way: Format) -> None:
    (refusal,) = await created(outage.client, outage.namespace, [manifests.pod("p", "g", way)])
    assert 'failed calling webhook "pods.jobset-gate.dev"' in refusal


async def test_a_job_makes_its_pods_once_the_webhook_is_back(make_stage: MakeGroupEnvironment) -> None:
    """Refused pods are no failed pods: not even a Job with no retries fails."""
    async with make_stage(controller=False) as stage:
        assert stage.webhook is not None
        await stage.webhook.stop()
        await stage.apply(manifests.job("w", "g", 2))
        assert "pods.jobset-gate.dev" in await stage.until_event("w", "FailedCreate")
        again = await serve(stage.settings, tls=BUNDLE.serving, port=urlsplit(stage.webhook.url).port or 0)
        try:
            made = await stage.until(lambda pods: len(pods) == 2)
        finally:
            await again.stop()
        assert all(map(gated, made))
        assert "failed" not in (await stage.client.get(JOBS, "w", stage.namespace))["status"]
