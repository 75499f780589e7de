"""Defaults and rules of Jobs and pods: the same assertions against the embedded and the real API server."""

from __future__ import annotations

import pytest

from tests.contract.apiserver.api import JOBS, JSON_PATCH, PODS, Json, RawApi, bind, job, pod


async def test_a_job_is_defaulted(api: RawApi) -> None:
    made = await api.post(JOBS, job())
    spec = made.object["spec"]
    uid = made.meta["uid"]
    expected = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    assert {name: spec[name] for name in expected} == expected
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = {"batch.kubernetes.io/job-name": "j", "batch.kubernetes.io/controller-uid": uid}
    assert labels.items() <= spec["template"]["metadata"]["labels"].items()
    assert made.meta["labels"] == spec["template"]["metadata"]["labels"]
    assert made.object["status"] == {}


async def test_parallelism_alone_makes_a_work_queue(api: RawApi) -> None:
    made = await api.post(JOBS, job(parallelism=3))
    assert "completions" not in made.object["spec"]


@pytest.mark.parametrize(
    ("operations", "status"),
    [
        ([{"op": "replace", "path": "/spec/suspend", "value": True}], 200),
        ([{"op": "replace", "path": "/spec/parallelism", "value": 4}], 200),
        ([{"op": "replace", "path": "/spec/completions", "value": 4}], 422),
        ([{"op": "add", "path": "/spec/template/metadata/labels/a", "value": "b"}], 422),
        ([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "x"}], 422),
        ([{"op": "replace", "path": "/spec/completionMode", "value": "Indexed"}], 422),
    ],
)
async def test_what_of_a_running_job_may_change(api: RawApi, operations: object, status: int) -> None:
    await api.post(JOBS, job(completions=2, parallelism=2))
    assert (await api.call("PATCH", f"{JOBS}/j", operations, JSON_PATCH)).status == status


async def test_a_suspended_job_that_never_started_takes_scheduling_directives(api: RawApi) -> None:
    """How Kueue and JobSet place a gang: labels, annotations and where its pods may run, nothing else."""
    await api.post(JOBS, job(suspend=True))
    placed = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"jobset-gate.dev/epoch": "1"}},
        "spec": {
            "nodeSelector": {"zone": "z"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "schedulingGates": [{"name": "example.com/gate"}],
        },
    }
    assert (await api.merge(f"{JOBS}/j", {"spec": {"template": placed}})).status == 200
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "x"}]
    assert (await api.call("PATCH", f"{JOBS}/j", image, JSON_PATCH)).status == 422
    resumed = {"spec": {"suspend": False, "template": {"metadata": {"annotations": {"jobset-gate.dev/epoch": "2"}}}}}
    assert (await api.merge(f"{JOBS}/j", resumed)).status == 200


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"startTime": "2026-01-01T00:00:00Z"}, 422),
        ({"active": 1}, 422),
        (
            {"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]},
            200,
        ),
    ],
)
async def test_a_suspended_job_takes_them_only_when_nothing_of_it_runs(api: RawApi, status: Json, code: int) -> None:
    await api.post(JOBS, job(suspend=True))
    assert (await api.merge(f"{JOBS}/j/status", {"status": status})).status == 200
    placed = {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    assert (await api.merge(f"{JOBS}/j", placed)).status == code


async def test_an_indexed_job_grows_and_shrinks_as_one(api: RawApi) -> None:
    await api.post(JOBS, job(completionMode="Indexed", completions=2, parallelism=2))
    assert (await api.merge(f"{JOBS}/j", {"spec": {"completions": 4, "parallelism": 4}})).status == 200
    assert (await api.merge(f"{JOBS}/j", {"spec": {"completions": 3}})).status == 422


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}, "spec.template.spec.restartPolicy"),
        ({"template": {"spec": {"restartPolicy": "Never"}}}, "spec.template.spec.containers"),
        ({"completionMode": "Indexed", "parallelism": 1}, "spec.completions"),
        ({"parallelism": -1}, "spec.parallelism"),
    ],
)
async def test_jobs_that_cannot_run_are_refused(api: RawApi, spec: Json, field: str) -> None:
    refused = await api.post(JOBS, job(**spec))
    assert refused.status == 422
    assert field in refused.causes


async def test_a_pod_starts_pending_and_is_defaulted(api: RawApi) -> None:
    sent = pod()
    made = await api.post(PODS, {**sent, "status": {"phase": "Running"}})
    assert made.object["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    spec = made.object["spec"]
    expected = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
    assert {name: spec[name] for name in expected} == expected
    container = spec["containers"][0]
    assert (container["imagePullPolicy"], container["terminationMessagePath"]) == (
        "IfNotPresent",
        "/dev/termination-log",
    )


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({}, "BestEffort"),
    ],
)
async def test_the_class_of_a_pod_follows_from_its_resources(api: RawApi, resources: Json, qos: str) -> None:
    """A3: the barrier must not change it."""
    made = await api.post(PODS, pod(containers=[{"name": "a", "image": "b", "resources": resources}]))
    assert made.object["status"]["qosClass"] == qos


async def test_a_pod_gets_its_node_once_and_by_binding_only(api: RawApi) -> None:
    await api.post(PODS, pod())
    assert (await api.merge(f"{PODS}/p", {"spec": {"nodeName": "node-1"}})).status == 422
    assert (await bind(api, "p", "node-1")).status == 201
    bound = await api.get(f"{PODS}/p")
    assert bound.object["spec"]["nodeName"] == "node-1"
    scheduled = bound.object["status"]["conditions"][0]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    assert scheduled["lastTransitionTime"].endswith("Z")
    again = await bind(api, "p", "node-2")
    assert (again.status, again.reason) == (409, "Conflict")
    assert again.message.endswith('pod p is already assigned to node "node-1"')


async def test_a_gated_pod_cannot_be_bound_until_its_gates_are_open(api: RawApi) -> None:
    made = await api.post(PODS, pod(schedulingGates=[{"name": "example.com/gate"}]))
    assert made.object["status"]["conditions"][0]["reason"] == "SchedulingGated"
    assert (await bind(api, "p", "node-1")).status == 409
    assert (await api.merge(f"{PODS}/p", {"spec": {"schedulingGates": []}})).status == 200
    assert (await bind(api, "p", "node-1")).status == 201


async def test_most_of_a_pod_cannot_change(api: RawApi) -> None:
    await api.post(PODS, pod())
    assert (await api.merge(f"{PODS}/p", {"spec": {"restartPolicy": "Never"}})).status == 422
    assert (await api.merge(f"{PODS}/p", {"metadata": {"annotations": {"a": "b"}}})).status == 200


async def test_the_status_of_a_pod_leaves_its_spec_alone(api: RawApi) -> None:
    await api.post(PODS, pod())
    written = await api.merge(f"{PODS}/p/status", {"spec": {"restartPolicy": "Never"}, "status": {"phase": "Running"}})
    assert (written.object["spec"]["restartPolicy"], written.object["status"]["phase"]) == ("Always", "Running")
