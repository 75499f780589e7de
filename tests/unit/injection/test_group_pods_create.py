"""CREATE of a pod of a LeaderWorkerSet's group: what goes into it, and what forbids it (K3, K8)."""

import copy

import pytest

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.warnings import warnings
from jobset_gate.settings import Barrier, Settings
from tests.fakes import start_groups
from tests.fakes.jobsets import Json, without
from tests.fakes.leader_worker_sets import pod
from tests.fakes.wire_objects import owner

SETTINGS = Settings(barrier=Barrier(stream_url="http://gate.system.svc:8082"))
LABELS = "metadata.labels"
SIZE = f"metadata.annotations[{names.LWS_SIZE}]"
NOT_MADE = "LeaderWorkerSet has not made this pod: put the config on the LeaderWorkerSet"


def created(given: Json, drawn: str = "secret") -> Json:
    return copy.deepcopy(inject.injected(given, None, settings=SETTINGS, token=drawn, namespace="default").document)


def errors(given: Json) -> dict[str, str]:
    return {it.path: it.message for it in field_errors(given, settings=SETTINGS)}


def test_leader_and_worker_get_what_a_pod_of_a_start_group_gets() -> None:
    limit = {names.CONFIG: '{"timeoutAfterSeconds": 300}', names.VERDICT: "release x 0 0 AllPodsStarted"}
    theirs = created(start_groups.pod("set-0", owner("StatefulSet", "set", "u"), notes=limit))
    for index in (0, 2):
        given = pod(index, notes=limit, containers=theirs["spec"]["containers"])
        made = created(given)
        assert made["spec"]["initContainers"] == theirs["spec"]["initContainers"]
        assert made["spec"]["volumes"] == theirs["spec"]["volumes"]
        kept = without(given, "metadata", "annotations", names.VERDICT)["metadata"]
        assert made["metadata"] == kept | {"annotations": kept["annotations"] | {names.TOKEN: "secret"}}
        assert created(made, "another") == made, "with barrier and token there is nothing left to do"
        assert errors(given) == errors(made) == {}
        assert warnings(made, settings=SETTINGS) == []


def test_it_waits_as_long_as_its_template_says_and_without_a_config_for_ever() -> None:
    for config, limit in (('{"timeoutAfterSeconds": 30}', "150"), ("{}", ""), (None, "")):
        (gate,) = created(pod(notes={names.CONFIG: config}))["spec"]["initContainers"]
        assert {"name": names.ENV_LIMIT, "value": limit} in gate["env"]


def test_its_images_are_pulled_and_its_barrier_has_another_image_where_the_template_says_so() -> None:
    made = created(pod(1, notes={names.PREFETCH_IMAGES: "true", names.BARRIER_IMAGE: "mirror.local/b:1"}))
    assert [it["image"] for it in made["spec"]["initContainers"]][1:] == ["serve:1", "mirror.local/b:1"]


REFUSED: list[tuple[Json, str, str]] = [
    *(
        (pod(1, labels={key: value}), f"{LABELS}[{key}]", NOT_MADE)
        for key in (names.LWS_NAME, names.LWS_GROUP_INDEX, names.LWS_WORKER_INDEX)
        for value in (None, "")
    ),
    *(
        (pod(notes={names.LWS_SIZE: size}), SIZE, "must be a number from 1 to 10000: LeaderWorkerSet has not made")
        for size in (None, "0", "-1", "three", "10001")
    ),
    (without(pod(), "metadata", "ownerReferences"), "metadata.ownerReferences", NOT_MADE),
    (
        pod(labels={names.START_GROUP: "ring"}, notes={names.START_SIZE: "3"}),
        f"{LABELS}[{names.START_GROUP}]",
        "pods of a LeaderWorkerSet cannot be a start group: put the config on the LeaderWorkerSet",
    ),
    (pod(notes={names.CONFIG: "[]"}), f"metadata.annotations[{names.CONFIG}]", "must be an object with the key"),
    (pod(os={"name": "windows"}), "spec.os.name", "the start barrier cannot run in Windows pods"),
    (pod(volumes=[{"name": names.VOLUME, "emptyDir": {}}]), "spec.volumes[0].name", "is reserved"),
]


@pytest.mark.parametrize(("given", "path", "sentence"), REFUSED)
def test_what_forbids_a_creation_is_named_with_its_path(given: Json, path: str, sentence: str) -> None:
    found = errors(given)
    assert set(found) == {path}
    assert sentence in found[path]


def test_a_label_without_anything_of_lws_is_refused_with_all_that_it_lacks() -> None:
    bare = start_groups.pod("set-0", owner("StatefulSet", "set", "u"))
    bare["metadata"]["labels"][names.GATED] = names.GATED_LWS
    keys = (names.LWS_NAME, names.LWS_GROUP_INDEX, names.LWS_WORKER_INDEX)
    assert list(errors(bare)) == [*(f"{LABELS}[{key}]" for key in keys), SIZE, f"{LABELS}[{names.START_GROUP}]"]


def test_a_pod_group_must_be_the_group() -> None:
    minimum = "gang.scheduling.koordinator.sh/min-available"
    notes = {"gang.scheduling.koordinator.sh/name": "g", minimum: "4"}
    message = "must equal what the start barrier waits for: 4 pods here, 3 there"
    assert errors(pod(notes=notes)) == {f"metadata.annotations[{minimum}]": message}
    assert errors(pod(notes=notes | {minimum: "3"})) == {}
