"""The handlers for single pods: those of pod groups, of start groups and of LeaderWorkerSets (K3)."""

import pytest

from jobset_gate import names
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Barrier, Gangs, Groups, Resources, Settings
from tests.fakes import grouped_pods, leader_worker_sets, start_groups
from tests.fakes.admission_reviews import body, patched, response
from tests.fakes.jobsets import Json, jobset, without
from tests.fakes.wire_objects import owner
from webhook.handlers import Handler, barrier_pod_handler, pod_handler
from webhook.review import decode, encode

CORE = {"group": "", "version": "v1", "resource": "pods"}
ENABLED = Settings(
    gangs=Gangs(sources=("jobset", "lws", "startgroup")), barrier=Barrier(stream_url="http://gate.system.svc:8082")
)

ONLY_START_GROUPS = Settings(gangs=Gangs(sources=("jobset", "startgroup")))


def start_group_pod(**notes: str) -> Json:
    return start_groups.pod("set-0", owner("StatefulSet", "set", "u"), notes=notes)


START_GROUP, WORKER, GROUPED = start_group_pod(), leader_worker_sets.pod(1), grouped_pods.pod(Format.KEP_24)
WITHOUT_SIZE = without(START_GROUP, "metadata", "annotations")
WORKER_WITHOUT_SIZE = leader_worker_sets.pod(1, notes={names.LWS_SIZE: None})
OF_TWO_SOURCES = leader_worker_sets.pod(labels={names.START_GROUP: "ring"})
OF_TWO_GROUPS = grouped_pods.pod(Format.KEP_24, "a", meta=grouped_pods.meta_of(Format.SCHEDULER_PLUGINS, "b"))


def asked(new: Json | None, **request: object) -> bytes:
    """The review of a pod's creation."""
    return body(new, **({"resource": CORE, "namespace": "team", "name": ""} | request))


def barrier_pods(settings: Settings = ENABLED) -> Handler:
    return barrier_pod_handler(settings, lambda: "secret")


def answered(handler: Handler, data: bytes) -> bytes:
    """The review of the answer."""
    request = decode(data)
    return encode(request.uid, handler(request))


# --- Both ------------------------------------------------------------------------------------------------------------

BOTH = [(pod_handler(Settings()), GROUPED), (barrier_pods(), START_GROUP)]
THROUGH = [
    *(
        (*both, request)
        for both in BOTH
        for request in ({"operation": "UPDATE"}, {"operation": "DELETE"}, {"subResource": "binding"})
    ),
    # A configuration that was left behind refuses nobody.
    (pod_handler(Settings(groups=Groups(enabled=False))), OF_TWO_GROUPS, {}),
    (barrier_pods(Settings()), WITHOUT_SIZE, {}),
    (barrier_pods(ONLY_START_GROUPS), WORKER_WITHOUT_SIZE, {}),
]


@pytest.mark.parametrize(("handler", "pod", "request_"), THROUGH)
def test_what_is_no_creation_or_is_switched_off_goes_through(handler: Handler, pod: Json, request_: Json) -> None:
    assert set(response(answered(handler, asked(pod, **request_)))) == {"uid", "allowed"}


@pytest.mark.parametrize(("handler", "pod"), BOTH)
def test_what_is_no_pod_is_a_bad_request(handler: Handler, pod: Json) -> None:
    """Only a registration that is wrong sends it, and that should show."""
    other = {"group": "", "version": "v1", "resource": "services"}
    for raw in (asked(pod, resource=other), asked(None), body(jobset())):
        message = response(answered(handler, raw))
        assert (message["allowed"], message["status"]["code"]) == (False, 400)


@pytest.mark.parametrize(
    ("handler", "bad", "cause"),
    [
        (pod_handler(Settings()), OF_TWO_GROUPS, ("FieldValueForbidden", "metadata")),
        (barrier_pods(), WITHOUT_SIZE, ("FieldValueRequired", f"metadata.annotations[{names.START_SIZE}]")),
        (barrier_pods(), WORKER_WITHOUT_SIZE, ("FieldValueInvalid", f"metadata.annotations[{names.LWS_SIZE}]")),
        (
            barrier_pods(ONLY_START_GROUPS),
            OF_TWO_SOURCES,
            ("FieldValueForbidden", f"metadata.labels[{names.START_GROUP}]"),
        ),
    ],
    ids=["pod group", "start group", "LeaderWorkerSet", "start group of a LeaderWorkerSet, which is switched off"],
)
def test_a_refusal_is_of_the_pod_by_its_generated_name(handler: Handler, bad: Json, cause: tuple[str, str]) -> None:
    given = without(bad, "metadata", "name")
    given["metadata"]["generateName"] = "set-"
    message = response(answered(handler, asked(given)))
    status = message["status"]
    assert (message["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert (status["details"]["group"], status["details"]["kind"], status["details"]["name"]) == ("", "Pod", "set-")
    assert [(it["reason"], it["field"]) for it in status["details"]["causes"]] == [cause]


# --- Pod groups ------------------------------------------------------------------------------------------------------


def test_a_pod_of_a_group_comes_out_held_under_the_namespace_of_the_request() -> None:
    """A template's pods have none in their metadata until they are stored."""
    labels = set()
    for namespace in ("a", "b"):
        made = patched(GROUPED, answered(pod_handler(Settings()), asked(GROUPED, namespace=namespace)))
        assert grouped_pods.gates(made) == [names.POD_GROUP_GATE]
        labels.add(made["metadata"]["labels"][names.POD_GROUP_LABEL])
    assert len(labels) == 2


# --- Start groups ----------------------------------------------------------------------------------------------------


def test_warnings_go_with_the_patch() -> None:
    message = response(answered(barrier_pods(), asked(start_group_pod(**{"jobset-gate.dev/bypas": "true"}))))
    assert message["patchType"] == "JSONPatch"
    (warning,) = message["warnings"]
    assert warning.endswith("did you mean jobset-gate.dev/bypass?")


def test_a_patch_beyond_the_limit_is_refused_with_its_place() -> None:
    given = start_group_pod(**{names.PREFETCH_IMAGES: "true"})
    given["spec"]["containers"] = [{"name": f"c{number}", "image": f"{number}"} for number in range(500)]
    limits: dict[str, str | int | float] = {f"example.com/{number}": "1" for number in range(400)}
    large = Settings(gangs=ENABLED.gangs, barrier=Barrier(resources=Resources(limits=limits)))
    message = response(answered(barrier_pods(large), asked(given)))
    assert message["allowed"] is False
    assert message["status"]["message"].startswith("spec.initContainers: 1: too much: ")
