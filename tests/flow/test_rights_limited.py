"""The chart's policies hold both accounts to what is theirs, and do not stop them.

The controller's: its annotations and ConfigMaps, the suspension of Jobs and JobSets, one condition, one field of a CRD.
The webhook's: caBundle in its own configurations.

All else that it does goes on under them in test_rights.py, test_rights_groups.py and test_rights_native.py.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from jobset_gate import names
from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import (
    CONFIGMAPS,
    CRDS,
    JOBS,
    JOBSETS,
    LEADER_WORKER_SETS,
    MUTATING_WEBHOOKS,
    PODS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from jobset_gate.sources.table import LWS, START_GROUP, TEMPLATE_SOURCES, config_map_name
from jobset_gate_demo.fake import manifests
from tests.fakes import jobs, lws_standin
from tests.fakes.leader_worker_sets import NAME, leader_worker_set
from tests.fakes.podgroups import manifests as groups
from tests.flow.environment import Environment, environment, in_force
from tests.flow.installed import CONTROLLER, LIVELY, WEBHOOK, Installed, installed
from tests.flow.policies import refused
from tests.plane.planes import Real, fresh_name
from webhook.registration import MUTATING, VALIDATING

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]
ALL_SOURCES = "gangs.sources={jobset,job,lws,startgroup}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def release(real_plane: Real) -> AsyncIterator[Installed]:
    """With its policies in force. All tests share it: none changes its rights or policies."""
    async with installed(real_plane, *LIVELY, ALL_SOURCES) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def gangs(real_plane: Real) -> AsyncIterator[str]:
    """A namespace for gangs."""
    name = fresh_name()
    await real_plane.make_namespace(name)
    yield name
    await real_plane.drop_namespace(name)


@pytest_asyncio.fixture(loop_scope="module")
async def stage(real_plane: Real, gangs: str) -> AsyncIterator[Environment]:
    """Without programs of its own."""
    async with environment(real_plane, gangs, controller=False, webhook=False, stream=False) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def controller(release: Installed) -> AsyncIterator[Client]:
    async with release.client(CONTROLLER) as made:
        yield made


def put(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


def config_map(namespace: str, name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


def pod(namespace: str, name: str) -> Json:
    container = {"name": "main", "image": "busybox"}
    meta = {"name": name, "namespace": namespace, "annotations": {"theirs": "1"}}
    return {"metadata": meta, "spec": {"containers": [container]}}


GATED, GATED_JOB = ({names.GATED: source.gated} for source in TEMPLATE_SOURCES.values())
OF_GROUP = {names.GATED: LWS.gated}
STARTS = {names.START_GROUP: "ring"}
DENIED: list[tuple[dict[str, str], Json]] = [
    (GATED, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
    (GATED_JOB, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
    (OF_GROUP, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
    (STARTS, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
    (STARTS, {"metadata": {"labels": {names.START_GROUP: "another"}}}),
    (STARTS, {"metadata": {"annotations": {names.TOKEN: "theirs"}}}),
    (GATED, {"spec": {"activeDeadlineSeconds": 1}}),
    (GATED, {"metadata": {"labels": {"app": "other-client"}}}),
    (GATED, {"metadata": {"labels": {names.GATED: None}}}),
    (GATED, {"metadata": {"annotations": {"theirs": "2"}}}),
    (GATED, {"metadata": {"annotations": {"theirs": None}}}),
    (GATED, {"metadata": {"annotations": {"more": "1"}}}),
    (GATED, {"metadata": {"annotations": {names.POD_GROUP_TAKEN_BACK: "x.1"}}}),
    (GATED, {"metadata": {"finalizers": ["example.com/stay"]}}),
    (GATED, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "none"}]}}),
    ({}, {"metadata": {"annotations": {names.VERDICT: "release"}}}),
    ({}, {"spec": {"containers": [{"name": "main", "image": "evil"}]}}),
]
"""The labels of a pod, and what its account would do to it."""


async def test_a_pod_s_verdict_and_nothing_else_of_it(real_plane: Real, controller: Client, gangs: str) -> None:
    async with real_plane.client() as admin:
        for number, (labels, change) in enumerate(DENIED):
            name = f"theirs-{number}"
            await admin.create(PODS, pod(gangs, name))
            # Only now, since no webhook is there that would be asked about a new pod of a start group.
            await admin.patch(PODS, name, gangs, body={"metadata": {"labels": labels}}, patch=PatchType.MERGE)
            with refused():
                await controller.patch(PODS, name, gangs, body=change, patch=PatchType.STRATEGIC)
            # Another client may: the policies bind the controller alone.
            await admin.patch(PODS, name, gangs, body=change, patch=PatchType.STRATEGIC, dry_run=True)
            with refused():
                await controller.delete(PODS, name, gangs)
        verdict = {"metadata": {"annotations": {names.VERDICT: "release", names.NUDGE: "1"}}}
        for name in ("theirs-0", "theirs-1", "theirs-2", "theirs-3"):  # one of each source
            await controller.patch(PODS, name, gangs, body=verdict, patch=PatchType.MERGE)


async def test_its_own_configmaps_and_no_other(real_plane: Real, controller: Client, gangs: str) -> None:
    """On some clusters aws-auth says who is an administrator, and coredns leads everybody's names."""
    async with real_plane.client() as admin:
        theirs = await admin.create(CONFIGMAPS, config_map(gangs, "theirs"))
        alike = await admin.create(CONFIGMAPS, config_map(gangs, names.config_map_name("alike")))
        record = await admin.create(CONFIGMAPS, config_map(gangs, f"{names.POD_GROUP_CONFIG_MAP_PREFIX}alike"))
        login = await admin.get(CONFIGMAPS, "extension-apiserver-authentication", "kube-system")
        for name in ("aws-auth", "coredns"):
            with refused():
                await controller.create(CONFIGMAPS, config_map("kube-system", name))
        starts = config_map_name(GangKey(gangs, "ring.u-1", START_GROUP.name))
        ring = await admin.create(CONFIGMAPS, config_map(gangs, starts))
        group = config_map_name(GangKey(gangs, "mine-0", LWS.name))
        ours = (names.config_map_name("mine"), group, starts.replace("ring", "mine"))
        for name in ("mine", "mine.start", "mine.lws", *ours, f"{names.POD_GROUP_CONFIG_MAP_PREFIX}mine"):
            with refused():
                await controller.create(CONFIGMAPS, config_map(gangs, name))
        for one in (theirs, alike, ring, record, login):
            with refused():
                await controller.replace(CONFIGMAPS, {**one, "data": {"a": "b"}})
            with refused():
                await controller.delete(CONFIGMAPS, one["metadata"]["name"], one["metadata"]["namespace"])
            labels = {"labels": {names.GATE: names.GATE_VALUE, names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE}}
            with refused():
                await controller.replace(CONFIGMAPS, {**one, "metadata": one["metadata"] | labels})
        for name in ours:
            made = await controller.create(CONFIGMAPS, config_map(gangs, name, **{names.GATE: names.GATE_VALUE}))
            await controller.replace(CONFIGMAPS, {**made, "data": {names.KEY_VERDICT: "release"}})
            await controller.delete(CONFIGMAPS, name, gangs)


# --- Jobs, JobSets and their CRD -------------------------------------------------------------------------------------

OWNER: Json = {"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "none"}
TEMPLATE = "/spec/replicatedJobs/0/template"
MANY = 250
"""About as many gated replicatedJobs as an API server stores in one JobSet."""
ANY: list[Json] = [
    # With the first the object is gone when it has ended, with the second at once.
    put("/spec/ttlSecondsAfterFinished", 0),
    put("/metadata/ownerReferences", [OWNER]),
    put("/metadata/finalizers", ["example.com/stay"]),
    put("/metadata/labels", {"app": "other-client"}),
    put("/metadata/annotations", {"theirs": "2"}),
]
OF_JOBS: list[Json] = [
    put("/spec/parallelism", 5),
    put("/spec/backoffLimit", 50),
    put("/spec/activeDeadlineSeconds", 1),
    put("/spec/template/spec/tolerations", [{"operator": "Exists"}]),
]
OF_JOBSETS: list[Json] = [
    put(f"{TEMPLATE}/spec/parallelism", 5),
    put(f"{TEMPLATE}/spec/template/spec/containers/0/image", "evil"),
    put(f"{TEMPLATE}/spec/template/spec/nodeSelector", {"theirs": "1"}),
    put(f"{TEMPLATE}/spec/template/metadata/labels/theirs", "1"),
    put(f"{TEMPLATE}/spec/template/metadata/annotations/theirs", "1"),
    put(f"{TEMPLATE}/metadata", {"labels": {"theirs": "1"}}),
    put("/spec/replicatedJobs/0/replicas", 5),
    put("/spec/failurePolicy", {"maxRestarts": 5}),
]


def mark(*, suspend: bool = True) -> Json:
    marks = {names.POD_GROUP_SUSPENDED: "0.1" if suspend else None}
    return {"metadata": {"labels": marks, "annotations": marks}, "spec": {"suspend": suspend}}


async def test_jobs_and_jobsets_are_suspended_and_resumed_and_no_more(
    stage: Environment, release: Installed, controller: Client
) -> None:
    """The webhook counts in a gated JobSet's or Job's templates, in the same request."""
    gangs = stage.namespace
    async with release.program("webhook"):
        await in_force(stage)
        nobody: Json = {"suspend": True, "managedBy": "example.com/nobody"}
        job = groups.job("theirs", "theirs", 1, **nobody)
        many = [manifests.replicated_job(f"w{n}") for n in range(MANY)]
        made: list[tuple[Resource, Json, list[Json]]] = [
            (JOBS, job, ANY + OF_JOBS),
            (JOBSETS, manifests.gang("gated", gangs, jobs=1, pods=1, **nobody), ANY + OF_JOBSETS),
            (JOBSETS, manifests.jobset("many", gangs, replicated_jobs=many, config={}, **nobody), []),
        ]
        for resource, manifest, changes in made:
            name = manifest["metadata"]["name"]
            await stage.client.create(resource, manifest, gangs)
            for change in changes:
                with refused():
                    await controller.patch(resource, name, gangs, body=[change], patch=PatchType.JSON)
            for suspend in (False, True):
                body = mark(suspend=suspend)
                stored = await controller.patch(resource, name, gangs, body=body, patch=PatchType.MERGE)
                assert stored["spec"]["suspend"] is suspend
        gated = jobs.job(name="counted", namespace=gangs, config={}, spec={"suspend": True})
        await stage.client.create(JOBS, gated, gangs)
        for change in (*ANY, *OF_JOBS, put("/spec/template/metadata/annotations/theirs", "1")):
            with refused():
                await controller.patch(JOBS, "counted", gangs, body=[change], patch=PatchType.JSON)
        body = mark(suspend=False)
        stored = await controller.patch(JOBS, "counted", gangs, body=body, patch=PatchType.MERGE)
        assert stored["spec"]["template"]["metadata"]["annotations"][names.EPOCH] == "1"
        stored = await stage.client.get(JOBSETS, "many", gangs)
        notes = stored["spec"]["replicatedJobs"][MANY - 1]["template"]["spec"]["template"]["metadata"]["annotations"]
        assert notes[names.EPOCH] == "1"


def condition(kind: str) -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


async def test_a_jobset_has_the_condition_of_its_gang_alone(stage: Environment, controller: Client) -> None:
    gangs = stage.namespace
    await stage.client.create(JOBSETS, manifests.jobset("theirs", gangs, suspend=True))
    for status in ({"conditions": [condition("Completed")]}, {"terminalState": "Failed"}, {"restarts": 7}):
        with refused():
            await controller.patch(
                JOBSETS, "theirs", gangs, body={"status": status}, patch=PatchType.MERGE, subresource="status"
            )
    ours = {"metadata": {"name": "theirs"}, "status": {"conditions": [condition(names.CONDITION)]}}
    await controller.patch(
        JOBSETS, "theirs", gangs, body=ours, patch=PatchType.APPLY, subresource="status", field_manager="x"
    )


async def test_a_leader_worker_set_has_the_condition_of_its_groups_alone(
    stage: Environment, controller: Client
) -> None:
    await lws_standin.install(stage.client)
    theirs = leader_worker_set()
    theirs["metadata"]["namespace"] = stage.namespace
    await stage.client.create(LEADER_WORKER_SETS, theirs, stage.namespace)

    async def write(body: Json, patch: PatchType, **more: Any) -> None:
        await controller.patch(LEADER_WORKER_SETS, NAME, stage.namespace, body=body, patch=patch, **more)

    with refused():
        await write({"status": {"conditions": [condition("Available")]}}, PatchType.MERGE, subresource="status")
    with pytest.raises(Forbidden):  # by RBAC
        await write({"spec": {"replicas": 7}}, PatchType.MERGE)
    ours = {"metadata": {"name": NAME}, "status": {"conditions": [condition(names.CONDITION)]}}
    await write(ours, PatchType.APPLY, subresource="status", field_manager="x")


CONVERTED = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://outside.example/"}},
}
"""With it a user sees and changes every JobSet of the cluster."""
PROPERTIES = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"


async def test_jobset_s_kind_gets_one_field(stage: Environment, controller: Client) -> None:
    for change in (
        put("/spec/conversion", CONVERTED),
        put(f"{PROPERTIES}/theirs", {"type": "string"}),
        put(f"{PROPERTIES}/suspend/description", "theirs"),
        {"op": "remove", "path": f"{PROPERTIES}/suspend"},
        put("/spec/versions/0/additionalPrinterColumns", [{"name": "A", "type": "string", "jsonPath": ".a"}]),
        put("/metadata/labels", {"theirs": "1"}),
    ):
        with refused():
            await controller.patch(CRDS, names.JOBSET_CRD, body=[change], patch=PatchType.JSON, dry_run=True)
        await stage.client.patch(CRDS, names.JOBSET_CRD, body=[change], patch=PatchType.JSON, dry_run=True)
    field = put(f"{PROPERTIES}/{names.CONFIG_FIELD}", {"type": "object", "description": "ours"})
    await controller.patch(CRDS, names.JOBSET_CRD, body=[field], patch=PatchType.JSON, dry_run=True)


# --- Webhook configurations ------------------------------------------------------------------------------------------

OURS: list[tuple[Resource, str]] = [
    (MUTATING_WEBHOOKS, MUTATING),
    (MUTATING_WEBHOOKS, names.POD_WEBHOOK),
    (MUTATING_WEBHOOKS, names.BARRIER_POD_WEBHOOK),
    (VALIDATING_WEBHOOKS, VALIDATING),
]
EVERYTHING: Json = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "*"}
OUTSIDE: Json = {"url": "https://outside.example/", "caBundle": "Cg=="}
WIDER: list[Json] = [
    put("/webhooks/0/rules", [EVERYTHING]),
    put("/webhooks/0/namespaceSelector", {}),
    put("/webhooks/0/matchConditions", []),
    put("/webhooks/0/clientConfig", OUTSIDE),
    put("/webhooks/0/clientConfig/service/path", "/other"),
    put("/webhooks/0/failurePolicy", "Ignore"),
    put("/webhooks", []),
    put("/metadata/labels/example.com~1mine", "1"),
    put("/metadata/ownerReferences", [OWNER]),
]


async def test_caBundle_and_nothing_else(real_plane: Real, release: Installed) -> None:  # noqa: N802 - the field's name
    async with real_plane.client() as admin, release.client(WEBHOOK) as webhook:
        for resource, name in OURS:
            for change in WIDER:
                with refused():
                    await webhook.patch(resource, name, body=[change], patch=PatchType.JSON, dry_run=True)
                # Nobody else is bound: an operator may, and a client that upgrades the chart.
                await admin.patch(resource, name, body=[change], patch=PatchType.JSON, dry_run=True)
            bundle = put("/webhooks/0/clientConfig/caBundle", "Cg==")
            stored = await webhook.patch(resource, name, body=[bundle], patch=PatchType.JSON, dry_run=True)
            assert stored["webhooks"][0]["clientConfig"]["caBundle"] == "Cg=="
