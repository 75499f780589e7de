"""A3: what CREATE puts into a JobSet."""

import copy
import json

import pytest

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.injection.container import TOKEN_PATH
from jobset_gate.settings import Barrier, Resources, Settings
from tests.fakes.jobsets import (
    SETTINGS,
    Json,
    applied,
    barrier,
    changed,
    created,
    jobset,
    pod_spec,
    pod_template,
    replicated,
)


def test_the_barrier_goes_behind_the_users_own_init_containers() -> None:
    own = [{"name": "fetch", "image": "fetch:1"}, {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"}]
    made = created(jobset(replicated(pod={"initContainers": own})))
    assert [it["name"] for it in pod_spec(made)["initContainers"]] == ["fetch", "mesh", names.BARRIER_CONTAINER]


def test_each_targeted_pod_template_gets_one_and_the_others_none() -> None:
    made = created(jobset(replicated(), replicated("auxiliary"), config={"targetReplicatedJobs": ["workers"]}))
    assert barrier(made, 0)
    assert pod_template(made, 1) == pod_template(jobset(replicated("auxiliary"), config=False)) | {
        "spec": {"containers": [{"name": "main", "image": "train:1"}], "restartPolicy": "OnFailure"}
    }
    assert "metadata" not in made["spec"]["replicatedJobs"][1]["template"]


@pytest.mark.parametrize("targets", [None, []])
def test_without_named_targets_every_replicated_job_gets_one(targets: list[str] | None) -> None:
    made = created(jobset(replicated(), replicated("auxiliary"), config={"targetReplicatedJobs": targets}))
    assert barrier(made, 0)
    assert barrier(made, 1)


def test_a_jobset_without_a_config_stays_as_it_is() -> None:
    assert inject.patch(jobset(config=False), None, settings=SETTINGS) == []


def test_the_volume_carries_the_gangs_config_map_and_the_pods_own_annotation() -> None:
    (volume,) = pod_spec(created(jobset(name="my-jobset")))["volumes"]
    assert volume["name"] == "group-scheduling"
    config_map, downward = volume["projected"]["sources"]
    assert config_map["configMap"]["name"] == "my-jobset-group-scheduling"
    assert config_map["configMap"]["items"] == [{"key": "verdict", "path": "verdict"}]
    reference = {"fieldPath": "metadata.annotations['jobset-gate.dev/verdict']"}
    assert downward["downwardAPI"]["items"] == [{"path": "annotation", "fieldRef": reference}]


def test_the_config_map_may_be_missing_and_the_files_are_readable_by_all() -> None:
    (volume,) = pod_spec(created(jobset()))["volumes"]
    assert volume["projected"]["sources"][0]["configMap"]["optional"] is True
    assert volume["projected"]["defaultMode"] == 0o444


def test_the_volume_is_mounted_whole_since_a_sub_path_never_refreshes() -> None:
    mount = barrier(created(jobset()))["volumeMounts"][0]
    assert mount == {"name": "group-scheduling", "mountPath": "/mnt/group-scheduling", "readOnly": True}


def test_the_users_own_volumes_stay_before_ours() -> None:
    made = created(jobset(replicated(pod={"volumes": [{"name": "data", "emptyDir": {}}]})))
    assert [it["name"] for it in pod_spec(made)["volumes"]] == ["data", "group-scheduling"]


def test_the_barrier_learns_its_generation_by_downward_api() -> None:
    env = {it["name"]: it for it in barrier(created(jobset()))["env"]}
    paths = {name: it["valueFrom"]["fieldRef"]["fieldPath"] for name, it in env.items() if "valueFrom" in it}
    assert paths == {
        "JOBSET_GATE_UID": "metadata.labels['jobset.sigs.k8s.io/jobset-uid']",
        "JOBSET_GATE_ATTEMPT": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']",
        "JOBSET_GATE_EPOCH": "metadata.annotations['jobset-gate.dev/epoch']",
    }


@pytest.mark.parametrize(
    ("config", "settings", "limit"),
    [
        ({"timeoutAfterSeconds": 300}, Barrier(grace_seconds=60), "360"),
        ({"timeoutAfterSeconds": 300}, Barrier(grace_seconds=0, max_wait_seconds=10), "300"),
        ({}, Barrier(max_wait_seconds=7200), "7200"),
        ({}, Barrier(), ""),
    ],
)
def test_its_own_limit_is_timeout_plus_grace_or_the_operators_or_none(
    config: Json, settings: Barrier, limit: str
) -> None:
    env = barrier(created(jobset(config=config), Settings(barrier=settings)))["env"]
    assert {"name": "JOBSET_GATE_LIMIT", "value": limit} in env


def test_the_label_by_which_the_controller_watches_is_on_jobs_and_pods() -> None:
    made = created(jobset())
    assert made["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"] == {names.GATED: "true"}
    assert pod_template(made)["metadata"]["labels"] == {names.GATED: "true"}


def test_the_users_labels_and_annotations_stay() -> None:
    given = changed(jobset(), {"team": "a"}, "spec", "replicatedJobs", 0, "template", "metadata", "labels")
    given = changed(
        given, {"note": "x"}, "spec", "replicatedJobs", 0, "template", "spec", "template", "metadata", "annotations"
    )
    made = created(given)
    assert made["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"] == {"team": "a", names.GATED: "true"}
    assert pod_template(made)["metadata"]["annotations"] == {"note": "x", names.EPOCH: "0"}


@pytest.mark.parametrize("came", ["7", "-1", "garbage", "", "0"])
def test_the_epoch_starts_at_zero_whatever_came_in(came: str) -> None:
    path = ("spec", "replicatedJobs", 0, "template", "spec", "template", "metadata", "annotations")
    assert pod_template(created(changed(jobset(), {names.EPOCH: came}, *path)))["metadata"]["annotations"] == {
        names.EPOCH: "0"
    }


@pytest.mark.parametrize("key", [names.VERDICT, names.NUDGE])
def test_a_decision_in_a_template_is_dropped_since_every_pod_would_be_born_released(key: str) -> None:
    path = ("spec", "replicatedJobs", 0, "template", "spec", "template", "metadata", "annotations")
    made = created(changed(jobset(), {key: "release x 0 0 AllPodsStarted"}, *path))
    assert pod_template(made)["metadata"]["annotations"] == {names.EPOCH: "0"}


def test_the_config_is_copied_into_the_annotation_as_compact_json() -> None:
    config = {"timeoutAfterSeconds": 300, "targetReplicatedJobs": ["workers"]}
    text = created(jobset(config=config))["metadata"]["annotations"][names.CONFIG]
    assert text == '{"timeoutAfterSeconds":300,"targetReplicatedJobs":["workers"]}'


def test_keys_that_say_nothing_are_not_copied() -> None:
    made = created(jobset(config={"timeoutAfterSeconds": None, "targetReplicatedJobs": []}))
    assert made["metadata"]["annotations"][names.CONFIG] == "{}"


def test_the_annotation_alone_works_too_and_is_left_in_the_users_words() -> None:
    """Another text would be a change that a second apply of the manifest would undo."""
    text = '{ "timeoutAfterSeconds": 300 }'
    made = created(jobset(config=False, notes={names.CONFIG: text}))
    assert barrier(made)
    assert made["metadata"]["annotations"] == {names.CONFIG: text}
    assert "groupSchedulingConfig" not in made["spec"]


def test_the_barrier_image_is_the_operators_and_the_annotation_overrides_it() -> None:
    settings = Settings(barrier=Barrier(image="registry.local/busybox:1"))
    assert barrier(created(jobset(), settings))["image"] == "registry.local/busybox:1"
    noted = jobset(notes={names.BARRIER_IMAGE: "mine:2"})
    assert barrier(created(noted, settings))["image"] == "mine:2"


# --- Pod Security, QoS, quotas, tokens ------------------------------------------------------------------------------


def test_its_security_context_passes_pod_security_restricted() -> None:
    assert barrier(created(jobset()))["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
    }


def test_a_user_of_the_pod_other_than_root_is_inherited() -> None:
    context = barrier(created(jobset(replicated(pod={"securityContext": {"runAsUser": 1000}}))))["securityContext"]
    assert "runAsUser" not in context
    assert "runAsGroup" not in context
    assert context["runAsNonRoot"] is True


@pytest.mark.parametrize("pod", [{"runAsUser": 0}, {"runAsNonRoot": True}, {"fsGroup": 7}, None])
def test_root_or_no_user_of_the_pod_is_not_inherited(pod: Json | None) -> None:
    context = barrier(created(jobset(replicated(pod={"securityContext": pod}))))["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (65532, 65532)


def test_a_platform_that_chooses_users_itself_can_have_none_set() -> None:
    context = barrier(created(jobset(), Settings(barrier=Barrier(run_as_user=None, run_as_group=None))))[
        "securityContext"
    ]
    assert "runAsUser" not in context
    assert "runAsGroup" not in context


FULL = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"}


@pytest.mark.parametrize(
    ("resources", "copied"),
    [
        ({"requests": FULL, "limits": FULL}, {"requests": FULL, "limits": FULL}),
        (
            {"limits": FULL | {"nvidia.com/gpu": "8", "hugepages-2Mi": "1Gi"}, "claims": [{"name": "gpu"}]},
            {"limits": FULL},
        ),
        ({"requests": {"cpu": 0.5}}, {"requests": {"cpu": 0.5}}),
        ({"limits": {"nvidia.com/gpu": 1}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_it_copies_cpu_memory_and_storage_of_the_first_main_container_and_never_devices(
    resources: Json | None, copied: Json | None
) -> None:
    mains = [{"name": "main", "image": "a", "resources": resources}, {"name": "x", "resources": {"limits": {"cpu": 9}}}]
    assert barrier(created(jobset(replicated(pod={"containers": mains})))).get("resources") == copied


def test_the_operators_resources_override() -> None:
    settings = Settings(barrier=Barrier(resources=Resources(requests={"cpu": "1m"}, limits={"memory": "8Mi"})))
    mains = [{"name": "main", "image": "a", "resources": {"limits": FULL}}]
    found = barrier(created(jobset(replicated(pod={"containers": mains})), settings))["resources"]
    assert found == {"requests": {"cpu": "1m"}, "limits": {"memory": "8Mi"}}


def test_no_service_account_token_is_mounted_into_it() -> None:
    """The API server mounts one into each container that has nothing at that path."""
    assert TOKEN_PATH in [it["mountPath"] for it in barrier(created(jobset()))["volumeMounts"]]


# --- Names ----------------------------------------------------------------------------------------------------------


def test_a_name_that_is_to_be_generated_is_completed_so_that_the_config_maps_is_right() -> None:
    given = jobset(name="")
    given["metadata"]["generateName"] = "gang-"
    made = created(given, generated_name="gang-x7k2p")
    assert made["metadata"]["name"] == "gang-x7k2p"
    assert pod_spec(made)["volumes"][0]["projected"]["sources"][0]["configMap"]["name"] == "gang-x7k2p-group-scheduling"


def test_a_name_that_is_there_is_kept() -> None:
    assert created(jobset(name="mine"), generated_name="other")["metadata"]["name"] == "mine"


@pytest.mark.parametrize(
    ("metadata", "prefix"),
    [
        ({"generateName": "gang-"}, "gang-"),
        ({"generateName": "gang-", "name": ""}, "gang-"),
        ({"generateName": "gang-", "name": "gang-abcde"}, None),
        ({"name": "gang"}, None),
        ({"generateName": ""}, None),
        ({}, None),
    ],
)
def test_a_name_is_needed_where_there_is_a_prefix_and_no_name(metadata: Json, prefix: str | None) -> None:
    assert inject.needs_name({"metadata": metadata}) == prefix


def test_a_long_prefix_is_cut_as_the_api_server_cuts_it() -> None:
    assert inject.generated_name("a" * 100, "bcdfg") == "a" * 58 + "bcdfg"


# --- Twice, and with others -----------------------------------------------------------------------------------------


def test_applied_twice_is_applied_once() -> None:
    given = jobset(replicated(pod={"initContainers": [{"name": "own"}], "volumes": [{"name": "v"}]}), replicated("b"))
    once = inject.injected(given, None, settings=SETTINGS).document
    assert inject.patch(once, None, settings=SETTINGS) == []


def test_the_patch_says_what_the_document_is_and_the_incoming_object_stays() -> None:
    given = jobset(replicated(), replicated("b"))
    before = copy.deepcopy(given)
    edit = inject.injected(given, None, settings=SETTINGS)
    assert applied(given, edit.operations) == edit.document
    assert given == before


def test_a_mesh_that_appends_behind_ours_is_overtaken_at_reinvocation() -> None:
    once = created(jobset())
    pod_spec(once)["initContainers"].append({"name": "mesh-init"})
    again = created(once)
    assert [it["name"] for it in pod_spec(again)["initContainers"]] == ["mesh-init", names.BARRIER_CONTAINER]


def test_a_typed_client_that_adds_and_drops_empty_members_changes_nothing() -> None:
    """JobSet's own webhook reads and writes the object between our two turns."""
    once = created(jobset(config={}))
    barrier(once)["resources"] = {}
    barrier(once)["volumeMounts"][0]["subPath"] = ""
    (limit,) = [it for it in barrier(once)["env"] if it["name"] == names.ENV_LIMIT]
    assert limit.pop("value") == ""
    pod_template(once)["metadata"]["creationTimestamp"] = None
    assert inject.patch(once, None, settings=SETTINGS) == []


def test_barriers_and_volumes_that_are_there_twice_become_one() -> None:
    once = created(jobset())
    twice = copy.deepcopy(once)
    pod_spec(twice)["initContainers"] *= 2
    pod_spec(twice)["volumes"] *= 2
    assert created(twice) == once


def test_a_barrier_that_came_from_another_cluster_is_rendered_again() -> None:
    """MultiKueue copies a JobSet with all that was injected into it; the worker cluster has settings of its own."""
    there = created(jobset(), Settings(barrier=Barrier(image="there:1", grace_seconds=5, poll_seconds=1)))
    here = created(there, Settings(barrier=Barrier(image="here:2")))
    assert here == created(jobset(), Settings(barrier=Barrier(image="here:2")))


def test_a_barrier_of_a_jobset_copied_under_another_name_gets_its_own_config_map() -> None:
    copied = created(changed(created(jobset(name="first")), "second", "metadata", "name"))
    (volume,) = pod_spec(copied)["volumes"]
    assert volume["projected"]["sources"][0]["configMap"]["name"] == "second-group-scheduling"


def test_the_config_annotation_of_the_seeds_story_is_json_that_reads_back() -> None:
    config = {"timeoutAfterSeconds": 300, "targetReplicatedJobs": ["workers"]}
    made = created(jobset(replicated(), replicated("auxiliary"), config=config))
    assert json.loads(made["metadata"]["annotations"][names.CONFIG]) == config


@pytest.mark.parametrize(
    "broken",
    [
        {"name": "workers"},
        {"name": "workers", "template": None},
        {"name": "workers", "template": {"spec": {"template": {"spec": None}}}},
        {"name": "workers", "template": {"spec": {"template": {"spec": {"initContainers": "x"}}}}},
        {"name": "workers", "template": {"spec": {"template": {"spec": {"containers": {}, "volumes": 3}}}}},
        {"name": "workers", "template": {"metadata": [], "spec": {"template": {"spec": {}}}}},
        {"name": "workers", "template": {"spec": {"template": {"metadata": {"labels": 7}, "spec": {}}}}},
        {"name": "workers", "template": {"spec": {"template": {"metadata": {"annotations": "x"}, "spec": {}}}}},
        "workers",
        None,
        7,
    ],
)
def test_a_template_of_the_wrong_shape_is_left_to_the_schema(broken: object) -> None:
    given = jobset()
    given["spec"]["replicatedJobs"] = [broken]
    assert created_only_notes(given)


def created_only_notes(given: Json) -> bool:
    return all(it["path"].startswith("/metadata") for it in inject.patch(given, None, settings=SETTINGS))


@pytest.mark.parametrize("jobs", [None, {}, "x", 3])
def test_replicated_jobs_that_are_no_list_are_left_to_the_schema(jobs: object) -> None:
    given = jobset()
    given["spec"]["replicatedJobs"] = jobs
    assert created_only_notes(given)
