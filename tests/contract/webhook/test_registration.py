"""A3, operations.md: what an API server sends to the door and what it never does, on both planes."""

import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from controllers.barrier import crd_patcher
from jobset_gate import names
from jobset_gate.fake import jobset_crd
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, NotFound
from jobset_gate.kube.resources import JOBSETS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from tests.fakes.admission_server import BUNDLE, RequestCounter, registered
from tests.fakes.jobsets import Json, barrier, jobset, replicated
from tests.plane.planes import Plane
from webhook.registration import MATCH_CONDITIONS, ServiceReference, configurations
from webhook.server import WebhookServer

# --- As they are written ----------------------------------------------------------------------------------------------


@pytest.fixture(params=[0, 1], ids=["mutating", "validating"])
def hook(request: pytest.FixtureRequest) -> Json:
    made = configurations(
        service=ServiceReference("gate-system", "gate"), ca_bundle="Y2E=", own_namespace="gate-system"
    )
    found: Json = made[request.param]["webhooks"][0]
    return found


def test_a_dry_run_may_call_it_and_it_is_given_five_seconds(hook: Json) -> None:
    assert (hook["sideEffects"], hook["timeoutSeconds"]) == ("None", 5)


def test_a_failure_refuses_since_only_gated_jobsets_are_ever_sent(hook: Json) -> None:
    assert (hook["failurePolicy"], hook["matchPolicy"]) == ("Fail", "Equivalent")


def test_it_is_asked_about_creations_and_updates_of_jobsets_and_not_of_their_status(hook: Json) -> None:
    (rule,) = hook["rules"]
    assert rule == {
        "apiGroups": ["jobset.x-k8s.io"],
        "apiVersions": ["v1alpha2"],
        "resources": ["jobsets"],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Namespaced",
    }


def test_its_own_namespace_and_kube_system_are_exempt(hook: Json) -> None:
    (expression,) = hook["namespaceSelector"]["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("NotIn", ["kube-system", "gate-system"])


def test_it_may_be_called_again_when_a_later_webhook_changes_something() -> None:
    mutating, validating = configurations(url="https://127.0.0.1:1")
    assert mutating["webhooks"][0]["reinvocationPolicy"] == "IfNeeded"
    assert "reinvocationPolicy" not in validating["webhooks"][0]


@pytest.mark.parametrize(
    "other", ["jobset-mutating-webhook-configuration", "kueue-mutating-webhook-configuration", "z"]
)
def test_it_is_called_after_the_others(other: str) -> None:
    """API servers go by the names of the configurations."""
    assert configurations(url="https://127.0.0.1:1")[0]["metadata"]["name"] > other


def test_a_door_is_found_by_service_or_by_url() -> None:
    by_service = configurations(service=ServiceReference("ns", "gate", 8443))[0]["webhooks"][0]["clientConfig"]
    assert by_service == {"service": {"namespace": "ns", "name": "gate", "port": 8443, "path": "/mutate"}}
    by_url = configurations(url="https://127.0.0.1:1/", ca_bundle="Y2E=")[1]["webhooks"][0]["clientConfig"]
    assert by_url == {"url": "https://127.0.0.1:1/validate", "caBundle": "Y2E="}


@pytest.mark.parametrize("where", [{}, {"url": "https://x", "service": ServiceReference("a", "b")}])
def test_a_door_is_found_in_exactly_one_way(where: Any) -> None:
    with pytest.raises(ValueError, match="either url or service"):
        configurations(**where)


# --- As an API server takes them --------------------------------------------------------------------------------------


@dataclass
class Stand:
    """A door registered for one namespace of a plane."""

    plane: Plane
    client: Client
    namespace: str
    server: WebhookServer
    counted: RequestCounter

    async def create(self, manifest: Json, **more: Any) -> Json:
        here = copy.deepcopy(manifest)
        here["metadata"]["namespace"] = self.namespace
        return await self.client.create(JOBSETS, here, self.namespace, **more)

    async def merge(self, name: str, body: Json, **more: Any) -> Json:
        return await self.client.patch(JOBSETS, name, self.namespace, body=body, patch=PatchType.MERGE, **more)

    async def gated(self, name: str = "gang", **more: Any) -> Json:
        made = await self.create(jobset(name=name, **more))
        self.counted.sent()
        return made

    async def stranger(self, name: str = "stranger", **more: Any) -> Json:
        return await self.create(jobset(name=name, config=False, **more))


@pytest.fixture
async def stand(plane: Plane, namespace: str) -> AsyncIterator[Stand]:
    async with plane.client() as client:
        await jobset_crd.install(client)
        await crd_patcher.extend_crd(client)
        async with registered(client, namespace) as server:
            yield Stand(plane, client, namespace, server, RequestCounter(server))


async def test_an_api_server_stores_both_as_they_are_written(plane: Plane) -> None:
    made = configurations(
        service=ServiceReference("gate-system", "gate"), ca_bundle=BUNDLE.ca_bundle, own_namespace="gate-system"
    )
    async with plane.client() as client:
        for resource, configuration in zip((MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), made, strict=True):
            stored = await client.create(resource, configuration, dry_run=True)
            written = configuration["webhooks"][0]
            assert {key: stored["webhooks"][0][key] for key in written} == written


async def test_a_gated_jobset_comes_back_with_its_barrier(stand: Stand) -> None:
    made = await stand.create(jobset())
    assert barrier(made)
    assert stand.counted.both_called()


async def test_the_annotation_alone_is_enough(stand: Stand) -> None:
    made = await stand.create(jobset(config=False, notes={names.CONFIG: '{"timeoutAfterSeconds":5}'}))
    assert barrier(made)


async def test_strangers_are_never_sent(stand: Stand) -> None:
    await stand.stranger(notes={"team": "a"})
    await stand.merge("stranger", {"spec": {"suspend": True}})
    await stand.merge("stranger", {"metadata": {"annotations": {names.BYPASS: "true", "team": None}}})
    await stand.merge("stranger", {"metadata": {"annotations": None}})
    await stand.client.delete(JOBSETS, "stranger", stand.namespace)
    assert stand.counted.sent() == 0


ODD: list[Any] = [..., {}, None, {"groupSchedulingConfig": None}, {"replicatedJobs": None}, {"replicatedJobs": []}]


@pytest.mark.parametrize("spec", ODD, ids=repr)
async def test_strangers_of_odd_shapes_are_judged_by_others_and_never_by_us(stand: Stand, spec: Any) -> None:
    """An error in a match condition would refuse them in our name. The schema may or may not take them."""
    manifest = jobset(config=False)
    del manifest["spec"]
    if spec is not ...:
        manifest["spec"] = spec
    told = ""
    try:
        await stand.create(manifest)
        await stand.merge("gang", {"spec": {"suspend": True}})
    except ApiError as refusal:
        told = refusal.message
    assert "jobset-gate" not in told
    assert "expression" not in told
    assert stand.counted.sent() == 0


@pytest.mark.parametrize("config", ["x", [], 3, {"timeoutAfterSeconds": 0}])
async def test_a_malformed_config_is_refused_in_our_words(stand: Stand, config: Any) -> None:
    """Before the schema could refuse it in its own, and only one thing at a time."""
    with pytest.raises(ApiError) as refusal:
        await stand.create(jobset(config=config, notes={names.BYPASS: "x"}))
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")
    assert "spec.groupSchedulingConfig" in refusal.value.message
    assert "metadata.annotations[jobset-gate.dev/bypass]" in refusal.value.message


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"suspend": True}},
        {"metadata": {"annotations": {names.BYPASS: "true"}}},
        {"metadata": {"annotations": {names.ON_TIMEOUT: "Release"}}},
        {"metadata": {"annotations": {names.CONFIG: None}}},
        {"spec": {"groupSchedulingConfig": None}},
        {"spec": {"groupSchedulingConfig": None}, "metadata": {"annotations": None}},
    ],
    ids=repr,
)
async def test_a_change_of_spec_or_of_our_annotations_is_sent(stand: Stand, change: Json) -> None:
    made = await stand.gated()
    after = await stand.merge("gang", change)
    assert stand.counted.sent() >= 1
    assert after["spec"]["groupSchedulingConfig"] == made["spec"]["groupSchedulingConfig"]
    assert after["metadata"]["annotations"][names.CONFIG] == made["metadata"]["annotations"][names.CONFIG]


async def test_each_of_our_annotations_is_sent_when_it_comes_changes_or_goes(stand: Stand) -> None:
    await stand.gated(notes={names.BYPASS: "false"})
    for value in ("true", "false", None):
        await stand.merge("gang", {"metadata": {"annotations": {names.BYPASS: value}}})
        assert stand.counted.both_called()


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"theirs": "x"}}},
        {"metadata": {"finalizers": ["example.com/f"]}},
    ],
    ids=repr,
)
async def test_a_change_of_anything_else_is_not_sent(stand: Stand, change: Json) -> None:
    await stand.gated()
    await stand.merge("gang", change)
    assert stand.counted.sent() == 0
    await stand.merge("gang", {"metadata": {"finalizers": None}})


async def test_its_status_is_not_ours_to_judge(stand: Stand) -> None:
    await stand.gated()
    await stand.merge("gang", {"status": {"restarts": 1}}, subresource="status")
    assert stand.counted.sent() == 0


async def test_an_outage_of_ours_stops_no_deletion_and_no_stranger(stand: Stand) -> None:
    await stand.gated()
    await stand.merge("gang", {"metadata": {"finalizers": ["example.com/f"]}})
    await stand.server.stop()
    await stand.stranger()
    await stand.merge("stranger", {"spec": {"suspend": True}})
    await stand.merge("gang", {"metadata": {"labels": {"a": "b"}}})
    await stand.merge("gang", {"status": {"restarts": 1}}, subresource="status")
    await stand.client.delete(JOBSETS, "gang", stand.namespace)
    assert (await stand.client.get(JOBSETS, "gang", stand.namespace))["metadata"]["deletionTimestamp"]
    await stand.merge("gang", {"metadata": {"finalizers": None}, "spec": {"suspend": True}})
    with pytest.raises(NotFound):
        await stand.client.get(JOBSETS, "gang", stand.namespace)


async def test_an_outage_of_ours_stops_suspending_and_creating_gated_jobsets(stand: Stand) -> None:
    """The price of never letting one in without its barrier; documented."""
    await stand.gated()
    await stand.server.stop()
    with pytest.raises(ApiError, match=r"mutate\.jobset-gate\.dev"):
        await stand.merge("gang", {"spec": {"suspend": True}})
    with pytest.raises(ApiError, match=r"mutate\.jobset-gate\.dev"):
        await stand.create(jobset(name="other"))


async def test_a_generated_name_is_known_before_the_object_is_stored(stand: Stand) -> None:
    manifest = jobset(name="")
    manifest["metadata"]["generateName"] = "gang-"
    for dry_run in (True, False):
        made = await stand.create(manifest, dry_run=dry_run)
        name = made["metadata"]["name"]
        assert name.startswith("gang-")
        volume = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["volumes"][0]
        assert volume["projected"]["sources"][0]["configMap"]["name"] == f"{name}-group-scheduling"


async def test_a_dry_run_shows_what_would_be_stored(stand: Stand) -> None:
    assert barrier(await stand.create(jobset(), dry_run=True))
    with pytest.raises(NotFound):
        await stand.client.get(JOBSETS, "gang", stand.namespace)


async def test_kubectl_shows_every_violation_on_a_line_of_its_own(stand: Stand) -> None:
    bad = jobset(config={"timeoutAfterSeconds": 0, "targetReplicatedJobs": ["nobody"]})
    bad["metadata"]["namespace"] = stand.namespace
    ran = await stand.plane.kubectl("create", "--validate=false", "-f", "-", stdin=bad, check=False)
    assert ran.code != 0
    assert "spec.groupSchedulingConfig.timeoutAfterSeconds: 0: must be an integer from 1 to 2147483647" in ran.stderr
    assert 'spec.groupSchedulingConfig.targetReplicatedJobs[0]: "nobody": no replicatedJob has this name' in ran.stderr


async def test_kubectl_shows_our_warnings_once(stand: Stand) -> None:
    manifest = jobset(replicated(job={"backoffLimit": 7}))
    manifest["metadata"]["namespace"] = stand.namespace
    ran = await stand.plane.kubectl("create", "-f", "-", stdin=manifest)
    assert ran.stderr.count("Warning: spec.replicatedJobs[0].template.spec.backoffLimit: 7:") == 1


def test_every_annotation_of_ours_is_in_the_conditions() -> None:
    text = MATCH_CONDITIONS[-1][1]
    assert all(f"'{key}' in object.metadata.annotations" in text for key in names.OUR_JOBSET_ANNOTATIONS)
