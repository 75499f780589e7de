"""An admitted group is ungated, and one that is over is closed (G3, G4); virtual time."""

from __future__ import annotations

import itertools
import random
from functools import partial

import pytest

from jobset_gate import names
from jobset_gate.kube.errors import Conflict, ServerError
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, POD_GROUPS, PODS, Resource
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.generation import JOIN_SECONDS
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.record import AdmissionState, decode_record
from jobset_gate.settings import Groups
from tests.fakes.podgroups.cluster import OFF, OWNED, PLUGINS, InMemoryCluster, run_for, running_controller
from tests.fakes.podgroups.manifests import record_text
from tests.fakes.podgroups.objects import key, made_by, pod_group
from tests.fakes.podgroups.sources import GANG, Json, alibaba

LABELS = {
    Flavor.KOORDINATOR: {names.KOORDINATOR_LABEL: "g"},
    Flavor.SCHEDULER_PLUGINS: {names.PLUGINS_NAME: "g"},
    Flavor.ALIBABA: alibaba("g", "2"),
}

# --- Members that come later -----------------------------------------------------------------------------------------


async def test_a_successor_opens_only_pods_that_are_older_than_the_decision(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster, OFF):
        cluster.fault = lambda _, kind, *__: ServerError(500) if kind == PODS else None
        cluster.create_group("g", "a", "b", minimum=2)
        await run_for(5)
        assert cluster.recorded().stage is AdmissionState.OPEN
    cluster.fault = lambda *_: None
    cluster.remove(PODS, "a")
    cluster.remove(PODS, "b")
    cluster.create_group("g", "c")
    async with running_controller(cluster, OFF):
        await run_for(10)
        assert cluster.ungated_pods() == []
        cluster.create_group("g", "d")
        await run_for()
        assert cluster.ungated_pods() == ["c", "d"]


async def test_a_pod_group_that_is_changed_or_deleted_harms_no_pod(cluster: InMemoryCluster) -> None:
    """Nor is it followed; who comes without one is held, and is given the reason."""
    async with running_controller(cluster, OFF):
        cluster.create_group("gathering", "x", minimum=2)
        await placed(cluster, OWNED, "a", "b")
        cluster.patch_object(PLUGINS, "g", {"spec": {"minMember": 7}})
        cluster.create_group("g", "late", meta=OWNED)
        await run_for(10)
        cluster.bind("late")
        await run_for(600)
        found = cluster.recorded()
        assert (found.generation, found.minimum, found.stage) == (1, 2, AdmissionState.OPEN)
        for name in ("g", "gathering"):
            cluster.remove(PLUGINS, name)
            cluster.create_group(name, f"later-{name}", meta=OWNED)
        await run_for(600)
        assert cluster.ungated_pods() == ["a", "b", "late"]
        assert len(cluster.all(PODS)) == 6
        reported = [it["involvedObject"]["name"] for it in cluster.all(EVENTS) if it["reason"] == "PodGroupMissing"]
        assert {"later-g", "later-gathering"} <= set(reported), reported


# --- Back-off and eviction ---


async def test_a_group_that_only_its_user_recreates_is_forgotten_with_its_last_pod_whatever_write_is_refused(
    cluster: InMemoryCluster,
) -> None:
    """Koordinator's is not retried."""
    refused: list[str] = []

    def fate(verb: str, kind: Resource, name: str, _: Json) -> Conflict | None:
        if (verb, kind) != ("delete", CONFIGMAPS) or refused:
            return None
        refused.append(name)
        return Conflict(409, "Conflict", "another has changed it")

    async with running_controller(cluster, OFF):
        notes = {f"{GANG}name": "g", f"{GANG}min-available": "2", f"{GANG}waiting-time": "8s"}
        cluster.create_group("g", "a", "b", of=key("g", Flavor.KOORDINATOR), labels={}, notes=notes)
        await run_for(20)
        assert cluster.all(CONFIGMAPS)
        cluster.fault = fate
        cluster.remove(PODS, "a")
        cluster.remove(PODS, "b")
        await run_for(10)
        assert refused
        assert not cluster.all(CONFIGMAPS)


async def test_a_group_is_forgotten_with_its_last_pod_while_pods_of_another_kind_name_one_like_it(
    cluster: InMemoryCluster,
) -> None:
    """Koordinator reads PodGroups of scheduler-plugins, too; but this one has its own."""
    sigs = POD_GROUPS[names.SIGS_GROUP]
    cluster.put(sigs, pod_group("g", uid="uid-sigs", spec={"minMember": 2}))
    async with running_controller(cluster, OFF):
        cluster.create_group("g", "a", "b", of=key("g", Flavor.KOORDINATOR), labels=LABELS[Flavor.KOORDINATOR])
        cluster.create_group("g", "theirs", minimum=1)
        await run_for(700)
        for name in ("a", "b", "theirs"):
            cluster.remove(PODS, name)
            await run_for(10)
        found = decode_record(record_text(cluster.stored(sigs, "team", "g")))
        assert (found.stage, found.rolled_back) == (AdmissionState.CLOSED, 0)


@pytest.mark.parametrize("seed", range(10))
async def test_the_next_pods_of_each_group_are_ungated(cluster: InMemoryCluster, seed: int) -> None:
    chance, numbers = random.Random(seed), itertools.count()  # noqa: S311 - chance that can be repeated
    for api in (names.PLUGINS_GROUP, names.SIGS_GROUP):
        cluster.put(POD_GROUPS[api], pod_group("g", uid=api, spec={"minMember": 2, "scheduleTimeoutSeconds": 20}))

    def create(flavor: Flavor) -> None:
        cluster.create_group("g", f"p{next(numbers)}", of=key("g", flavor), labels=LABELS[flavor])

    async with running_controller(cluster, OFF):
        for _ in range(40):
            pods, ungated = [it["metadata"]["name"] for it in cluster.all(PODS)], cluster.ungated_pods()
            step = chance.choice(("create", "create", "bind", "delete"))
            if step == "create":
                create(chance.choice([*LABELS]))
            elif step == "delete" and pods:
                cluster.remove(PODS, chance.choice(pods))
            elif ungated:
                cluster.bind(chance.choice(ungated))
            await run_for(chance.choice((0, 0.01, 1, 30)))
        for it in chance.sample(cluster.all(PODS), len(cluster.all(PODS))):
            cluster.remove(PODS, it["metadata"]["name"])
            await run_for(chance.choice((0, 3)))
        for flavor in (*LABELS, *LABELS):
            await run_for(1)
            create(flavor)
        for _ in range(200):
            await run_for(10)
            cluster.bind(*cluster.ungated_pods())
        assert len(cluster.ungated_pods()) == 2 * len(LABELS)


async def test_the_back_off_doubles_and_ends_with_success(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster, OFF) as running:
        cluster.create_group("g", "a", "b", minimum=2, meta=OWNED)
        opened = []
        for number in range(4):
            while not cluster.ungated_pods():
                await run_for(0.5)
            opened.append(cluster.clock())
            while cluster.all(PODS):
                await run_for(0.5)
            cluster.create_group("g", f"a{number}", f"b{number}", meta=OWNED)
        pauses = [later - earlier - 60 for earlier, later in itertools.pairwise(opened)]
        assert [round(it, -1) for it in pauses] == [10, 20, 40]
        assert running.metric("rolled_back_total") == 4
        await run_for(90)
        cluster.bind("a3", "b3")
        await run_for()
        assert cluster.recorded().rolled_back == 0


async def test_a_gang_group_has_its_longest_limit_and_is_evicted_whole(cluster: InMemoryCluster) -> None:
    gang = partial(cluster.create_gang, partners="one two", meta=OWNED)
    async with running_controller(cluster, OFF):
        gang("one", "a", said={"waiting-time": "30s"})
        gang("two", "b", "c", said={"waiting-time": "90s"})
        await run_for()
        cluster.bind("a", "b")
        await run_for(80)
        assert len(cluster.all(PODS)) == 3
        await run_for(15)
        assert cluster.all(PODS) == []


async def test_an_evicted_group_keeps_its_back_off_while_it_has_no_pods(cluster: InMemoryCluster) -> None:
    """Its record lies in a ConfigMap, which goes when the group is over; but this one is not."""
    group = partial(cluster.create_group, "g", of=key(flavor=Flavor.ALIBABA), labels=alibaba("g", "1"), meta=OWNED)
    async with running_controller(cluster, Groups(capacity_check=CapacityCheck.OFF, wait_seconds=60)):
        group("a")
        await run_for(61)
        assert cluster.all(PODS) == []
        assert len(cluster.all(CONFIGMAPS)) == 1
        group("b")
        await run_for(5)
        assert cluster.ungated_pods() == []
        await run_for(10)
        assert cluster.ungated_pods() == ["b"]
        cluster.bind("b")
        await run_for()
        cluster.remove(PODS, "b")
        await run_for()
        assert cluster.all(CONFIGMAPS) == []


# --- Telling ---------------------------------------------------------------------------------------------------------


async def test_after_five_minutes_of_gathering_there_is_one_event_and_no_limit(cluster: InMemoryCluster) -> None:
    def reported() -> int:
        return sum(it["reason"] == names.REASON_GATHERING for it in cluster.all(EVENTS))

    async with running_controller(cluster, OFF):
        cluster.create_group("g", "a", minimum=2)
        await run_for(290)
        assert reported() == 0
        await run_for(3600)
        assert reported() == 1
        cluster.create_group("g", "b")
        await run_for()
        assert cluster.ungated_pods() == ["a", "b"]


# --- Which pods begin a new generation of a satisfied group, and which join the old one -------------------------------

ASKS = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def mark(cluster: InMemoryCluster, *pods: str) -> None:
    """They are being deleted."""
    for name in pods:
        cluster.patch_object(PODS, name, {"metadata": {"deletionTimestamp": "2026-08-01T10:00:00Z"}})


async def placed(cluster: InMemoryCluster, owner: Json, *pods: str) -> None:
    """Its first run."""
    cluster.create_group("g", *pods, minimum=2, meta=owner, spec=ASKS)
    await run_for(2)
    cluster.bind(*pods)
    await run_for(60)


def stands(cluster: InMemoryCluster) -> tuple[int, AdmissionState, bool]:
    found = cluster.recorded()
    return found.generation, found.stage, found.satisfied is not None


async def test_pods_of_a_new_owner_join_while_a_pod_is_alive(cluster: InMemoryCluster) -> None:
    """The next ReplicaSet of a Deployment never has the minimum of pods for itself before the last one is gone."""
    async with running_controller(cluster, OFF):
        await placed(cluster, made_by("old", kind="ReplicaSet"), "a", "b")
        cluster.create_group("g", "new-0", meta=made_by("new", kind="ReplicaSet"))
        await run_for(JOIN_SECONDS - 1)
        assert "new-0" not in cluster.ungated_pods()
        await run_for(2)
        assert "new-0" in cluster.ungated_pods()
        mark(cluster, "a")
        cluster.create_group("g", "new-1", meta=made_by("new", kind="ReplicaSet"))
        await run_for(1)
        assert "new-1" in cluster.ungated_pods(), "its owner is known by now"
        assert stands(cluster) == (1, AdmissionState.OPEN, True)


@pytest.mark.parametrize("name", ["one", "another"])
async def test_pods_of_the_next_job_do_not_join_those_that_are_about_to_be_deleted(
    cluster: InMemoryCluster, name: str
) -> None:
    async with running_controller(cluster, OFF):
        await placed(cluster, made_by("one", "uid-1"), "a", "b")
        cluster.create_group("g", "c", meta=made_by(name, "uid-2"))
        await run_for(1)
        mark(cluster, "a", "b")
        await run_for(60)
        assert "c" not in cluster.ungated_pods(), "alone it is not the minimum"
        cluster.create_group("g", "d", meta=made_by(name, "uid-2"))
        await run_for(2)
        assert cluster.ungated_pods() == ["a", "b", "c", "d"]
        assert stands(cluster) == (2, AdmissionState.OPEN, False)
