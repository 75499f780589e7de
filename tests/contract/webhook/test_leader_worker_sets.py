"""K3: LeaderWorkerSets and the pods of their groups on a real API server: what is sent and stored, and an outage."""

import asyncio
import copy
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError
from jobset_gate.kube.resources import CRDS, LEADER_WORKER_SETS, MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from jobset_gate.settings import Barrier, Gangs, Settings
from jobset_gate_demo.fake import jobset_crd
from tests.fakes import leader_worker_sets, lws_standin
from tests.fakes.admission_server import (
    BUNDLE,
    AdmittedObjects,
    RequestCounter,
    admission_server,
    limited,
    registered_for_leader_worker_sets,
)
from tests.fakes.eventually import PATIENCE
from tests.fakes.jobsets import Json, without
from tests.fakes.leader_worker_sets import NAME, leader_worker_set, template
from webhook.registration import HookOptions, configurations

CONFIG = '{ "timeoutAfterSeconds" : 300 }'
GATED = {names.CONFIG: CONFIG}
MARKS = {"labels": {names.GATED: "lws"}, "annotations": {names.CONFIG: CONFIG}}
GANGS = Gangs(sources=("jobset", "lws"))


class Groups(AdmittedObjects):
    async def apply(self, given: Json) -> Json:
        return await self.patch(NAME, self.here(given), PatchType.APPLY, field_manager="kubectl", force=True)

    async def replace(self, given: Json, there: Json) -> Json:
        here = self.here(given)
        here["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        return await self.client.replace(self.resource, here)


@pytest.fixture
async def groups(client: Client, namespace: str) -> AsyncIterator[Groups]:
    await lws_standin.install(client)
    async with registered_for_leader_worker_sets(client, namespace, Settings(gangs=GANGS)) as server:
        yield Groups(client, namespace, server, LEADER_WORKER_SETS)


def worker(stored: Json) -> Any:
    """The metadata of the workers' template."""
    return stored["spec"]["leaderWorkerTemplate"]["workerTemplate"].get("metadata")


async def test_the_same_manifest_again_changes_nothing_also_after_an_upgrade_with_other_settings(
    groups: Groups, client: Client, namespace: str
) -> None:
    """A change of the templates would start a rolling update."""
    manifest = leader_worker_set(notes=GATED, leader=template())
    made = await groups.apply(manifest)
    assert (worker(made), made["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]) == (MARKS, MARKS)
    assert (await groups.apply(manifest))["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    again = await groups.replace(manifest, made)
    assert again["spec"] == made["spec"]
    other = Settings(
        gangs=GANGS, barrier=Barrier(image="other:2", max_wait_seconds=9, stream_url="http://gate.x.svc:1")
    )
    async with admission_server(other) as server:
        where: HookOptions = {"url": server.url, "ca_bundle": BUNDLE.ca_bundle, "suffix": f"-{namespace}"}
        kinds = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
        for kind, body in zip(kinds, configurations(GANGS, **where), strict=True):
            name = limited(body, namespace)["metadata"]["name"]
            await client.patch(kind, name, body=body, patch=PatchType.APPLY, field_manager="upgrade", force=True)
        counter, upgraded = RequestCounter(server), again
        while not counter.sent():  # until the API server has read the configurations
            upgraded = await groups.replace(manifest, await groups.apply(manifest))
    assert upgraded["metadata"]["generation"] == made["metadata"]["generation"]
    assert upgraded["spec"] == made["spec"]


async def test_marks_without_the_config_are_taken_out(groups: Groups) -> None:
    made = await groups.create(leader_worker_set(notes=GATED))
    another = await groups.patch(NAME, {"metadata": {"annotations": {names.CONFIG: "{}"}}})
    assert worker(another) == MARKS | {"annotations": {names.CONFIG: "{}"}}
    removed = await groups.patch(NAME, {"metadata": {"annotations": {names.CONFIG: None}}})
    assert not worker(removed)
    copied = leader_worker_set() | {"spec": made["spec"]}
    assert not worker(await groups.replace(copied, removed))
    await groups.delete(NAME)
    assert not worker(await groups.create(copied))


def odd() -> list[Json]:
    """LeaderWorkerSets without our keys, of shapes that a schema may let through."""
    specs: list[Any] = [..., None, {}, {"leaderWorkerTemplate": None}]
    groups: list[Any] = [{}, {"workerTemplate": None}, {"workerTemplate": {"metadata": None}, "leaderTemplate": None}]
    groups += [{"workerTemplate": {"metadata": meta}} for meta in ({}, {"labels": None}, {"labels": {"app": "x"}})]
    specs += [{"leaderWorkerTemplate": it} for it in groups]
    given = [leader_worker_set(), leader_worker_set(notes={"theirs": "x"}, leader=template({"labels": {"app": "x"}}))]
    for spec in specs:
        plain = without(leader_worker_set(), "spec")
        given.append(plain if spec is ... else plain | {"spec": spec})
    return given


async def test_a_dead_webhook_stops_gated_groups_and_their_pods_alone(groups: Groups) -> None:
    await groups.create(leader_worker_set(notes=GATED))
    groups.counter.sent()
    for change in ({"labels": {"a": "b"}}, {"annotations": {"theirs": "x"}}):
        await groups.patch(NAME, {"metadata": change})
    await groups.patch(NAME, {"status": {"replicas": 1}}, subresource="status")
    assert groups.counter.sent() == 0, "what does not matter is not sent"
    await groups.server.stop()
    for body in ({"metadata": {"labels": {"a": "c"}}}, {"metadata": {"finalizers": ["example.com/f"]}}):
        await groups.patch(NAME, body)
    for refused in ({"spec": {"replicas": 3}}, {"metadata": {"annotations": {names.CONFIG: None}}}):
        with pytest.raises(ApiError, match=r"mutate-leaderworkersets\.jobset-gate\.dev"):
            await groups.patch(NAME, refused)
    await groups.delete(NAME)
    await groups.patch(NAME, {"metadata": {"finalizers": None}})
    for given in odd():
        await groups.create(given)
        await groups.patch(NAME, {"metadata": {"annotations": {"theirs": "y"}}, "spec": {"replicas": 7}})
        await groups.patch(NAME, {"status": {"replicas": 1}}, subresource="status")
        await groups.delete(NAME)
    with pytest.raises(ApiError, match=r"leaderworkerset-pods\.jobset-gate\.dev"):
        await groups.client.create(PODS, leader_worker_sets.pod(), groups.namespace)
    for label in (None, "true"):
        pod = leader_worker_sets.pod(labels={names.GATED: label})
        await groups.client.create(PODS, pod, groups.namespace, dry_run=True)


async def test_a_rule_is_in_force_for_a_kind_that_is_installed_later(client: Client, namespace: str) -> None:
    """Under a name of its own, since other tests need the kind itself."""
    group = f"t{secrets.token_hex(4)}.example.com"
    kind = replace(LEADER_WORKER_SETS, group=group)
    crd = copy.deepcopy(leader_worker_sets.crd())
    crd["metadata"]["name"], crd["spec"]["group"] = f"{kind.plural}.{group}", group
    async with admission_server(Settings(gangs=GANGS)) as server:
        ours, _ = configurations(GANGS, url=server.url, ca_bundle=BUNDLE.ca_bundle, suffix=f"-{namespace}-later")
        ours["webhooks"][1]["rules"][0]["apiGroups"] = [group]
        await client.create(MUTATING_WEBHOOKS, limited(ours, namespace))
        await client.create(CRDS, crd)
        try:
            await jobset_crd.until_served(client, crd["metadata"]["name"], kind)
            given = leader_worker_set(notes=GATED) | {"apiVersion": f"{group}/v1"}
            given["metadata"]["namespace"] = namespace
            counter = RequestCounter(server)
            async with asyncio.timeout(PATIENCE):
                while not counter.sent():
                    with suppress(ApiError):  # it judges the real kind alone
                        await client.create(kind, given, namespace, dry_run=True)
        finally:
            await client.delete(CRDS, crd["metadata"]["name"])
            await client.delete(MUTATING_WEBHOOKS, ours["metadata"]["name"])
