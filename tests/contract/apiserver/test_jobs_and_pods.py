"""Defaults and rules of Jobs and pods: the same assertions against the embedded and the real API server."""

from __future__ import annotations

from tests.contract.apiserver.api import JOBS, PODS, RawApi, bind, job, pod


async def test_a_job_is_defaulted(api: RawApi) -> None:
    made = await api.post(JOBS, job())
    spec = made.object["spec"]
    uid = made.meta["uid"]
    expected = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    assert {name: spec[name] for name in expected} == expected
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = {"batch.kubernetes.io/job-name": "j", "batch.kubernetes.io/controller-uid": uid}
    assert labels.items() <= spec["template"]["metadata"]["labels"].items()
    assert made.object["status"] == {}


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


async def test_a_pod_gets_its_node_once_by_binding(api: RawApi) -> None:
    await api.post(PODS, pod())
    assert (await bind(api, "p", "node-1")).status == 201
    bound = await api.get(f"{PODS}/p")
    assert bound.object["spec"]["nodeName"] == "node-1"
    scheduled = bound.object["status"]["conditions"][0]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    assert scheduled["lastTransitionTime"].endswith("Z")
    again = await bind(api, "p", "node-2")
    assert (again.status, again.reason) == (409, "Conflict")
    assert again.message.endswith('pod p is already assigned to node "node-1"')
