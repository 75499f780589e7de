"""One pass over a gang: first the decision, then the news, and only then the words (A6)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from controllers.barrier.live_reader import LiveReader
from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec
from jobset_gate.barrier.model import (
    BarrierStage,
    ConfigMapSeen,
    GangKey,
    GangSnapshot,
    Generation,
    PodSeen,
    VerdictKind,
    WorkloadSeen,
)
from jobset_gate.kube.errors import Forbidden, ServerError
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBSETS
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes import gangs
from tests.fakes.background import in_background
from tests.fakes.call_blocker import CallBlocker
from tests.fakes.controller_harness import ControllerHarness
from tests.fakes.gangs import job, verdict
from tests.fakes.gate_stream import FakePeer
from tests.fakes.memory_api import Api, Json
from tests.fakes.memory_client import MemoryClient
from tests.fakes.present import present
from tests.fakes.stored_objects import store_jobset, store_pod, verdict_on
from tests.fakes.wire_objects import read_config_map, read_jobset

TRAIN = GangKey("default", "train")
NAME = "train-group-scheduling"


class ReconcilerHarness(ControllerHarness):
    """A reconciler whose views the test sets, and all that it asked for."""

    def __init__(self, api: Api, memory: MemoryClient, api_calls: CallBlocker, true: VirtualClock) -> None:
        super().__init__(api, memory, true)
        self.api_calls = api_calls
        metrics = ControllerMetrics(CollectorRegistry())
        self.words = Controller("status", self.status_queue, self.status.reconcile, metrics, workers=1)
        self.jobset = msgspec.structs.replace(store_jobset(api), token="t0ken")
        self.set_jobset(self.jobset)
        self.cache.on_job(ObjectChange(("default", "train-workers-0"), None, job(workload_uid=self.jobset.uid)))

    def set_jobset(self, jobset: WorkloadSeen) -> None:
        self.cache.on_workload(ObjectChange(("default", "train"), None, jobset))

    def add_pod(self, index: int, **changes: Any) -> PodSeen:
        stored = store_pod(self.api, f"pod-{index}")
        known = {"workload_uid": self.jobset.uid, "index": index, "barrier_since": self.clock()}
        pod = msgspec.structs.replace(stored, **(known | changes))
        self.cache.on_pod(ObjectChange(("default", pod.name), None, pod))
        return pod

    def ask(self, *pods: PodSeen) -> list[tuple[str, str, tuple[str, ...]]]:
        """These pods hold requests open: what each will hear, and what was requested of the API by then."""
        heard: list[tuple[str, str, tuple[str, ...]]] = []
        for pod in pods:
            client = FakePeer(partial(self._hears, heard, pod.uid))
            self.waiters.admit_request(TRAIN, "t0ken", Generation(self.jobset.uid, 0, 0), pod.uid, client)
        return heard

    def _hears(self, heard: list[tuple[str, str, tuple[str, ...]]], pod: str, text: str) -> None:
        heard.append((pod, text, tuple(self.requested())))

    def add_config_map(self, data: Json) -> None:
        """Stored with this in it, and known."""
        uid = self.jobset.uid
        meta = {"name": NAME, "labels": {names.GATE: names.GATE_VALUE}, "annotations": {names.JOBSET_UID: uid}}
        stored = self.api.create(CONFIGMAPS, {"metadata": meta, "data": data})
        self.cache.set_config_map(TRAIN, read_config_map(stored))

    def edit(self, verdict: str) -> ConfigMapSeen | None:
        """A user writes this into the ConfigMap; how that looks."""
        stored = self.api.change(CONFIGMAPS, NAME, lambda body: body["data"].update({names.KEY_VERDICT: verdict}))
        return read_config_map(stored)

    def jobset_in_api(self) -> WorkloadSeen:
        """As far as we have written it: with its condition."""
        stored = present(read_jobset(self.api.known(JOBSETS, "train")))
        return msgspec.structs.replace(self.jobset, condition=stored.condition)

    async def reconcile(self) -> float | None:
        """One pass, the patches that it asked for, and then the words."""
        again = await self.reconciler.reconcile(TRAIN)
        for work in (self.patcher.run(), self.words.run()):
            async with in_background(work):
                await asyncio.sleep(0.01)
        return again

    def requested(self) -> list[str]:
        return [f"{call.verb} {call.kind.plural}" for call in self.api_calls.calls]

    def config_map_data(self) -> dict[str, str]:
        found: dict[str, str] = self.api.known(CONFIGMAPS, NAME)["data"]
        return found


@pytest.fixture
def harness(api: Api, memory: MemoryClient, api_calls: CallBlocker, clock: VirtualClock) -> ReconcilerHarness:
    return ReconcilerHarness(api, memory, api_calls, clock)


async def test_the_decision_is_written_before_it_is_reported(harness: ReconcilerHarness) -> None:
    """And the stream has the news before any other message."""
    pods = [harness.add_pod(0), harness.add_pod(1)]
    heard = harness.ask(*pods[:1])
    await harness.reconcile()
    text = harness.config_map_data()["verdict"]
    assert harness.requested()[:2] == ["get jobsets", "create configmaps"]
    assert sorted(harness.requested()[2:]) == ["create events", "patch jobsets", "patch pods"]
    assert heard == [(pods[0].uid, text, ("get jobsets", "create configmaps"))]
    assert verdict_on(harness.api, pods[1]) == text


async def test_a_pod_that_announces_itself_during_the_last_look_before_a_timeout_is_there(
    harness: ReconcilerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.add_pod(0)
    late = harness.add_pod(1, stage=BarrierStage.WAITING, barrier_since=None)

    async def refresh(_: LiveReader, seen: GangSnapshot, **_more: object) -> GangSnapshot:
        harness.ask(late)
        return seen

    monkeypatch.setattr(LiveReader, "refresh", refresh)
    await harness.reconcile()
    await asyncio.sleep(301)
    await harness.reconcile()
    assert harness.config_map_data()[names.KEY_VERDICT].startswith("release ")


async def test_a_pod_that_a_user_names_at_another_gang_gets_its_patch(harness: ReconcilerHarness) -> None:
    """That answer proves nothing about the pod."""
    victim = harness.add_pod(0)
    harness.add_pod(1)
    own = gangs.jobset(namespace="theirs", name="own", token="theirs")
    harness.cache.on_workload(ObjectChange(("theirs", "own"), None, own))
    decided = gangs.config_map(namespace="theirs", name="own-group-scheduling", verdict=gangs.verdict())
    harness.cache.on_config_map(ObjectChange(("theirs", decided.name), None, decided))
    client = FakePeer(lambda _: None)
    request = harness.waiters.admit_request(
        GangKey("theirs", "own"), "theirs", Generation(own.uid, 0, 0), victim.uid, client
    )
    assert request.answered
    harness.waiters.acknowledge_request(request)
    await harness.reconcile()
    assert verdict_on(harness.api, victim) == harness.config_map_data()["verdict"]


async def test_a_gang_that_waits_no_more_gives_its_places_on_the_stream_back(harness: ReconcilerHarness) -> None:
    pod = harness.add_pod(0, stage=BarrierStage.WAITING)
    heard = harness.ask(pod)
    harness.set_jobset(msgspec.structs.replace(harness.jobset, suspended=True))
    await harness.reconcile()
    assert [(uid, said) for uid, said, _ in heard] == [(pod.uid, "dropped")]


@pytest.mark.parametrize("how", ["deleted", "emptied"])
async def test_a_verdict_that_only_the_api_knows_is_not_taken_again(harness: ReconcilerHarness, how: str) -> None:
    """It was another replica's, its ConfigMap is lost, and the watch has not yet shown the condition that tells of it.

    All pods have started by now: in this view nothing speaks against a release.
    """
    taken = verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, uid=harness.jobset.uid)
    sent = messages.decided(taken)
    condition = {"type": names.CONDITION, "status": sent.status, "reason": sent.reason, "message": sent.message}
    harness.api.change(JOBSETS, "train", lambda body: body.update(status={"conditions": [condition]}))
    if how == "emptied":
        harness.add_config_map(data={"verdict": "?"})
    harness.add_pod(0)
    harness.add_pod(1)
    await harness.reconcile()
    kept = present(verdict_codec.parse(harness.config_map_data()["verdict"]))
    assert (kept.kind, kept.generation) == (VerdictKind.TIMEOUT, taken.generation)


# --- A ConfigMap that a user has edited well -----------------------------------------------------------------------


@pytest.mark.parametrize("restarted", [False, True], ids=["while it runs", "while no controller ran"])
async def test_a_timeout_that_is_edited_into_a_release_is_put_back_and_the_release_is_delivered_to_no_pod(
    harness: ReconcilerHarness, restarted: bool
) -> None:
    pods = [harness.add_pod(0)]
    await harness.reconcile()
    await asyncio.sleep(301)
    await harness.reconcile()
    before = harness.config_map_data()[names.KEY_VERDICT]
    assert before.startswith("timeout ")
    edited = harness.edit(before.replace("timeout", "release", 1))
    if restarted:
        harness.set_jobset(harness.jobset_in_api())
        harness.cache.remember_verdict(TRAIN, None)
    harness.cache.set_config_map(TRAIN, edited)
    heard = harness.ask(*pods)
    await harness.reconcile()
    assert harness.config_map_data()[names.KEY_VERDICT] == before
    assert {text for _, text, _ in heard} <= {before}
    assert verdict_on(harness.api, pods[0]) in ("", before)


async def test_a_verdict_that_the_view_does_not_bear_out_is_not_judged_without_asking_the_api(
    harness: ReconcilerHarness,
) -> None:
    harness.add_pod(0)
    await harness.reconcile()
    text = f"release {harness.jobset.uid} 7 0 AllPodsStarted\n"
    harness.cache.set_config_map(TRAIN, harness.edit(text))
    harness.api_calls.fail = lambda call: ServerError(500) if call.verb == "get" else None
    with pytest.raises(ServerError):
        await harness.reconcile()
    assert harness.config_map_data()[names.KEY_VERDICT] == text


@pytest.mark.parametrize("again", [False, True])
async def test_nothing_is_decided_for_a_jobset_that_is_gone_or_another_by_now(
    harness: ReconcilerHarness, again: bool
) -> None:
    harness.add_pod(0)
    harness.add_pod(1)
    harness.api.remove(JOBSETS, "train")
    if again:
        store_jobset(harness.api)
    with pytest.raises(Requeue):
        await harness.reconcile()
    assert harness.api.get(CONFIGMAPS, NAME) is None


async def test_a_gang_whose_configmap_is_as_it_should_be_is_decided_without_asking(harness: ReconcilerHarness) -> None:
    harness.add_pod(0)
    await harness.reconcile()
    harness.add_pod(1)
    before = len(harness.api_calls.calls)
    await harness.reconcile()
    assert harness.requested()[before] == "update configmaps"


async def test_a_failed_index_that_the_api_does_not_confirm_ends_no_gang(harness: ReconcilerHarness) -> None:
    """The Job was created again: the API has none of that index."""
    lost = job(workload_uid=harness.jobset.uid, failed=frozenset({1}))
    harness.add_pod(0)
    harness.cache.on_job(ObjectChange(("default", lost.name), None, lost))
    again = await harness.reconcile()
    assert names.KEY_VERDICT not in harness.config_map_data()
    assert again is not None, "no event may come that would enqueue it"


async def test_in_a_namespace_that_goes_nothing_is_tried_again(harness: ReconcilerHarness) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace default is being terminated"}
    harness.api_calls.fail = lambda call: Forbidden(403, details={"causes": [cause]}) if call.verb == "create" else None
    harness.add_pod(0)
    assert await harness.reconcile() is None


async def test_a_conflict_about_the_config_map_of_a_decided_gang_leaves_the_condition(
    harness: ReconcilerHarness,
) -> None:
    """It may be the only record of the verdict (A10); an Event says that there is a conflict."""
    harness.add_pod(0), harness.add_pod(1)
    await harness.reconcile()
    harness.api.change(CONFIGMAPS, NAME, lambda body: body["metadata"].update(labels={}))
    harness.cache.set_config_map_conflict(TRAIN)
    await harness.reconcile()
    assert present(harness.jobset_in_api().condition).reason == names.REASON_STARTED
    assert [event["reason"] for event in harness.api.all(EVENTS)] == ["AllPodsStarted", "ConfigMapConflict"]
