"""A3: what CREATE puts into a JobSet."""

import copy

import pytest

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.verify import not_injected
from jobset_gate.settings import Barrier, Resources, Settings
from tests.fakes.jobsets import (
    SETTINGS,
    Json,
    barrier,
    changed,
    created,
    defaulted,
    jobset,
    pod_spec,
    pod_template,
    replicated,
    updated,
    without,
)

JOB = ("spec", "replicatedJobs", 0, "template")
TEMPLATE = (*JOB, "spec", "template")


def test_the_barrier_goes_behind_the_users_own_init_containers() -> None:
    own = [{"name": "fetch", "image": "fetch:1"}, {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"}]
    made = created(jobset(replicated(pod={"initContainers": own})))
    assert [it["name"] for it in pod_spec(made)["initContainers"]] == ["fetch", "mesh", names.BARRIER_CONTAINER]


def test_each_targeted_pod_template_gets_one_and_the_others_none() -> None:
    given = jobset(replicated(), replicated("auxiliary"), config={"targetReplicatedJobs": ["workers"]})
    made = created(given)
    assert barrier(made, 0)
    assert made["spec"]["replicatedJobs"][1] == defaulted(given)["spec"]["replicatedJobs"][1]


def test_the_volume_carries_the_gangs_config_map_and_the_pods_own_annotation() -> None:
    (volume,) = pod_spec(created(jobset(name="my-jobset")))["volumes"]
    assert volume["name"] == "group-scheduling"
    config_map, downward = volume["projected"]["sources"]
    assert config_map["configMap"]["name"] == "my-jobset-group-scheduling"
    assert config_map["configMap"]["items"] == [{"key": "verdict", "path": "verdict"}]
    reference = {"fieldPath": "metadata.annotations['jobset-gate.dev/verdict']"}
    assert downward["downwardAPI"]["items"] == [{"path": "annotation", "fieldRef": reference}]
    assert config_map["configMap"]["optional"] is True
    assert volume["projected"]["defaultMode"] == 0o444, "readable by all"


def test_the_volume_is_mounted_whole_since_a_sub_path_never_refreshes() -> None:
    mount = barrier(created(jobset()))["volumeMounts"][0]
    assert mount == {"name": "group-scheduling", "mountPath": "/mnt/group-scheduling", "readOnly": True}


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
    """Next to what the user has put there."""
    given = changed(jobset(), {"team": "a"}, *JOB, "metadata", "labels")
    made = created(changed(given, {"note": "x"}, *TEMPLATE, "metadata", "annotations"))
    assert made["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"] == {"team": "a", names.GATED: "true"}
    assert pod_template(made)["metadata"]["labels"] == {names.GATED: "true"}
    assert pod_template(made)["metadata"]["annotations"] == {"note": "x", names.EPOCH: "0"}


def test_the_config_is_copied_into_the_annotation_as_compact_json() -> None:
    config = {"timeoutAfterSeconds": 300, "targetReplicatedJobs": ["workers"]}
    text = created(jobset(config=config))["metadata"]["annotations"][names.CONFIG]
    assert text == '{"timeoutAfterSeconds":300,"targetReplicatedJobs":["workers"]}'


def test_the_annotation_alone_works_too_and_is_left_in_the_users_words() -> None:
    """Another text would be a change that a second apply of the manifest would undo."""
    text = '{ "timeoutAfterSeconds": 300 }'
    made = created(jobset(config=False, notes={names.CONFIG: text}))
    assert barrier(made)
    assert made["metadata"]["annotations"] == {names.CONFIG: text}
    assert "groupSchedulingConfig" not in made["spec"]


def test_image_and_resources_are_the_operators() -> None:
    settings = Settings(barrier=Barrier(image="registry.local/busybox:1"))
    assert barrier(created(jobset(), settings))["image"] == "registry.local/busybox:1"
    settings = Settings(barrier=Barrier(resources=Resources(requests={"cpu": "1m"}, limits={"memory": "8Mi"})))
    mains = [{"name": "main", "image": "a", "resources": {"limits": FULL}}]
    found = barrier(created(jobset(replicated(pod={"containers": mains})), settings))["resources"]
    assert found == {"requests": {"cpu": "1m"}, "limits": {"memory": "8Mi"}}


# --- Pod Security, QoS, quotas, tokens ------------------------------------------------------------------------------


@pytest.mark.parametrize("came", ["7", "garbage"])
def test_the_epoch_starts_at_zero_whatever_came_in(came: str) -> None:
    made = created(changed(jobset(), {names.EPOCH: came}, *TEMPLATE, "metadata", "annotations"))
    assert pod_template(made)["metadata"]["annotations"] == {names.EPOCH: "0"}


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


OURS = (65532, 65532)
NONE = Barrier(run_as_user=None, run_as_group=None)


@pytest.mark.parametrize(
    ("pod", "settings", "user"),
    [
        ({"runAsUser": 1000}, Barrier(), (None, None)),
        ({"runAsUser": 0}, Barrier(), OURS),
        ({"runAsNonRoot": True}, Barrier(), OURS),
        (None, Barrier(), OURS),
        (None, NONE, (None, None)),
    ],
    ids=["a user", "root", "none", "no context", "a platform that chooses users"],
)
def test_a_user_of_the_pod_other_than_root_is_inherited(pod: Json | None, settings: Barrier, user: object) -> None:
    given = jobset(replicated(pod={"securityContext": pod}))
    context = barrier(created(given, Settings(barrier=settings)))["securityContext"]
    assert (context.get("runAsUser"), context.get("runAsGroup")) == user
    assert context["runAsNonRoot"] is True


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


def test_a_name_that_is_to_be_generated_is_completed_so_that_the_config_maps_is_right() -> None:
    """As the API server would complete it."""
    long = "a" * 100
    for name, prefix, whole in (
        ("", "gang-", "gang-bcdfg"),
        ("mine", "gang-", "mine"),
        ("", long, long[:58] + "bcdfg"),
    ):
        made = created(changed(jobset(), {"generateName": prefix, "name": name}, "metadata"), suffix="bcdfg")
        assert made["metadata"]["name"] == whole
        (volume,) = pod_spec(made)["volumes"]
        assert volume["projected"]["sources"][0]["configMap"]["name"] == f"{whole}-group-scheduling"


# --- Twice, and with others -----------------------------------------------------------------------------------------


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
    assert inject.injected(once, None, settings=SETTINGS).operations == []


def test_a_barrier_that_is_there_twice_or_came_from_another_cluster_is_rendered_again() -> None:
    """MultiKueue copies a JobSet with all that was injected into it; the worker cluster has settings of its own."""
    there = created(jobset(), Settings(barrier=Barrier(image="there:1", grace_seconds=5, poll_seconds=1)))
    here = created(there, Settings(barrier=Barrier(image="here:2")))
    assert here == created(jobset(), Settings(barrier=Barrier(image="here:2")))
    twice = created(jobset())
    pod_spec(twice)["initContainers"] *= 2
    pod_spec(twice)["volumes"] *= 2
    assert created(twice) == created(jobset())


# --- A6: the gate stream, and that its token lives as long as the JobSet ----------------------------------------------

STREAM = Settings(barrier=Barrier(stream_url="http://gate.system.svc:8082"))
OTHER = Settings(barrier=Barrier(stream_url="http://moved.system.svc:9000"))
TOKEN = "a-token"
GANG = "http://gate.system.svc:8082/v1/gangs/default/gang/"


def message(it: Json, index: int = 0) -> str | None:
    """The URL that the pods of a replicatedJob use."""
    variables = {variable["name"]: variable for variable in barrier(it, index)["env"]}
    assert (names.ENV_STREAM in variables) == (names.ENV_POD in variables)
    found = variables.get(names.ENV_STREAM)
    return found["value"] if found else None


def test_the_barrier_gets_the_url_of_its_gang_in_the_objects_namespace_and_the_uid_of_its_pod() -> None:
    it = created(jobset(), STREAM, token=TOKEN)
    assert message(it) == GANG + "a-token"
    pod = {"name": "JOBSET_GATE_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
    assert pod in barrier(it)["env"]
    mine = created(changed(jobset(), "team-a", "metadata", "namespace"), STREAM, token=TOKEN)
    assert message(mine) == "http://gate.system.svc:8082/v1/gangs/team-a/gang/a-token"
    assert message(created(without(jobset(), "metadata", "namespace"), STREAM, token=TOKEN)) == GANG + "a-token"


@pytest.mark.parametrize(("settings", "token"), [(Settings(), "a-token"), (STREAM, "")])
def test_without_a_url_or_a_token_it_gets_neither(settings: Settings, token: str) -> None:
    it = created(jobset(), settings, token=token)
    assert message(it) is None
    assert it == created(jobset())


def test_a_copy_gets_a_token_of_its_own_in_all_targets() -> None:
    copied = created(created(jobset(replicated(), replicated("b")), STREAM, token="old"), STREAM, token="new")
    assert {message(copied, index) for index in range(2)} == {GANG + "new"}
    assert not_injected(copied, None) == []
    assert inject.injected(copied, None, settings=STREAM, token="new").operations == []


@pytest.mark.parametrize("settings", [STREAM, OTHER, Settings()])
def test_an_update_never_changes_it_whatever_the_settings_are_then(settings: Settings) -> None:
    """Also with the user's manifest in the stored object's place, and through a suspension."""
    stored = created(jobset(), STREAM, token=TOKEN)
    assert updated(copy.deepcopy(stored), stored, settings) == stored
    assert message(updated(jobset(), stored, settings)) == GANG + "a-token"
    assert message(updated(jobset(), created(jobset()), settings)) is None
    suspended = updated(jobset(spec={"suspend": True}), stored, settings)
    assert message(suspended) == GANG + "a-token"


def test_a_manifest_rendered_offline_may_be_applied_again() -> None:
    """`render` knows no token and puts another in its place; the stored one stays."""
    stored, rendered = (created(jobset(), STREAM, token=it) for it in (TOKEN, "0" * 22))
    assert not field_errors(rendered, stored, settings=STREAM)
    assert updated(rendered, stored, STREAM) == stored
    (found,) = field_errors(created(jobset(), OTHER, token=TOKEN), stored, settings=OTHER)
    assert "initContainers[0]" in found.path, "another address is no mere other token"
