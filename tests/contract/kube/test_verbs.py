"""The verbs against the embedded and a real API server: how refusals come back, and what only we send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound, is_uid_mismatch
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, PODS
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference

Json = dict[str, Any]
Refused = Callable[[Client, str, Json], Awaitable[object]]
"""Of a client, the namespace and the ConfigMap `x` in it."""


@pytest.fixture
async def made(client: Client, namespace: str) -> Json:
    """A ConfigMap."""
    body = {"metadata": {"name": "x", "namespace": namespace, "labels": {"l": "1"}}, "data": {"a": "1"}}
    return await client.create(CONFIGMAPS, body)


def merge(client: Client, namespace: str, **meta: str) -> Awaitable[Json]:
    body = {"metadata": meta, "data": {"a": "2"}}
    return client.patch(CONFIGMAPS, "x", namespace, body=body, patch=PatchType.MERGE)


def guarded(client: Client, namespace: str, version: str) -> Awaitable[Json]:
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/data/a", "value": "2"},
    ]
    return client.patch(CONFIGMAPS, "x", namespace, body=operations, patch=PatchType.JSON)


def stale(made: Json) -> Json:
    return {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}, "data": {"a": "2"}}


REFUSED: dict[str, tuple[type[ApiError], Refused]] = {
    "create: the name is taken": (
        AlreadyExists,
        lambda client, ns, _: client.create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": ns}}),
    ),
    "get: not there": (NotFound, lambda client, namespace, _: client.get(CONFIGMAPS, "y", namespace)),
    "replace: another version": (Conflict, lambda client, _, made: client.replace(CONFIGMAPS, stale(made))),
    "merge patch: another version": (Conflict, lambda client, ns, _: merge(client, ns, resourceVersion="1")),
    "merge patch: another UID": (Invalid, lambda client, ns, _: merge(client, ns, uid="another")),
    "JSON patch: its test fails": (Invalid, lambda client, namespace, _: guarded(client, namespace, "1")),
    "delete: another UID": (Conflict, lambda client, ns, _: client.delete(CONFIGMAPS, "x", ns, uid="another")),
    "delete: another version": (
        Conflict,
        lambda client, ns, _: client.delete(CONFIGMAPS, "x", ns, resource_version="1"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_refusal_comes_as_its_exception_and_changes_nothing(
    client: Client, namespace: str, made: Json, case: str
) -> None:
    kind, refused = REFUSED[case]
    with pytest.raises(kind) as caught:
        await refused(client, namespace, made)
    assert type(caught.value) is kind
    assert is_uid_mismatch(caught.value) is (case == "merge patch: another UID")
    assert (await client.get(CONFIGMAPS, "x", namespace))["data"] == {"a": "1"}


async def test_writes_that_name_the_present_version_go_through(client: Client, namespace: str, made: Json) -> None:
    second = await client.replace(CONFIGMAPS, {**made, "data": {"a": "3"}})
    third = await merge(client, namespace, resourceVersion=second["metadata"]["resourceVersion"])
    fourth = await guarded(client, namespace, third["metadata"]["resourceVersion"])
    meta = fourth["metadata"]
    await client.delete(CONFIGMAPS, "x", namespace, uid=meta["uid"], resource_version=meta["resourceVersion"])
    with pytest.raises(NotFound) as absent:
        await client.delete(CONFIGMAPS, "x", namespace)
    assert (absent.value.reason, absent.value.details["kind"]) == ("NotFound", "configmaps")


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
    meta = {"name": "p", "namespace": namespace}
    await client.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "none"}]}})
    condition = {"type": "Ours", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R"}
    body = {"status": {"conditions": [condition]}}
    ignored = await client.patch(PODS, "p", namespace, body=body, patch=PatchType.MERGE)
    assert "Ours" not in [each["type"] for each in ignored["status"].get("conditions", [])]
    written = await client.patch(
        PODS, "p", namespace, body=body, patch=PatchType.APPLY, subresource="status", field_manager="m"
    )
    assert "Ours" in [each["type"] for each in written["status"]["conditions"]]


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
