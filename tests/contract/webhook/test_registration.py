"""The webhook configurations for JobSets: what a real API server sends because of them, and what it never does (A3)."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, NotFound
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.settings import Gangs, Groups
from tests.fakes.admission_server import AdmittedObjects, registered
from tests.fakes.jobsets import Json, barrier, changed, jobset, pod_spec, replicated
from tests.plane.planes import Plane
from webhook.registration import (
    HookOptions,
    ServiceReference,
    barrier_pod_configuration,
    configurations,
    pod_configuration,
)

SERVICE = ServiceReference("gate-system", "gate")

# --- As they are written ---------------------------------------------------------------------------------------------

HERE: HookOptions = {"service": SERVICE, "ca_bundle": "Y2E=", "own_namespace": "gate-system"}
LABEL = "jobset-gate.dev/gated"
BY_LABEL: dict[str, list[Json]] = {
    "leaderworkerset-pods.jobset-gate.dev": [{"key": LABEL, "operator": "In", "values": ["lws"]}],
    "start-groups.jobset-gate.dev": [
        {"key": "jobset-gate.dev/start-group", "operator": "Exists"},
        {"key": LABEL, "operator": "NotIn", "values": ["true", "job"]},
    ],
}
"""Pods are sent by their labels, LeaderWorkerSets by a match condition, as JobSets and Jobs are."""


def test_the_configurations_send_what_is_in_other_namespaces_and_fail_closed() -> None:
    gangs = Gangs(sources=("jobset", "lws", "startgroup"), pod_failure_policy="Fail")
    made = (
        *configurations(gangs, **HERE),
        pod_configuration(Groups(), **HERE),
        barrier_pod_configuration(gangs, **HERE),
    )
    sent = []
    for one in made:
        for hook in one["webhooks"]:
            assert (hook["sideEffects"], hook["timeoutSeconds"]) == ("None", 5)
            assert (hook["failurePolicy"], hook["matchPolicy"]) == ("Fail", "Equivalent")
            (expression,) = hook["namespaceSelector"]["matchExpressions"]
            assert (expression["operator"], expression["values"]) == ("NotIn", ["kube-system", "gate-system"])
            mutates = one["kind"].startswith("Mutating")
            assert hook.get("reinvocationPolicy") == ("IfNeeded" if mutates else None)
            (rule,) = hook["rules"]
            assert rule["scope"] == "Namespaced"
            sent.append([rule["apiGroups"], rule["apiVersions"], rule["resources"], rule["operations"]])
    both, once = ["CREATE", "UPDATE"], ["CREATE"]
    of_workloads = [[["jobset.x-k8s.io"], ["v1alpha2"], ["jobsets"], both]]
    of_workloads.append([["leaderworkerset.x-k8s.io"], ["v1"], ["leaderworkersets"], both])
    assert sent == of_workloads * 2 + [[[""], ["v1"], ["pods"], once]] * 3


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_pods_of_start_groups_are_sent_by_their_label_under_their_own_policy(policy: Literal["Fail", "Ignore"]) -> None:
    """And those of LeaderWorkerSets, each while its source is enabled; nothing validates them."""
    gangs = Gangs(sources=("jobset", "lws", "startgroup"), pod_failure_policy=policy)
    made = barrier_pod_configuration(gangs, **HERE | {"failure_policy": "Fail", "suffix": "-x"})
    assert made["metadata"]["name"] == "zz-jobset-gate-barrier-pods-x"
    assert {it["name"]: it["objectSelector"]["matchExpressions"] for it in made["webhooks"]} == BY_LABEL
    for hook in made["webhooks"]:
        assert (hook["failurePolicy"], hook["clientConfig"]["service"]["path"]) == (policy, "/mutate-barrier-pods")
    for source, hooks in (("lws", 2), ("startgroup", 1)):
        alone = Gangs(sources=("jobset", source))
        assert [len(it["webhooks"]) for it in configurations(alone, **HERE)] == [hooks, hooks]
        assert len(barrier_pod_configuration(alone, **HERE)["webhooks"]) == 1


def test_the_mutating_webhook_is_called_after_all_others() -> None:
    """API servers call webhooks in the order of the configurations' names."""
    name = configurations(url="https://127.0.0.1:1")[0]["metadata"]["name"]
    assert name > max("jobset-mutating-webhook-configuration", "kueue-mutating-webhook-configuration", "z")


# --- As an API server takes them -------------------------------------------------------------------------------------


class Registered(AdmittedObjects):
    async def gated(self) -> Json:
        """The JobSet `gang`, about whose creation nothing is counted."""
        made = await self.create(jobset())
        self.counter.sent()
        return made


@pytest.fixture
async def webhook(client: Client, namespace: str) -> AsyncIterator[Registered]:
    async with registered(client, namespace) as server:
        yield Registered(client, namespace, server, JOBSETS)


async def test_a_gated_jobset_comes_back_with_its_barrier(webhook: Registered) -> None:
    assert barrier(await webhook.create(jobset(), dry_run=True))
    assert webhook.counter.both_called()
    with pytest.raises(NotFound):
        await webhook.client.get(JOBSETS, "gang", webhook.namespace)
    assert barrier(await webhook.create(jobset()))
    unnamed = changed(jobset(), {"generateName": "gang-"}, "metadata")
    for dry_run in (True, False):
        made = await webhook.create(unnamed, dry_run=dry_run)
        name = made["metadata"]["name"]
        assert name.startswith("gang-")
        config_map = pod_spec(made)["volumes"][0]["projected"]["sources"][0]["configMap"]["name"]
        assert config_map == f"{name}-group-scheduling", "known before the object is stored"
    by_annotation = jobset(name="other", config=False, notes={names.CONFIG: '{"timeoutAfterSeconds":5}'})
    assert barrier(await webhook.create(by_annotation))


ODD: list[Any] = [..., {}, None, {"groupSchedulingConfig": None}, {"replicatedJobs": None}, {"replicatedJobs": []}]


async def test_jobsets_without_a_gate_are_never_sent_whatever_their_shape(webhook: Registered) -> None:
    """An error in a match condition would refuse them in our name. The schema may or may not accept them."""
    await webhook.create(jobset(name="plain", config=False, notes={"team": "a"}))
    for change in (
        {"spec": {"suspend": True}},
        {"metadata": {"annotations": {names.BYPASS: "true", "team": None}}},
        {"metadata": {"annotations": None}},
    ):
        await webhook.patch("plain", change)
    await webhook.delete("plain")
    for number, spec in enumerate(ODD):
        manifest = jobset(config=False, name=f"odd-{number}")
        del manifest["spec"]
        if spec is not ...:
            manifest["spec"] = spec
        refusal = ""
        try:
            await webhook.create(manifest)
            await webhook.patch(f"odd-{number}", {"spec": {"suspend": True}})
        except ApiError as error:
            refusal = error.message
        assert "jobset-gate" not in refusal, spec
        assert "expression" not in refusal, spec
    assert webhook.counter.sent() == 0


async def test_a_malformed_config_is_refused_in_our_words(webhook: Registered) -> None:
    """The schema would refuse it in its own words, one error at a time."""
    configs: list[Any] = ["x", [], 3, {"timeoutAfterSeconds": 0}]
    for config in configs:
        with pytest.raises(ApiError) as refusal:
            await webhook.create(jobset(config=config, notes={names.BYPASS: "x"}))
        assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")
        assert "spec.groupSchedulingConfig" in refusal.value.message
        assert "metadata.annotations[jobset-gate.dev/bypass]" in refusal.value.message


async def test_changes_of_spec_and_of_our_annotations_are_sent(webhook: Registered) -> None:
    """What is missing then is restored."""
    made = await webhook.gated()
    for change in (
        {"spec": {"suspend": True}},
        {"metadata": {"annotations": {names.BYPASS: "false"}}},
        {"metadata": {"annotations": {names.BYPASS: "true"}}},
        {"metadata": {"annotations": {names.BYPASS: None}}},
        {"metadata": {"annotations": {names.ON_TIMEOUT: "Release"}}},
        {"metadata": {"annotations": {names.CONFIG: None}}},
        {"spec": {"groupSchedulingConfig": None}},
        {"spec": {"groupSchedulingConfig": None}, "metadata": {"annotations": None}},
    ):
        after = await webhook.patch("gang", change)
        assert webhook.counter.sent() >= 1, change
        assert after["spec"]["groupSchedulingConfig"] == made["spec"]["groupSchedulingConfig"], change
        assert after["metadata"]["annotations"][names.CONFIG] == made["metadata"]["annotations"][names.CONFIG], change


async def test_other_changes_are_not_sent(webhook: Registered) -> None:
    await webhook.gated()
    for change in (
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"theirs": "x"}}},
        {"metadata": {"finalizers": ["example.com/f"]}},
        {"metadata": {"finalizers": None}},
    ):
        await webhook.patch("gang", change)
    await webhook.patch("gang", {"status": {"restarts": 1}}, subresource="status")
    assert webhook.counter.sent() == 0


async def test_an_outage_blocks_creating_and_suspending_of_gated_jobsets_and_nothing_else(webhook: Registered) -> None:
    """The price of never storing a gated JobSet without its barrier; documented."""
    await webhook.gated()
    await webhook.patch("gang", {"metadata": {"finalizers": ["example.com/f"]}})
    await webhook.server.stop()
    with pytest.raises(ApiError, match=r"mutate\.jobset-gate\.dev"):
        await webhook.patch("gang", {"spec": {"suspend": True}})
    with pytest.raises(ApiError, match=r"mutate\.jobset-gate\.dev"):
        await webhook.create(jobset(name="other"))
    await webhook.create(jobset(name="plain", config=False))
    await webhook.patch("plain", {"spec": {"suspend": True}})
    await webhook.patch("gang", {"metadata": {"labels": {"a": "b"}}})
    await webhook.patch("gang", {"status": {"restarts": 1}}, subresource="status")
    await webhook.delete("gang")
    assert (await webhook.client.get(JOBSETS, "gang", webhook.namespace))["metadata"]["deletionTimestamp"]
    await webhook.patch("gang", {"metadata": {"finalizers": None}, "spec": {"suspend": True}})
    with pytest.raises(NotFound):
        await webhook.client.get(JOBSETS, "gang", webhook.namespace)


async def test_kubectl_shows_every_warning_once(webhook: Registered, plane: Plane) -> None:
    warned = webhook.here(jobset(replicated(job={"backoffLimit": 7})))
    ran = await plane.kubectl("create", "-f", "-", stdin=warned)
    assert ran.stderr.count("Warning: spec.replicatedJobs[0].template.spec.backoffLimit: 7:") == 1
