"""G2: which pods an API server sends to the webhook, and which it never does."""

import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.admission import admit_pod
from jobset_gate.podgroups.formats import NAME_KEYS
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups, Settings
from tests.fakes.admission_server import AdmittedObjects, registered_for_pods
from tests.fakes.grouped_pods import Json, gates, owned, pod


class RegisteredForPods(AdmittedObjects):
    async def is_sent(self, made: Json) -> bool:
        """Whether the API server sends it; a sent pod is gated."""
        stored = await self.create(made, dry_run=True)
        sent = self.counter.sent() > 0
        assert (names.POD_GROUP_GATE in gates(stored)) is sent
        assert (names.POD_GROUP_LABEL in stored["metadata"].get("labels", {})) is sent
        return sent


@pytest.fixture
async def webhook(client: Client, namespace: str) -> AsyncIterator[RegisteredForPods]:
    async with registered_for_pods(client, namespace) as server:
        yield RegisteredForPods(client, namespace, server, PODS)


MIRROR = {"annotations": {"kubernetes.io/config.mirror": "0123"}}
UNSENT = {
    "no labels": [pod()],
    "no name of a group": [
        pod(meta={"labels": {"app": "web"}, "annotations": {"team": "a"}}),
        pod(meta={"labels": {"pod-group.scheduling.sigs.k8s.io/min-available": "3"}}),
        pod(meta={"labels": {"scheduling.k8s.io/group-name": "an-annotation-it-should-be"}}),
    ],
    "another scheduler": [
        *(pod(way, schedulerName="another") for way in Format),
        pod(Format.KEP_24, schedulerName="volcano"),  # it reads the same annotation
    ],
    "bound": [pod(Format.SCHEDULER_PLUGINS, nodeName="n1")],  # the API server refuses gates on it
    "mirror pods": [pod(Format.KEP_24, meta=MIRROR, nodeName="n1")],
    "DaemonSets": [pod(way, meta=owned("DaemonSet")) for way in Format],
    "native groups": [pod(Format.KEP_24, schedulingGroup={"podGroupName": "native"})],
}


async def test_other_pods_are_never_sent(webhook: RegisteredForPods) -> None:
    for kind, manifests in UNSENT.items():
        for manifest in manifests:
            assert not await webhook.is_sent(manifest), kind
    with suppress(Invalid):  # an API server refuses it without a node, after it has called webhooks
        await webhook.create(pod(Format.KEP_24, meta=MIRROR), dry_run=True)
    assert webhook.counter.sent() == 0


async def test_formats_and_schedulers_are_the_configured_ones(client: Client, namespace: str) -> None:
    on = (Format.KEP_24, Format.ALIBABA)
    settings = Settings(groups=Groups(ways=on, scheduler_names=("ours", "ours-too")))
    async with registered_for_pods(client, namespace, settings) as server:
        webhook = RegisteredForPods(client, namespace, server, PODS)
        assert {way for way in Format if await webhook.is_sent(pod(way, schedulerName="ours-too"))} == set(on)
        assert not await webhook.is_sent(pod(Format.KEP_24, schedulerName="default-scheduler"))
        assert not await webhook.is_sent(pod(Format.KEP_24))


def random_pod(rng: random.Random) -> Json:
    """With up to two keys of the formats or of others, and perhaps an owner, a node, a scheduler or gates."""
    keys = [(where, key) for where, key in NAME_KEYS.values()]
    keys += [("labels", names.ALIBABA_MINIMUM), ("annotations", names.MIRROR_POD), ("labels", "app")]
    meta: Json = {}
    for where, key in rng.sample(keys, rng.randint(0, 2)):
        meta.setdefault(where, {})[key] = rng.choice(["g", ""])
    if rng.random() < 0.3:
        meta |= owned(rng.choice(["DaemonSet", "ReplicaSet"]), controller=rng.random() < 0.8)
    spec: Json = {"schedulerName": rng.choice(["default-scheduler", "default-scheduler", "volcano"])}
    for field, value in (("nodeName", "n1"), ("schedulingGroup", {"podGroupName": "x"}), ("schedulingGates", [])):
        if rng.random() < 0.15:
            spec[field] = value
    return pod(meta=meta, **spec)


async def test_exactly_the_pods_are_sent_that_the_handler_would_hold(webhook: RegisteredForPods) -> None:
    rng = random.Random(2)  # noqa: S311 - the same pods in every run
    held = 0
    for _ in range(150):
        made = random_pod(rng)
        wanted = bool(admit_pod(made, webhook.namespace, Groups()))
        with suppress(Invalid):
            await webhook.create(made, dry_run=True)
        assert (webhook.counter.sent() > 0) is wanted, made
        held += wanted
    assert 20 < held < 130
