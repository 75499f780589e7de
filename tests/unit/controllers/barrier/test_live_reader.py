"""The closer look before a verdict fails a gang: what the API has now, and what Events say of quotas and nodes (A9)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controllers.barrier.live_reader import LiveReader
from jobset_gate import names
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Decide
from jobset_gate.barrier.model import GangSnapshot, PendingCause, PendingReason, VerdictKind
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, KubeError, ServerError, Unreachable
from jobset_gate.kube.resources import EVENTS, JOBS, PODS
from tests.fakes import gangs
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.gangs import decided, missing_slots
from tests.fakes.large_lists import LargeListServer, peak
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import MemoryClient
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.wire_objects import BARRIER, JOB_UID, TEN_O_CLOCK, bare_job, bare_job_pod, owner, read_job, status

LATE = gangs.T0 + 300
STALE = gangs.gang(gangs.pod(0), gangs.waiting_pod(1), config_map=gangs.config_map(waiting_since=gangs.clock()))
"""What the watches have shown: the second pod has not started, and time is up."""


@pytest.fixture
def look(memory: MemoryClient) -> LiveReader:
    return LiveReader(memory.client)


def labels(**more: str) -> dict[str, str]:
    return {
        names.GATED: names.GATED_VALUE,
        names.JS_NAME: "train",
        names.JS_UID: gangs.UID,
        names.JS_REPLICATED_JOB: "workers",
        names.JS_JOB_INDEX: "0",
        names.JS_RESTART_ATTEMPT: "0",
    } | more


def store_job(api: Api) -> str:
    reference = owner("JobSet", "train", gangs.UID)
    meta = {"name": "train-workers-0", "labels": labels(), "ownerReferences": [reference]}
    return str(api.create(JOBS, {"metadata": meta, "spec": {}, "status": {}})["metadata"]["uid"])


def store_pod(api: Api, index: int, job: str, *, runs: bool, node: str = "node", **more: str) -> None:
    state: Json = {"running": {"startedAt": "2027-01-15T08:00:00Z"}} if runs else {"waiting": {}}
    meta = {
        "name": f"train-workers-0-{index}",
        "labels": labels(**more),
        "ownerReferences": [owner("Job", "train-workers-0", job)],
        "annotations": {names.JOB_COMPLETION_INDEX: str(index)},
    }
    barrier = {"name": names.BARRIER_CONTAINER, "state": state}
    found = {"phase": "Pending", "initContainerStatuses": [barrier]}
    api.create(PODS, {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": found})


def tell(api: Api, kind: str, name: str, reason: str, message: str = "", **regarding: Any) -> None:
    about = {"kind": kind, "name": name} | regarding
    body = {"involvedObject": about, "reason": reason, "message": message}
    api.create(EVENTS, {"metadata": {"name": f"event-{len(api.all(EVENTS))}"}} | body)


async def test_a_pod_that_started_while_the_watch_was_silent_saves_its_gang(api: Api, look: LiveReader) -> None:
    job = store_job(api)
    store_pod(api, 0, job, runs=True)
    store_pod(api, 1, job, runs=True)
    before = decided(Decide, STALE, LATE)
    assert before.verdict.kind is VerdictKind.TIMEOUT
    after = decided(Decide, await look.refresh(STALE), LATE)
    assert after.verdict.kind is VerdictKind.RELEASE


async def test_only_this_gangs_objects_are_looked_at(api: Api, look: LiveReader) -> None:
    job = store_job(api)
    store_pod(api, 0, job, runs=True)
    store_pod(api, 1, job, runs=True, **{names.JS_NAME: "other"})
    store_pod(api, 2, job, runs=True, **{names.GATED: "no"})
    assert [pod.index for pod in (await look.refresh(STALE)).pods] == [0]


@pytest.mark.parametrize("kind", [JOBS, PODS])
async def test_without_a_look_there_is_no_verdict(look: LiveReader, api_calls: CallBlocker, kind: object) -> None:
    api_calls.fail = lambda call: ServerError(500) if call.kind == kind else None
    with pytest.raises(ServerError):
        await look.refresh(STALE)


@pytest.mark.parametrize("error", [Forbidden(403), ServerError(500), Unreachable("reset")])
async def test_without_events_the_verdict_says_less_but_is_taken(
    api: Api, look: LiveReader, api_calls: CallBlocker, error: KubeError
) -> None:
    store_pod(api, 0, store_job(api), runs=True)
    api_calls.fail = lambda call: error if call.kind == EVENTS else None
    fresh = await look.refresh(STALE)
    assert (len(fresh.pods), fresh.denials, fresh.provisioning) == (1, (), frozenset())


# --- Events ---------------------------------------------------------------------------------------------------------


def reasons(seen: GangSnapshot) -> list[tuple[str, PendingReason, str]]:
    return [(one.slot(seen.workload.source), one.cause.reason, one.cause.message) for one in missing_slots(seen)]


async def test_pods_that_a_quota_refused_are_named_in_its_words(api: Api, look: LiveReader) -> None:
    store_pod(api, 0, store_job(api), runs=True)
    tell(api, "Job", "train-workers-0", "FailedCreate", "exceeded quota: gpus,\n  requested: 8")
    assert reasons(await look.refresh(STALE)) == [
        ("workers-0/1", PendingReason.QUOTA_DENIED, "exceeded quota: gpus, requested: 8")
    ]


@pytest.mark.parametrize("reason", ["TriggeredScaleUp", "Nominated"])
async def test_a_pod_for_which_a_node_is_on_its_way_is_named_so(api: Api, look: LiveReader, reason: str) -> None:
    job = store_job(api)
    store_pod(api, 0, job, runs=True)
    store_pod(api, 1, job, runs=False, node="")
    tell(api, "Pod", "train-workers-0-1", reason, "pod triggered scale-up")
    assert [(slot, why) for slot, why, _ in reasons(await look.refresh(STALE))] == [
        ("workers-0/1", PendingReason.NODE_PROVISIONING)
    ]


async def test_what_a_kubelet_cannot_do_is_reported_in_its_words(api: Api, look: LiveReader) -> None:
    job = store_job(api)
    store_pod(api, 0, job, runs=True)
    store_pod(api, 1, job, runs=False)
    uid = api.known(PODS, "train-workers-0-1")["metadata"]["uid"]
    words = 'MountVolume.SetUp failed: secret "tokens" not found'
    tell(api, "Pod", "train-workers-0-1", "FailedMount", words, uid=uid)
    seen = gangs.gang(gangs.pod(0), gangs.waiting_pod(1, pending=PendingCause(reason=PendingReason.STARTING)))
    assert reasons(await look.refresh(seen)) == [("workers-0/1", PendingReason.STARTING, f"FailedMount: {words}")]


async def test_nothing_is_read_about_pods_that_do_not_wait_for_it(
    api: Api, look: LiveReader, api_calls: CallBlocker
) -> None:
    store_pod(api, 0, store_job(api), runs=True)
    await look.refresh(gangs.gang(gangs.pod(0)))
    assert [call.kind for call in api_calls.calls] == [EVENTS, JOBS, PODS], "pods last: they count"
    api_calls.calls.clear()
    await look.refresh(STALE, reasons=False)
    assert [call.kind for call in api_calls.calls] == [JOBS, PODS]


# --- A gang of a plain Job -------------------------------------------------------------------------------------------

RUNS = status(BARRIER, running="2026-08-01T10:00:30Z")


@pytest.mark.parametrize("uid", [JOB_UID, "another", None], ids=["still there", "another one by now", "gone"])
async def test_only_a_job_that_is_still_there_starts_its_gang(api: Api, look: LiveReader, uid: str | None) -> None:
    job = read_job(bare_job(parallelism=2, completions=2))
    assert job.workload is not None
    if uid is not None:
        api.put(JOBS, bare_job(parallelism=2, completions=2, meta={"name": "run", "namespace": "team-a", "uid": uid}))
    for index in range(2):
        api.put(PODS, bare_job_pod(index, RUNS))
    live = await look.refresh(GangSnapshot(workload=job.workload, jobs=(job,), pods=(), config_map=None), reasons=False)
    assert isinstance(decide(live, TEN_O_CLOCK + 60), Decide) is (uid == JOB_UID)


# --- Events that a tenant has written ---------------------------------------------------------------------------------


def event_line(job: str, message: str) -> bytes:
    return msgspec.json.encode({"involvedObject": {"kind": "Job", "name": job}, "message": message})


async def test_150_events_of_almost_etcds_limit_cost_the_memory_of_one() -> None:
    large = event_line("train-workers-1", "x" * 1_400_000)
    every = LargeListServer([event_line("train-workers-0", "exceeded quota: pods"), *([large] * 150)])
    found: dict[str, str] = {}

    async def read(client: Client) -> None:
        found.update(await LiveReader(client).list_denials("ns", "Job"))

    async with ScriptedServer() as server, Client(Access(server.url)) as client:
        server.lists.extend([every] * 100)
        assert await peak(read(client)) < 16
    assert found["train-workers-0"] == "exceeded quota: pods"
