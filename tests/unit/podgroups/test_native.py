"""What a group looks like to the scheduler's own gangs, and why it cannot be handed over to them."""

import pytest
from msgspec.structs import replace

from controllers.podgroups import native
from jobset_gate import names
from jobset_gate.podgroups.model import group_label
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from tests.fakes.podgroups.objects import key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.podgroups.sources import Json

NAME = "jobset-gate-" + group_label(key())
RECORD = record((key(), 2))


def member(number: int, named: str = NAME) -> Json:
    """A pod that names this PodGroup of the scheduler's, or none."""
    return pod(f"p{number}", spec={"schedulingGroup": {"podGroupName": named}} if named else None)


def group(*pods: Json, gangs: tuple[str, ...] = (), uid: str = "u1") -> GroupSnapshot:
    seen = group_snapshot(*pods, group=pod_group(uid=uid), record=RECORD)
    return replace(seen, group=replace(seen.group, gangs=gangs))


def test_the_pod_group_wants_the_minimum_and_goes_with_what_the_record_stands_on() -> None:
    made = native.native_pod_group(group(member(1)), RECORD)
    assert made["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == (NAME, "team")
    version = f"{names.PLUGINS_GROUP}/v1alpha1"
    owner = {"apiVersion": version, "kind": "PodGroup", "name": "g", "uid": "u1"}
    assert made["metadata"]["ownerReferences"] == [owner]
    assert native.is_current(made, group(member(1)))


def test_a_config_map_of_ours_owns_it_where_the_way_has_no_pod_group() -> None:
    home = RecordRef(api="", namespace="team", name="jobset-gate-gang-abc", uid="u2", resource_version="1")
    seen = replace(group(member(1)), record_ref=home)
    (owner,) = native.native_pod_group(seen, RECORD)["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("v1", "ConfigMap", "u2")


def test_one_of_an_earlier_generation_is_not_that_of_this_one() -> None:
    made = native.native_pod_group(group(member(1)), RECORD)
    made["metadata"]["annotations"][names.NATIVE_GENERATION] = "1"
    assert not native.is_current(made, group(member(1)))
    assert not native.is_current({"metadata": {}}, group(member(1)))


def test_one_that_goes_with_a_pod_group_of_before_is_another_s() -> None:
    old = native.native_pod_group(group(member(1), uid="old"), RECORD)
    assert native.is_current(old, group(member(1), uid="old"))
    assert not native.is_current(old, group(member(1), uid="new"))


def test_a_group_whose_pods_kept_the_field_is_not_held_up() -> None:
    assert native.native_hold(group(member(1), member(2)), "v1alpha2") is None


@pytest.mark.parametrize(
    ("seen", "version", "why"),
    [
        (group(member(1)), None, "not known yet"),
        (group(member(1)), "", "PodGroups of scheduling.k8s.io in none of v1beta1, v1alpha3, v1alpha2"),
        (group(member(1), gangs=("team/other", "team/ring")), "v1alpha2", "no GangGroups"),
        (group(member(1), member(2, "")), "v1alpha2", "p2 came without spec.schedulingGroup"),
        (group(*(member(number, "x") for number in range(5))), "v1alpha2", "p0, p1, p2 and 2 more came without"),
    ],
)
def test_what_is_in_the_way_is_reported(seen: GroupSnapshot, version: str | None, why: str) -> None:
    reported = native.native_hold(seen, version)
    assert reported is not None
    assert reported.reason == names.REASON_NATIVE_UNAVAILABLE
    assert why in reported.message
