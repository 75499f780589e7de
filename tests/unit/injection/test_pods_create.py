"""CREATE of a pod of a start group or a LeaderWorkerSet: what goes into it, and what forbids it (K2, K3, K6, K8)."""

import copy
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import container, inject
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.warnings import warnings
from jobset_gate.settings import Barrier, Settings
from tests.fakes import leader_worker_sets as lws
from tests.fakes import start_group_controller, start_groups
from tests.fakes.jobsets import Json, injected, jobset, pod_spec, without
from tests.fakes.jobsets import created as created_jobset
from tests.fakes.wire_objects import owner

STREAM = Settings(barrier=Barrier(stream_url="http://gate.system.svc:8082"))
PATIENT = Settings(barrier=Barrier(max_wait_seconds=60))
LABEL = f"metadata.labels[{names.START_GROUP}]"
SIZE = f"metadata.annotations[{names.START_SIZE}]"
CONFIG = f"metadata.annotations[{names.CONFIG}]"
RELEASE = {names.ON_TIMEOUT: "Release"}
FIVE_MINUTES = {names.CONFIG: '{"timeoutAfterSeconds": 300}'}
OWNER = owner("StatefulSet", "set", "owner-uid")
LWS_SIZE = f"metadata.annotations[{names.LWS_SIZE}]"
NOT_MADE = "LeaderWorkerSet has not made this pod: put the config on the LeaderWorkerSet"


def pod(*, labels: Json | None = None, notes: Json | None = None, owned_by: Json = OWNER, **spec: Any) -> Json:
    made = start_groups.pod("set-0", owned_by, notes=notes, **spec)
    made["metadata"]["labels"] |= labels or {}
    return made


def created(given: Json, settings: Settings = STREAM, drawn: str = "secret") -> Json:
    return injected(given, settings, token=drawn, namespace="team")


def errors(given: Json, settings: Settings = STREAM) -> dict[str, str]:
    found = field_errors(given, settings=settings)
    assert len({it.path for it in found}) == len(found), "each is named once"
    return {it.path: it.message for it in found}


def barrier(made: Json) -> Json:
    return dict(made["spec"]["initContainers"][-1])


def test_the_barrier_of_a_pod_knows_the_pod_itself_and_keeps_its_release() -> None:
    given = pod(notes=FIVE_MINUTES | RELEASE, initContainers=[{"name": "mine", "image": "i"}])
    made = created(given)
    mine, gate = made["spec"]["initContainers"]
    assert mine["name"] == "mine"
    assert gate["env"] == [
        {"name": "JOBSET_GATE_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "JOBSET_GATE_ATTEMPT", "value": "0"},
        {"name": "JOBSET_GATE_EPOCH", "value": "0"},
        {"name": "JOBSET_GATE_LIMIT", "value": "420"},
        {
            "name": "JOBSET_GATE_TOKEN",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['jobset-gate.dev/token']"}},
        },
        {"name": "JOBSET_GATE_STREAM", "value": "http://gate.system.svc:8082/v1/pods/team/$(JOBSET_GATE_TOKEN)"},
        {"name": "JOBSET_GATE_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]
    assert gate["volumeMounts"] == [
        {"name": "group-scheduling", "mountPath": "/mnt/group-scheduling", "readOnly": True},
        {"name": "group-scheduling", "mountPath": container.TOKEN_PATH, "readOnly": True},
        {"name": "group-scheduling-state", "mountPath": "/mnt/group-scheduling-state"},
    ]
    verdict = {"path": "annotation", "fieldRef": {"fieldPath": "metadata.annotations['jobset-gate.dev/verdict']"}}
    assert made["spec"]["volumes"] == [
        {
            "name": "group-scheduling",
            "projected": {"defaultMode": 0o444, "sources": [{"downwardAPI": {"items": [verdict]}}]},
        },
        {"name": "group-scheduling-state", "emptyDir": {"sizeLimit": "1Mi"}},
    ]
    notes = given["metadata"]["annotations"] | {"jobset-gate.dev/token": "secret"}
    assert made["metadata"] == given["metadata"] | {"annotations": notes}
    assert {key: made["spec"][key] for key in given["spec"] if key != "initContainers"} == without(
        given["spec"], "initContainers"
    )


def test_without_a_stream_the_pod_has_its_token_and_no_url() -> None:
    made = created(pod(), Settings())
    assert made["metadata"]["annotations"][names.TOKEN] == "secret"
    assert {"name": names.ENV_LIMIT, "value": ""} in barrier(made)["env"], "without a config it waits for ever"
    assert not {names.ENV_STREAM, names.ENV_TOKEN, names.ENV_POD} & {it["name"] for it in barrier(made)["env"]}


def defaulted(made: Json) -> Json:
    """As an API server and other webhooks leave it before a second call."""
    made = copy.deepcopy(made)
    for entry in made["spec"]["initContainers"]:
        entry |= {"imagePullPolicy": "IfNotPresent", "resources": {"limits": {"cpu": "1"}}}
        entry["image"] = f"mirror.local/{entry['image']}"
        for variable in entry.get("env", ()):
            if "valueFrom" in variable:
                variable["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
            elif variable["value"] == "":
                del variable["value"]
        entry["env"] = [*entry.get("env", ()), {"name": "THEIRS", "value": "x"}]
    for main in made["spec"]["containers"]:
        main["image"] = f"mirror.local/{main['image']}"
    made["spec"]["volumes"][0]["projected"]["sources"][0]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] = "v1"
    made["spec"]["volumes"].insert(0, {"name": "theirs", "emptyDir": {}})
    return made


@pytest.mark.parametrize("notes", [{}, {names.PREFETCH_IMAGES: "true"}])
def test_a_second_call_adds_nothing_to_what_others_have_made_of_the_first(notes: Json) -> None:
    made = defaulted(created(pod(notes=notes)))
    again = inject.injected(made, None, settings=STREAM, token="another", namespace="team")
    assert again.operations == []
    assert errors(made) == {}
    made["spec"]["initContainers"].append({"name": "mesh", "image": "mesh:1"})
    moved = created(made, drawn="another")
    assert moved["spec"]["initContainers"][-1] == made["spec"]["initContainers"][-2]
    assert moved["metadata"] == made["metadata"]


def test_a_main_image_that_changes_before_the_second_call_is_the_one_that_is_prefetched() -> None:
    made = created(pod(notes={names.PREFETCH_IMAGES: "true"}))
    made["spec"]["containers"][0]["image"] = "mirror.local/train:1"
    _, pulls, gate = created(made)["spec"]["initContainers"]
    assert pulls["image"] == "mirror.local/train:1"
    assert gate == barrier(made)


def test_a_barrier_from_elsewhere_and_a_token_without_a_barrier_are_made_again() -> None:
    wanted = created(pod())
    other = pod(**{key: pod_spec(created_jobset(jobset()))[key] for key in ("initContainers", "volumes")})
    assert created(other) == wanted
    assert created(pod(notes={names.TOKEN: "known"})) == wanted
    old = copy.deepcopy(wanted)
    old["spec"]["initContainers"][0]["command"] = ["sh", "-c", "true"]
    assert created(old) == wanted


@pytest.mark.parametrize("gated", ["true", "job"])
def test_a_pod_with_a_barrier_from_its_template_is_left_alone(gated: str) -> None:
    given = pod(labels={names.GATED: gated}, notes={names.START_SIZE: "none"})
    assert created(given) == given
    assert errors(given) == {}


IN_PLACE = (
    "with it a gang that timed out would restart for ever: set the annotation jobset-gate.dev/on-timeout to Release"
)
RUNS = "nothing distinguishes one run from the next"
A_FEW_AT_A_TIME = (
    f"{RUNS}; these controllers replace pods a few at a time, so a gang may never be complete: "
    "use a Job, or a StatefulSet with podManagementPolicy Parallel"
)
REFUSED: list[tuple[Json, str, str]] = [
    (pod(labels={names.START_GROUP: "Ring"}), LABEL, "must be a DNS label"),
    *(
        (pod(notes={names.START_SIZE: size}), SIZE, "must be a number from 1 to 10000, in quotes: how many pods wait")
        for size in ("0", "10001", "-1", "8 ", "8.0", "٨", "", "1" * 5000, None)
    ),
    (
        pod(notes={names.CONFIG: '{"targetReplicatedJobs": ["a"]}'}),
        f"{CONFIG}.targetReplicatedJobs",
        "unknown key; the only key is timeoutAfterSeconds",
    ),
    (
        without(pod(), "metadata", "ownerReferences"),
        "metadata.ownerReferences",
        f"{RUNS} of pods without a controller owner: make them by a Job",
    ),
    (pod(owned_by=OWNER | {"controller": False}), "metadata.ownerReferences", RUNS),
    *(
        (pod(owned_by=OWNER | {"kind": kind}), "metadata.ownerReferences[0].kind", A_FEW_AT_A_TIME)
        for kind in ("ReplicaSet", "ReplicationController", "DaemonSet")
    ),
    (
        pod(labels={"ray.io/cluster": "c"}),
        "metadata.labels[ray.io/cluster]",
        "Ray workers wait for a running head in an init container before ours: the gang could never start: leave the",
    ),
    (
        pod(labels={"leaderworkerset.sigs.k8s.io/name": "l"}),
        "metadata.labels[leaderworkerset.sigs.k8s.io/name]",
        "pods of a LeaderWorkerSet cannot be a start group: leave the label jobset-gate.dev/start-group out",
    ),
    (pod(notes=FIVE_MINUTES), "spec.restartPolicy", f"{IN_PLACE}, or restartPolicy to Never"),
    (without(pod(notes=FIVE_MINUTES), "spec", "restartPolicy"), "spec.restartPolicy", IN_PLACE),
    (pod(volumes=[{"name": names.STATE_VOLUME, "emptyDir": {}}]), "spec.volumes[0].name", "is reserved"),
    *(
        (lws.pod(1, labels={key: value}), f"metadata.labels[{key}]", NOT_MADE)
        for key in (names.LWS_NAME, names.LWS_GROUP_INDEX, names.LWS_WORKER_INDEX)
        for value in (None, "")
    ),
    *(
        (lws.pod(notes={names.LWS_SIZE: size}), LWS_SIZE, "must be a number from 1 to 10000: LeaderWorkerSet has not")
        for size in (None, "0", "three", "10001")
    ),
    (without(lws.pod(), "metadata", "ownerReferences"), "metadata.ownerReferences", NOT_MADE),
    (
        lws.pod(labels={names.START_GROUP: "ring"}, notes={names.START_SIZE: "3"}),
        f"metadata.labels[{names.START_GROUP}]",
        "pods of a LeaderWorkerSet cannot be a start group: put the config on the LeaderWorkerSet",
    ),
]


@pytest.mark.parametrize(("given", "path", "sentence"), REFUSED)
def test_what_forbids_a_creation_is_named_with_its_path(given: Json, path: str, sentence: str) -> None:
    found = errors(given)
    assert set(found) == {path}
    assert sentence in found[path]


def test_a_pod_that_restarts_in_place_is_refused_where_the_operators_limit_would_end_it() -> None:
    assert set(errors(pod(), PATIENT)) == {"spec.restartPolicy"}
    assert errors(pod(notes=RELEASE), PATIENT) == {}


def test_what_can_start_and_end_is_admitted() -> None:
    assert errors(pod()) == errors(pod(notes=FIVE_MINUTES | RELEASE)) == {}
    assert errors(pod(notes=FIVE_MINUTES, restartPolicy="Never")) == {}
    assert errors(pod(notes=FIVE_MINUTES, restartPolicy="OnFailure", owned_by=owner("Job", "j", "u"))) == {}
    assert errors(pod(owned_by=OWNER | {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"})) == {}


@pytest.mark.parametrize("size", ["1", "10000", "008"])
def test_the_controller_reads_the_size_that_was_admitted(size: str) -> None:
    assert errors(pod(notes={names.START_SIZE: size})) == {}
    member = start_group_controller.read_member(start_group_controller.member("p", size=size)).member
    assert member is not None
    assert member.size == int(size)


def test_all_that_is_wrong_is_named_at_once() -> None:
    wrong = pod(
        labels={names.START_GROUP: "Ring", "ray.io/cluster": "c"},
        notes={names.START_SIZE: "many", names.CONFIG: '{"timeoutAfterSeconds": 0}', names.BYPASS: "x"},
        owned_by=OWNER | {"kind": "ReplicaSet"},
        volumes=[{"name": names.VOLUME, "emptyDir": {}}],
    )
    assert list(errors(wrong)) == [
        f"{CONFIG}.timeoutAfterSeconds",
        f"metadata.annotations[{names.BYPASS}]",
        "spec.volumes[0].name",
        LABEL,
        SIZE,
        "metadata.ownerReferences[0].kind",
        "metadata.labels[ray.io/cluster]",
        "spec.restartPolicy",
    ]


def test_a_mistyped_annotation_is_warned_of_and_ours_are_not() -> None:
    (warning,) = warnings(pod(notes={"jobset-gate.dev/start-siz": "2", "theirs": "x"}))
    assert warning.endswith("without effect on a StartGroup: did you mean jobset-gate.dev/start-size?")
    assert warnings(created(pod(notes=FIVE_MINUTES))) == []


# --- LeaderWorkerSets -------------------------------------------------------------------------------------------------


def test_leader_and_worker_get_what_a_pod_of_a_start_group_gets() -> None:
    limit = {names.CONFIG: '{"timeoutAfterSeconds": 300}', names.VERDICT: "release x 0 0 AllPodsStarted"}
    theirs = created(pod(notes=limit))
    for index in (0, 2):
        given = lws.pod(index, notes=limit, containers=theirs["spec"]["containers"])
        made = created(given)
        assert made["spec"]["initContainers"] == theirs["spec"]["initContainers"]
        assert made["spec"]["volumes"] == theirs["spec"]["volumes"]
        kept = without(given, "metadata", "annotations", names.VERDICT)["metadata"]
        assert made["metadata"] == kept | {"annotations": kept["annotations"] | {names.TOKEN: "secret"}}
        assert created(made, drawn="another") == made, "with barrier and token there is nothing left to do"
        assert errors(given) == errors(made) == {}
        assert warnings(made, settings=STREAM) == []


def test_a_label_without_anything_of_lws_is_refused_with_all_that_it_lacks() -> None:
    bare = pod()
    bare["metadata"]["labels"][names.GATED] = names.GATED_LWS
    keys = (names.LWS_NAME, names.LWS_GROUP_INDEX, names.LWS_WORKER_INDEX)
    assert list(errors(bare)) == [
        *(f"metadata.labels[{key}]" for key in keys),
        LWS_SIZE,
        f"metadata.labels[{names.START_GROUP}]",
    ]
