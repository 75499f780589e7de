"""The verbs against the embedded and a real API server: what is written, and how refusals come back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBS, NODES, PODS
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference

Json = dict[str, Any]


@pytest.fixture
async def made(client: Client, namespace: str) -> Json:
    """A ConfigMap."""
    body = {"metadata": {"name": "x", "namespace": namespace, "labels": {"l": "1"}}, "data": {"a": "1"}}
    return await client.create(CONFIGMAPS, body)


def job(namespace: str) -> Json:
    container = {"name": "c", "image": "none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "metadata": {"name": "j", "namespace": namespace},
        "spec": {"suspend": True, "template": template},
    }


def pod(namespace: str) -> Json:
    return {"metadata": {"name": "p", "namespace": namespace}, "spec": {"containers": [{"name": "c", "image": "none"}]}}


async def test_a_created_object_can_be_read_and_its_name_is_taken(client: Client, made: Json, namespace: str) -> None:
    assert await client.get(CONFIGMAPS, "x", namespace) == {"apiVersion": "v1", "kind": "ConfigMap", **made}
    with pytest.raises(AlreadyExists) as caught:
        await client.create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": namespace}})
    assert caught.value.details["name"] == "x"
    with pytest.raises(NotFound) as absent:
        await client.get(CONFIGMAPS, "y", namespace)
    assert (absent.value.reason, absent.value.details["kind"]) == ("NotFound", "configmaps")


async def test_a_dry_run_changes_nothing(client: Client, made: Json, namespace: str) -> None:
    await client.create(CONFIGMAPS, {"metadata": {"name": "y", "namespace": namespace}}, dry_run=True)
    await client.patch(CONFIGMAPS, "x", namespace, body={"data": {"a": "2"}}, patch=PatchType.MERGE, dry_run=True)
    listed = await client.list(CONFIGMAPS, namespace, label_selector="l=1")
    assert [item["data"] for item in listed["items"]] == [{"a": "1"}]
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "y", namespace)


async def test_replace_is_compare_and_swap(client: Client, made: Json) -> None:
    second = await client.replace(CONFIGMAPS, {**made, "data": {"a": "2"}})
    with pytest.raises(Conflict) as caught:
        await client.replace(CONFIGMAPS, {**made, "data": {"a": "3"}})
    assert type(caught.value) is Conflict
    assert (await client.replace(CONFIGMAPS, {**second, "data": {"a": "3"}}))["data"] == {"a": "3"}


async def test_a_merge_patch_with_a_resource_version_is_compare_and_swap_too(
    client: Client, made: Json, namespace: str
) -> None:
    def patch(version: str, value: str) -> Json:
        return {"metadata": {"resourceVersion": version}, "data": {"a": value, "b": None}}

    version = made["metadata"]["resourceVersion"]
    await client.patch(CONFIGMAPS, "x", namespace, body=patch(version, "2"), patch=PatchType.MERGE)
    with pytest.raises(Conflict):
        await client.patch(CONFIGMAPS, "x", namespace, body=patch(version, "3"), patch=PatchType.MERGE)


async def test_a_json_patch_whose_test_fails_is_invalid_and_changes_nothing(
    client: Client, made: Json, namespace: str
) -> None:
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "2"},
    ]
    with pytest.raises(Invalid):
        await client.patch(CONFIGMAPS, "x", namespace, body=operations, patch=PatchType.JSON)
    assert await client.get(CONFIGMAPS, "x", namespace) == {"apiVersion": "v1", "kind": "ConfigMap", **made}
    operations[0]["value"] = made["metadata"]["resourceVersion"]
    patched = await client.patch(CONFIGMAPS, "x", namespace, body=operations, patch=PatchType.JSON)
    assert patched["data"] == {"a": "2"}


async def test_apply_owns_what_it_says_conflicts_with_others_and_takes_by_force(client: Client, namespace: str) -> None:
    async def apply(manager: str, data: dict[str, str], *, force: bool = False) -> Json:
        return await client.patch(
            CONFIGMAPS, "x", namespace, body={"data": data}, patch=PatchType.APPLY, field_manager=manager, force=force
        )

    await apply("one", {"a": "1", "b": "1"})
    assert (await apply("two", {"c": "2"}))["data"] == {"a": "1", "b": "1", "c": "2"}
    with pytest.raises(Conflict) as caught:
        await apply("two", {"a": "2"})
    assert caught.value.details["causes"][0]["field"] == ".data.a"
    assert (await apply("two", {"a": "2"}, force=True))["data"] == {"a": "2", "b": "1"}
    assert (await apply("one", {"b": "1"}))["data"] == {"a": "2", "b": "1"}


async def test_status_is_written_by_its_subresource_alone(client: Client, namespace: str) -> None:
    await client.create(PODS, pod(namespace))
    condition = {"type": "Ours", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R"}
    body = {"status": {"conditions": [condition]}}
    ignored = await client.patch(PODS, "p", namespace, body=body, patch=PatchType.MERGE)
    assert "Ours" not in [each["type"] for each in ignored["status"].get("conditions", [])]
    written = await client.patch(
        PODS, "p", namespace, body=body, patch=PatchType.APPLY, subresource="status", field_manager="m"
    )
    assert "Ours" in [each["type"] for each in written["status"]["conditions"]]


async def test_a_strategic_patch_merges_lists_by_their_keys(client: Client, namespace: str) -> None:
    await client.create(JOBS, job(namespace))
    container = {"name": "c", "image": "other"}
    body = {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}, "metadata": {"labels": {"a": "b"}}}
    patched = await client.patch(JOBS, "j", namespace, body=body, patch=PatchType.STRATEGIC)
    assert patched["metadata"]["labels"]["a"] == "b"
    assert [each["name"] for each in patched["spec"]["template"]["spec"]["containers"]] == [container["name"]]


async def test_a_deletion_keeps_to_its_preconditions(client: Client, made: Json, namespace: str) -> None:
    meta = made["metadata"]
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "x", namespace, uid="another")
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "x", namespace, resource_version="1")
    await client.delete(CONFIGMAPS, "x", namespace, uid=meta["uid"], resource_version=meta["resourceVersion"])
    with pytest.raises(NotFound):
        await client.delete(CONFIGMAPS, "x", namespace)


async def test_a_pod_is_bound_by_its_subresource(client: Client, namespace: str) -> None:
    node = f"node-{namespace}"
    await client.create(NODES, {"metadata": {"name": node}})
    try:
        await client.create(PODS, pod(namespace))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await client.post(PODS.path(namespace, "p", "binding"), binding)
        assert (await client.get(PODS, "p", namespace))["spec"]["nodeName"] == node
        await client.delete(PODS, "p", namespace, grace_seconds=0)
    finally:
        await client.delete(NODES, node)


async def test_a_list_comes_in_pages_of_one_version_and_a_bad_token_is_refused(client: Client, namespace: str) -> None:
    await asyncio.gather(
        *(client.create(CONFIGMAPS, {"metadata": {"name": f"n{i}", "namespace": namespace}}) for i in range(5))
    )
    names: list[str] = []
    versions: set[str] = set()
    go_on = ""
    while True:
        page = await client.list(CONFIGMAPS, namespace, limit=2, continue_=go_on)
        names += [item["metadata"]["name"] for item in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        go_on = page["metadata"].get("continue", "")
        if not go_on:
            break
    assert {"n0", "n1", "n2", "n3", "n4"} <= set(names)
    assert len(names) == len(set(names))
    assert len(versions) == 1


async def test_a_fact_is_recorded_once(client: Client, made: Json, namespace: str) -> None:
    recorder = EventRecorder(client, "jobset-gate")
    ref = ObjectReference("v1", "ConfigMap", "x", namespace, made["metadata"]["uid"])
    message = "300/300 pods \N{CHECK MARK} " + "x" * 2000
    assert await recorder.record(ref, "AllPodsStarted", message, fact="x 0.1 released")
    assert not await recorder.record(ref, "AllPodsStarted", "another text", fact="x 0.1 released")
    (event,) = (await client.list(EVENTS, namespace, field_selector="reason=AllPodsStarted"))["items"]
    assert event["message"].startswith("300/300 pods \N{CHECK MARK}")
    assert len(event["message"]) == 1024
    assert event["involvedObject"]["uid"] == made["metadata"]["uid"]
    assert event["source"] == {"component": "jobset-gate"}
