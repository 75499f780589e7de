"""What a pod says of its group of a LeaderWorkerSet, and what leader, workers and StatefulSets are together (K5)."""

from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.barrier import lws_wire, wire
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Enforce, Ignore, Wait
from jobset_gate.barrier.model import GangSnapshot, WorkloadSeen
from jobset_gate.sources import lws
from jobset_gate.sources.lws import Parent
from tests.fakes.lws_controller import GROUP, LWS_UID, leader_pod, leader_worker_set, read_pod, worker_pod, worker_set
from tests.fakes.present import present
from tests.fakes.start_group_controller import PASSED, RUNS, addressed
from tests.fakes.wire_objects import TEN_O_CLOCK, Json, read_config_map

NOW = TEN_O_CLOCK + 60
SETS = {"sts-A": "A"}
TIMEOUT = {names.CONFIG: '{"timeoutAfterSeconds": 60}'}


def decoded(body: Json, kind: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def gathered(*bodies: Json, sets: dict[str, str] = SETS, parent: Parent = lws.NO_PARENT) -> GangSnapshot:
    found = present(lws.gather(GROUP, [read_pod(body) for body in bodies], sets, parent, None))
    return GangSnapshot(workload=found.workload, jobs=(found.job,), pods=found.pods)


def workload(*bodies: Json, **more: Any) -> WorkloadSeen:
    return gathered(*bodies, **more).workload


# --- One pod ---------------------------------------------------------------------------------------------------------


def test_a_leader_is_of_its_own_group_and_a_worker_of_none_yet() -> None:
    leader, worker = read_pod(leader_pod("A", RUNS)), read_pod(worker_pod(1))
    assert (leader.source, leader.gang, leader.workload_uid, leader.index) == ("lws", "vllm-2", "A", 0)
    assert (worker.gang, worker.workload_uid, worker.job_uid, worker.index) == ("vllm-2", "", "sts-A", 1)
    assert (leader.token, leader.started) == ("token-of-A", True)


def labelled(body: Json, label: str, value: str) -> Json:
    body["metadata"]["labels"][label] = value
    return body


REPLICA_SET = {"kind": "ReplicaSet", "name": "vllm", "uid": "u", "controller": True}
NO_MEMBERS: dict[str, Json] = {
    "without an owner": leader_pod(meta={"ownerReferences": []}),
    "of another owner": leader_pod(meta={"ownerReferences": [REPLICA_SET]}),
    "without a name": labelled(leader_pod(), names.LWS_NAME, ""),
    "without an index": labelled(leader_pod(), names.LWS_WORKER_INDEX, "first"),
    "a leader of another name": labelled(leader_pod(), names.LWS_NAME, "other"),
    "a worker of another name": labelled(worker_pod(1), names.LWS_NAME, "other"),
}


@pytest.mark.parametrize("case", NO_MEMBERS)
def test_a_pod_that_lws_has_not_made_is_none(case: str) -> None:
    assert lws.pod(decoded(NO_MEMBERS[case], wire.MemberPod)) is None


def test_an_annotation_counts_only_if_it_is_addressed_to_the_pod_that_carries_it_and_its_only_attempt() -> None:
    pods = (leader_pod("A", notes=addressed("A-1")), worker_pod(1, notes=addressed("A-1")))
    assert [pod.verdict for pod in gathered(*pods).pods] == ["", "release A 0 0 AllPodsStarted\n"]
    assert [pod.verdict for pod in gathered(leader_pod("A", notes=addressed("A", 3))).pods] == [""]


# --- StatefulSets and LeaderWorkerSets -------------------------------------------------------------------------------


def test_a_stateful_set_of_workers_belongs_to_the_uid_of_its_leader() -> None:
    seen = present(lws.worker_set(decoded(worker_set("A"), lws_wire.WorkerSet)))
    assert (seen.name, seen.uid, seen.leader_uid) == ("vllm-2", "sts-A", "A")


@pytest.mark.parametrize(
    "owner",
    [None, {"kind": "LeaderWorkerSet", "name": "vllm-2"}, {"kind": "Pod", "name": "vllm-3"}],
    ids=["none", "of leaders", "of a pod of another name"],
)
def test_another_stateful_set_says_nothing(owner: Json | None) -> None:
    body = worker_set()
    body["metadata"]["ownerReferences"] = [] if owner is None else [owner | {"uid": "A", "controller": True}]
    assert lws.worker_set(decoded(body, lws_wire.WorkerSet)) is None


def test_a_leader_worker_set_without_config_is_not_ours() -> None:
    body = leader_worker_set(notes={names.BYPASS: "true", names.ON_TIMEOUT: "Release"})
    del body["spec"]["replicas"]
    seen = lws.leader_worker_set(decoded(body, lws_wire.LeaderWorkerSet))
    assert lws.parent(seen) == Parent(LWS_UID, True, True)
    assert present(seen).replicas == 1, "nobody gave any"
    del body["metadata"]["annotations"][names.CONFIG]
    assert lws.leader_worker_set(decoded(body, lws_wire.LeaderWorkerSet)) is None
    assert lws.parent(None) == Parent("", False, False)


# --- The gang --------------------------------------------------------------------------------------------------------


def test_only_bypass_and_what_follows_a_timeout_are_the_parents() -> None:
    notes = TIMEOUT | {names.BYPASS: "true", names.ON_TIMEOUT: "Release"}
    mine = workload(leader_pod("A", notes=notes))
    assert (mine.bypass, mine.releases_on_timeout, mine.config.timeout) == (False, False, 60)
    parents = workload(leader_pod("A", notes=notes), parent=Parent("", True, True))
    assert (parents.bypass, parents.releases_on_timeout) == (True, True)


def test_nothing_is_decided_under_a_leader_that_ends() -> None:
    deleted = leader_pod("A", RUNS, meta={"deletionTimestamp": "2026-08-01T10:00:31Z"})
    for leader in (deleted, leader_pod("A", RUNS, phase="Failed")):
        assert isinstance(decide(gathered(leader, worker_pod(1, "A", RUNS)), NOW), Ignore)


def test_pods_of_an_earlier_leader_open_nothing_and_prove_nothing() -> None:
    seen = gathered(leader_pod("A", RUNS), worker_pod(1, "Z", barrier=()), sets=SETS | {"sts-Z": "Z"})
    assert seen.workload.bare_pod == ""
    assert workload(leader_pod("A", RUNS), worker_pod(1, barrier=())).bare_pod == "vllm-2-1"
    seen = gathered(leader_pod("A", RUNS), worker_pod(1, "Z", PASSED), sets=SETS | {"sts-Z": "Z"})
    assert isinstance(decide(seen, NOW), Wait)
    assert isinstance(decide(gathered(leader_pod("A", PASSED)), NOW), Enforce), "of its own it does"


def test_the_size_is_the_leaders_or_that_of_any_pod_and_without_one_there_is_no_gang_that_could_start() -> None:
    assert workload(leader_pod("A", size=2), worker_pod(1, size=3)).targets[0].expected == 2
    bare = leader_pod("A", RUNS, size="")
    assert isinstance(decide(gathered(bare, worker_pod(1, size=2)), NOW), Wait)
    for size in ("", "0", "two"):
        pods = [read_pod(leader_pod("A", RUNS, size=size)), read_pod(worker_pod(1, size=size))]
        assert lws.gather(GROUP, pods, SETS, lws.NO_PARENT, None) is None


# --- Gathered again --------------------------------------------------------------------------------------------------


def test_read_again_it_keeps_what_its_parent_said_and_its_config_map() -> None:
    meta = {"labels": {names.GATE: names.GATE_VALUE}, "annotations": {names.JOBSET_UID: "A"}}
    gate = read_config_map({"metadata": {"name": "vllm-2.lws.group-scheduling", "namespace": "team-a"} | meta})
    before = msgspec.structs.replace(gathered(leader_pod("A"), parent=Parent(LWS_UID, True, True)), config_map=gate)
    found = present(lws.regathered(before, [read_pod(leader_pod("A", RUNS))], {}))
    assert (found.workload.owner, found.workload.bypass) == (before.workload.owner, True)
    assert found.own_config_map is gate is not None
    assert [pod.started for pod in found.pods] == [True]


@pytest.mark.parametrize("pods", [[], [leader_pod("B")]], ids=["gone", "another"])
def test_read_again_under_no_leader_or_another_it_is_none(pods: list[Json]) -> None:
    assert lws.regathered(gathered(leader_pod("A")), [read_pod(it) for it in pods], {}) is None
