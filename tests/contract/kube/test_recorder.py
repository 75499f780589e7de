"""Events on a real API server."""

from __future__ import annotations

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference


async def test_a_fact_is_recorded_once(client: Client, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, {"metadata": {"name": "x", "namespace": namespace}})
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
