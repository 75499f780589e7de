"""Statuses and Events of pod groups (G5): only what changed, each fact once, nothing while pods are placed."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from controllers.podgroups import crds
from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.status import (
    EVENT_SPACING,
    MAX_EVENT_AGE,
    PROGRESS_SECONDS,
    QUIET_SECONDS,
    SETTLE_SECONDS,
    STATUS_WORKERS,
    WRITE_BURST,
    WRITES_PER_SECOND,
    PodGroupEventWriter,
    PodGroupStatusReconciler,
    PodGroupStatusWriter,
)
from jobset_gate import names
from jobset_gate.kube.errors import Conflict, Forbidden, KubeError, NotFound, ServerError
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, EVENTS
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from jobset_gate.podgroups.status import group_status
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.flowcontrol import RateLimiter
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.background import in_background
from tests.fakes.podgroups.cluster import PLUGINS, InMemoryCluster
from tests.fakes.podgroups.objects import config_map, key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound, group_snapshot, opened, timestamp
from tests.fakes.podgroups.sources import Json

G = key()
ROOM = GroupReason(reason=names.REASON_WAITING_FOR_CAPACITY, message="needs 4 cpu, 2 free")
A_WHILE = SETTLE_SECONDS + 0.1


class StatusApi(InMemoryCluster):
    """With one PodGroup and its CRD."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.put(PLUGINS, pod_group())
        self.crd = self.put(CRDS, crds.manifest(names.PLUGINS_GROUP))

    @property
    def group(self) -> Json:
        return self.stored(PLUGINS, "team", "g")

    @property
    def status(self) -> Json:
        found: Json = self.group.get("status", {})
        return found

    @property
    def condition(self) -> Json:
        found: Json = next(iter(self.status.get("conditions", [])), {})
        return found

    @property
    def verbs(self) -> list[str]:
        """Of all writes."""
        return [verb for verb, *_ in self.writes]

    @property
    def events(self) -> list[tuple[str, str]]:
        """(Reason, name of the object)."""
        return [(it["reason"], it["involvedObject"]["name"]) for it in self.all(EVENTS)]

    def set_group(self, **fields: Any) -> None:
        self.patch_object(PLUGINS, "g", fields)


class StatusHarness:
    """The status worker; a test says what the cache shows."""

    def __init__(self, api: StatusApi) -> None:
        clock = api.clock
        self.shown: dict[PodGroupKey, GroupSnapshot] = {}
        self._why: dict[PodGroupKey, GroupReason | None] = {}
        self.queue: WorkQueue[PodGroupKey] = WorkQueue()
        self._registry, limiter = CollectorRegistry(), RateLimiter(WRITES_PER_SECOND, WRITE_BURST)
        reconciler = PodGroupStatusReconciler(
            self.shown.get,
            lambda seen: group_status(seen, clock(), self._why[seen.group.key]),
            PodGroupStatusWriter(api.client, limiter, lambda *_: None, clock),
            PodGroupEventWriter(api.client, limiter, clock),
            metrics=PodGroupMetrics(self._registry),
            clock=clock,
        )
        metrics = ControllerMetrics(self._registry)
        self.loop = Controller("status", self.queue, reconciler.reconcile, metrics, workers=STATUS_WORKERS)

    def report_group(self, seen: GroupSnapshot, why: GroupReason | None = None) -> None:
        """The group was reconciled like this."""
        self.shown[seen.group.key], self._why[seen.group.key] = seen, why
        self.queue.add(seen.group.key)

    @property
    def failures(self) -> float:
        """Reconciles that ended with an error."""
        labels = {"controller": "status"}
        return self._registry.get_sample_value("controller_runtime_reconcile_errors_total", labels) or 0


@asynccontextmanager
async def status_harness(api: StatusApi) -> AsyncIterator[StatusHarness]:
    made = StatusHarness(api)
    async with in_background(made.loop.run()):
        yield made


@pytest.fixture
async def api(clock: VirtualClock) -> StatusApi:
    return StatusApi(clock)


def seen(api: StatusApi, *pods: Json, **more: Any) -> GroupSnapshot:
    """The group, with its PodGroup as stored."""
    return group_snapshot(*pods, group=copy.deepcopy(api.group), **more)


def admitted(api: StatusApi, **more: Any) -> AdmissionRecord:
    """Just now."""
    return msgspec.structs.replace(record((G, 1)), at=api.clock(), **more)


def waits(reason: str, message: str = "x") -> GroupReason:
    return GroupReason(reason=reason, message=message)


async def settled(at: StatusHarness, shown: GroupSnapshot, why: GroupReason | None = None) -> None:
    """Reconciled, with time for all that may be written at once."""
    at.report_group(shown, why)
    await asyncio.sleep(A_WHILE)


# --- Fields of the status ---------------------------------------------------------------------------------------------


async def test_all_fields_of_the_kind_are_written_at_once_and_our_condition_next_to_others(api: StatusApi) -> None:
    theirs = {"type": "Theirs", "status": "True"}
    api.set_group(status={"conditions": [theirs]})
    async with status_harness(api) as at:
        await settled(at, seen(api, pod("a"), pod("b")))
        assert api.status == {
            "phase": "Pending",
            "running": 0,
            "succeeded": 0,
            "failed": 0,
            "conditions": [
                theirs,
                {
                    "type": "GangSatisfied",
                    "status": "False",
                    "reason": "Gathering",
                    "message": "2/3 pods exist",
                    "lastTransitionTime": "2026-01-01T00:00:01Z",
                },
            ],
        }
        assert api.verbs == ["patch status"]


async def test_only_what_has_changed_is_in_a_patch(api: StatusApi) -> None:
    async with status_harness(api) as at:
        await settled(at, seen(api, pod("a")))
        for _ in range(3):
            await settled(at, seen(api, pod("a")))
        assert api.verbs == ["patch status"]
        done = record((G, 1), satisfied=api.clock(), minimum=1)
        await settled(at, seen(api, bound("a"), record=done))
        body = next(body for verb, *_, body in reversed(api.writes) if verb == "patch status")
        assert set(body["status"]) == {"phase", "running", "scheduleStartTime", "conditions"}
        assert set(body["metadata"]) == {"resourceVersion"}
        assert (api.status["phase"], api.condition["status"]) == ("Running", "True")
        assert api.status["scheduleStartTime"] == "2026-08-01T10:00:00Z"
        await settled(at, seen(api))
        assert "scheduleStartTime" not in api.status, "the group is closed again"
        assert api.status["phase"] == "Pending"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (
            lambda api: api.remove(CRDS, api.crd["metadata"]["name"], ""),
            {"phase": "Pending", "running": 0, "succeeded": 0, "failed": 0},
        ),
        (lambda api: api.crd["spec"]["versions"][0].pop("subresources"), {}),
    ],
    ids=["no right to see the CRD", "no status subresource"],
)
async def test_what_the_crd_has_no_field_for_is_in_the_annotation(
    api: StatusApi, change: Callable[[StatusApi], Any], status: Json
) -> None:
    change(api)
    async with status_harness(api) as at:
        await settled(at, seen(api, pod("a")), ROOM)
        assert api.status == status
        notes = api.group["metadata"]["annotations"]
        assert notes[names.POD_GROUP_STATE] == "Pending: WaitingForCapacity: needs 4 cpu, 2 free"


async def test_a_group_without_a_pod_group_has_the_annotation_on_the_configmap_of_its_record(api: StatusApi) -> None:
    stored = api.put(CONFIGMAPS, config_map(key()))["metadata"]
    version = stored["resourceVersion"]
    ref = RecordRef(api="", namespace="team", name=stored["name"], uid=stored["uid"], resource_version=version)
    async with status_harness(api) as at:
        for _ in range(2):
            notes = api.stored(CONFIGMAPS, "team", ref.name)["metadata"]["annotations"]
            state = notes.get(names.POD_GROUP_STATE, "")
            await settled(at, msgspec.structs.replace(group_snapshot(pod("a")), record_ref=ref, state=state), ROOM)
        notes = api.stored(CONFIGMAPS, "team", ref.name)["metadata"]["annotations"]
        assert notes[names.POD_GROUP_STATE].endswith("needs 4 cpu, 2 free")
        assert api.verbs.count("patch") == 1


# --- How often --------------------------------------------------------------------------------------------------------


async def test_while_the_pods_are_placed_nothing_is_written(api: StatusApi) -> None:
    async with status_harness(api) as at:
        record = admitted(api)
        await settled(at, seen(api, pod("a")))  # what was due before the admission
        api.writes.clear()
        at.report_group(seen(api, pod("a"), pod("b")), ROOM)
        for _ in range(7):
            await settled(at, seen(api, opened("a"), opened("b"), opened("c"), record=record))
        assert api.writes == []
        await asyncio.sleep(QUIET_SECONDS)
        assert api.verbs.count("patch status") == 1
        assert api.events == [("Opened", "g")]


async def test_counts_alone_are_written_every_quarter_of_a_minute(api: StatusApi) -> None:
    async with status_harness(api) as at:
        await settled(at, seen(api, pod("a")))
        began = api.clock()
        for count in range(2, 8):
            pods = [pod(f"p{number}") for number in range(count)]
            await settled(at, seen(api, *pods), waits(names.REASON_GATHERING, f"{count}/9"))
        assert len(api.writes) == 1
        await asyncio.sleep(PROGRESS_SECONDS)
        assert api.condition["message"] == "7/9"
        assert api.clock() - began > PROGRESS_SECONDS
        await settled(at, seen(api, pod("a")), ROOM)
        assert api.condition["reason"] == "WaitingForCapacity"


async def test_a_thousand_groups_are_reported_at_a_limited_rate(api: StatusApi) -> None:
    async with status_harness(api) as at:
        for number in range(200):  # without PodGroups: Events only
            of = key(f"g{number}")
            shown = group_snapshot(pod(f"p{number}", of=of), of=of)
            at.report_group(msgspec.structs.replace(shown, record=admitted(api, satisfied=api.clock())))
        await asyncio.sleep(1)
        assert len(api.events) <= WRITE_BURST + 2 * WRITES_PER_SECOND
        await asyncio.sleep(2 * 200 / WRITES_PER_SECOND)
        assert len(api.events) == 400


# --- Other clients ----------------------------------------------------------------------------------------------------

TERMINATING = Forbidden(403, "Forbidden", "goes", details={"causes": [{"reason": "NamespaceTerminating"}]})


@pytest.mark.parametrize(
    "refusal", [NotFound(404, "NotFound", ""), Conflict(409, "Conflict", ""), TERMINATING], ids=type
)
async def test_a_group_that_is_gone_meanwhile_or_goes_with_its_namespace_is_no_failure(
    api: StatusApi, refusal: KubeError
) -> None:
    api.fault = lambda verb, *_: refusal if verb == "patch status" or refusal is TERMINATING else None
    async with status_harness(api) as at:
        await settled(at, seen(api, pod("a")), ROOM)
        await asyncio.sleep(150)
        assert (at.failures, api.status) == (0, {})


async def test_a_recreated_pod_group_does_not_get_the_status_of_the_old_one(api: StatusApi) -> None:
    async with status_harness(api) as at:
        shown = seen(api, pod("a"))
        api.set_group(metadata={"uid": "another"})
        await settled(at, shown)
        assert (at.failures, api.status, api.group["metadata"].get("annotations")) == (0, {}, None)


async def test_a_status_that_conflicts_with_another_client_is_written_a_second_later(api: StatusApi) -> None:
    async with status_harness(api) as at:
        shown = seen(api, pod("a"))
        api.set_group(status={"occupiedBy": "default/train"})
        await settled(at, shown)
        assert (at.failures, api.status) == (0, {"occupiedBy": "default/train"})
        at.shown[G] = seen(api, pod("a"))
        await asyncio.sleep(A_WHILE)
        assert api.status["phase"] == "Pending"


# --- Events -----------------------------------------------------------------------------------------------------------


async def test_admission_and_satisfaction_have_one_event_each_in_a_generation(api: StatusApi) -> None:
    async with status_harness(api) as at:
        done = admitted(api, satisfied=api.clock() + 1.5)
        for _ in range(3):
            await settled(at, seen(api, bound("a"), bound("b"), bound("c"), record=done))
        assert api.events == [("Opened", "g"), ("Satisfied", "g")]
        opening, satisfaction = api.all(EVENTS)
        assert satisfaction["message"] == "3 pods are bound, 1.5 s after the group was opened"
        assert opening["involvedObject"]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
        await asyncio.sleep(EVENT_SPACING)
        again = admitted(api, satisfied=api.clock(), generation=2, gangs=((G, 2),))
        await settled(at, seen(api, record=again))
        assert [reason for reason, _ in api.events] == ["Opened", "Satisfied"] * 2


async def test_another_leader_repeats_no_event_and_writes_no_old_one(api: StatusApi) -> None:
    for _ in range(2):
        async with status_harness(api) as at:
            await settled(at, seen(api, pod("a")), ROOM)
    assert api.events == [("WaitingForCapacity", "g")]
    old = admitted(api, satisfied=api.clock())
    async with status_harness(api) as at:
        await asyncio.sleep(MAX_EVENT_AGE + 1)
        await settled(at, seen(api, bound("a"), bound("b"), bound("c"), record=old))
    assert len(api.events) == 1


async def test_reasons_that_come_and_go_have_one_event_in_a_generation(api: StatusApi) -> None:
    async with status_harness(api) as at:
        for number in range(5):
            for reason in (names.REASON_WAITING_FOR_CAPACITY, names.REASON_BEHIND_OTHER):
                at.report_group(seen(api, pod("a")), waits(reason, f"needs {number} cpu"))
                await asyncio.sleep(EVENT_SPACING + 1)
        assert api.events == [("WaitingForCapacity", "g"), ("BehindOther", "g")]


async def test_another_problem_has_another_event_but_not_too_often(api: StatusApi) -> None:
    async with status_harness(api) as at:
        for number in range(3):
            at.report_group(seen(api, pod("a")), waits(names.REASON_INVALID_GROUP, f"bad {number}"))
            await asyncio.sleep(0.5)
        assert api.events == [("InvalidGroup", "g"), ("InvalidGroup", "a")]
        await asyncio.sleep(EVENT_SPACING)
        assert {it["message"] for it in api.all(EVENTS)} == {"bad 0", "bad 2"}


# --- Failures ---------------------------------------------------------------------------------------------------------


async def test_what_fails_is_tried_again_and_counted(api: StatusApi) -> None:
    api.fault = lambda *_: ServerError(500, "InternalError", "no")
    async with status_harness(api) as at:
        await settled(at, seen(api, pod("a")), ROOM)
        assert at.failures > 0
        assert api.events == []
        api.fault = lambda *_: None
        await asyncio.sleep(60)
        assert api.events == [("WaitingForCapacity", "g")]
        assert api.status["phase"] == "Pending"


async def test_of_a_group_that_is_gone_nothing_is_written(api: StatusApi) -> None:
    async with status_harness(api) as at:
        at.report_group(seen(api, pod("a", meta={"creationTimestamp": timestamp(api.clock())})))
        del at.shown[G]
        await asyncio.sleep(400)
        assert api.writes == []
