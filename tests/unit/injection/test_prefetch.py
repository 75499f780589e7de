"""A8: what goes before the barrier of a JobSet that wants its images on the nodes first, and stays there."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import prefetch, validate
from jobset_gate.injection.container import TOKEN_PATH
from jobset_gate.injection.verify import not_injected
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import Json, barrier, changed, created, jobset, pod_spec, replicated, updated

COPIER, FIRST, SECOND = (f"group-scheduling-prefetch{end}" for end in ("", "-1", "-2"))
BARRIER = "group-scheduling-init"
TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template")
INIT = (*TEMPLATE, "spec", "initContainers")
NOTE = {names.PREFETCH_IMAGES: "true"}
POD = "spec.replicatedJobs[0].template.spec.template.spec"


def wanting(*mains: Json, init: list[Json] | None = None, **pod: Any) -> Json:
    """A JobSet with these main containers that wants its images first."""
    spec: Json = {"containers": list(mains) or [main()], **pod}
    if init is not None:
        spec["initContainers"] = init
    return jobset(replicated(pod=spec), notes=dict(NOTE))


def main(image: Any = "train:1", name: str = "main", **more: Any) -> Json:
    return {"name": name, "image": image, **more}


def named(it: Json, key: str = "initContainers") -> list[str]:
    return [entry["name"] for entry in pod_spec(it).get(key) or ()]


def one(it: Json, name: str) -> Json:
    (found,) = [entry for entry in pod_spec(it)["initContainers"] if entry["name"] == name]
    assert isinstance(found, dict)
    return found


def runs(it: Json) -> list[tuple[str, str | None]]:
    """(image, pull policy) of what runs the main images."""
    entries = pod_spec(it)["initContainers"]
    return [(e["image"], e.get("imagePullPolicy")) for e in entries if e["name"].startswith(f"{COPIER}-")]


def refused(new: Json, old: Json | None = None) -> list[str]:
    return [str(it) for it in validate.field_errors(new, old)]


def paths(new: Json, old: Json | None = None) -> list[str]:
    return [it.path for it in validate.field_errors(new, old)]


def test_each_main_image_runs_once_between_the_users_init_containers_and_the_barrier() -> None:
    own = [{"name": "fetch", "image": "fetch:1"}, {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"}]
    mains = [main("train:1"), main("log:1", "log"), main("train:1", "second")]
    made = created(wanting(*mains, init=own, volumes=[{"name": "data", "emptyDir": {}}]))
    assert named(made) == ["fetch", "mesh", COPIER, FIRST, SECOND, BARRIER]
    assert runs(made) == [("train:1", None), ("log:1", None)]
    assert named(made, key="volumes") == ["data", "group-scheduling", "group-scheduling-prefetch"]
    assert pod_spec(made)["volumes"][-1] == {"name": "group-scheduling-prefetch", "emptyDir": {}}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"image": "train:1"}, []),
        ({"image": "train:1", "restartPolicy": "Always"}, []),
        ({"image": "train:1", "imagePullPolicy": "Always"}, [("train:1", None)]),
        ({"image": "train:2"}, [("train:1", None)]),
    ],
)
def test_an_image_that_an_init_container_of_the_users_runs_already_is_there(own: Json, expected: list[Any]) -> None:
    made = created(wanting(init=[{"name": "own", **own}]))
    assert runs(made) == expected
    assert (COPIER in named(made, key="volumes")) is bool(expected)


# --- What they are --------------------------------------------------------------------------------------------------


def test_a_main_images_container_gets_no_devices_and_nothing_of_the_users() -> None:
    """Nor does the first one, which runs the barrier's image and alone may write the volume."""
    user = main(
        env=[{"name": "SECRET", "value": "x"}],
        envFrom=[{"secretRef": {"name": "s"}}],
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
        workingDir="/not/there",
        args=["--train"],
        ports=[{"containerPort": 1}],
        resources={"limits": {"cpu": "1", "nvidia.com/gpu": "8"}},
        lifecycle={"preStop": {}},
        securityContext={"privileged": True, "runAsUser": 0},
    )
    made = created(wanting(user), Settings(barrier=Barrier(image="mirror/busybox:9")))
    mount = {"name": "group-scheduling-prefetch", "mountPath": "/mnt/group-scheduling-prefetch"}
    no_token = {"name": "group-scheduling-prefetch", "mountPath": TOKEN_PATH, "readOnly": True}
    alike = {
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": barrier(made)["securityContext"],
        "resources": {"limits": {"cpu": "1"}},
    }
    assert one(made, COPIER) == alike | {
        "name": COPIER,
        "image": "mirror/busybox:9",
        "command": prefetch.copy_command(),
        "volumeMounts": [mount, no_token],
    }
    assert one(made, FIRST) == alike | {
        "name": FIRST,
        "image": "train:1",
        "command": ["/mnt/group-scheduling-prefetch/true"],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        "volumeMounts": [mount | {"readOnly": True}, no_token],
    }


# --- Twice, and from elsewhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("notes", [{}, {names.PREFETCH_IMAGES: "false"}])
def test_a_copy_that_does_not_want_it_any_more_loses_it(notes: Json) -> None:
    made = created(wanting(init=[{"name": "own", "image": "x"}], volumes=[{"name": "data", "emptyDir": {}}]))
    again = created(changed(made, notes, "metadata", "annotations"))
    assert named(again) == ["own", BARRIER]
    assert named(again, key="volumes") == ["data", "group-scheduling"]


def test_a_copy_with_other_images_and_an_older_script_or_without_any_is_rendered_again() -> None:
    made = created(wanting(main(), main("log:1", "log")))
    one(made, COPIER)["command"] = ["sh", "-c", "an older script"]
    pod_spec(made)["containers"] = [main("train:2")]
    assert created(made) == created(wanting(main("train:2")))
    made = created(jobset())
    made["metadata"]["annotations"] |= NOTE
    assert created(made) == created(wanting())


# --- UPDATE -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    [[0, 2, 3], [0, 1, 3], [0, 1, 2], [1, 2, 3, 0], [1, 0, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3, 1]],
    ids=["no copier", "no pull", "no barrier", "behind ours", "among ours", "turned", "twice"],
)
def test_ours_come_back_to_their_places_behind_the_users_own(order: list[int]) -> None:
    stored = created(wanting(init=[{"name": "own", "image": "x"}]))
    entries = pod_spec(stored)["initContainers"]
    assert updated(changed(stored, [entries[index] for index in order], *INIT), stored) == stored


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("member", ["image", "command", "imagePullPolicy"])
def test_a_container_that_is_changed_on_purpose_is_refused_and_not_undone_in_silence(index: int, member: str) -> None:
    stored = created(wanting())
    new = changed(stored, "other", *INIT, index, member)
    assert paths(new, stored) == [f"{POD}.initContainers[{index}]"]
    assert updated(new, stored) == new


@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_a_volume_that_looks_like_ours_and_that_the_user_mounts_is_the_users(key: str) -> None:
    """Taken for ours it would be taken away, and the API server would speak of a mount without a volume."""
    mounting = main(volumeMounts=[{"name": COPIER, "mountPath": "/scratch"}])
    job = replicated(pod={key: [mounting], "volumes": [{"name": COPIER, "emptyDir": {}}]})
    assert paths(jobset(job)) == [f"{POD}.volumes[0].name"]


@pytest.mark.parametrize("edit", [{"sizeLimit": "8Mi"}, {"medium": "Memory"}])
def test_a_volume_of_ours_that_another_webhook_has_limited_stays_ours(edit: Json) -> None:
    """It ran between our two calls at CREATE; afterwards it is what the stored object has."""
    made = created(wanting())
    limited = changed(made, edit, *TEMPLATE, "spec", "volumes", 1, "emptyDir")
    assert refused(limited) == []
    assert not_injected(limited, None) == []
    assert refused(limited, limited) == []
    assert updated(wanting(), limited) == limited


@pytest.mark.parametrize("name", ["group-scheduling-prefetcher", "group-scheduling-prefetch-a", "prefetch"])
def test_a_name_that_only_begins_alike_is_the_users(name: str) -> None:
    assert refused(jobset(replicated(pod={"containers": [main("a:1", name)]}))) == []
