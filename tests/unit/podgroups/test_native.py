"""What a group looks like to the scheduler's own gangs, and why it cannot be handed over to them."""

from fractions import Fraction

import pytest
from msgspec.structs import replace

from jobset_gate import names
from jobset_gate.podgroups import native
from jobset_gate.podgroups.fit.constraints import pod_node_selection
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.model import Flavor, Format, GangMode, MergedGroup, PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod, RecordRef

KEY = PodGroupKey(flavor=Flavor.SCHEDULER_PLUGINS, namespace="team", name="ring")
HOME = RecordRef(api=names.PLUGINS_GROUP, namespace="team", name="ring", uid="u1", resource_version="7")
RECORD = AdmissionRecord(
    generation=2, stage=AdmissionState.OPEN, how=AdmissionMode.NATIVE, at=0.0, gangs=((KEY, 2),), minimum=3,
    wait=Fraction(60), mode=GangMode.STRICT,
)  # fmt: skip


def member(number: int, named: str = "jobset-gate-abc") -> MemberPod:
    shape = PodShape(selection=pod_node_selection({}), requests={}, count=1)
    return MemberPod(
        uid=f"u{number}", namespace="team", name=f"p{number}", group_label="abc", membership=None, shape=shape,
        gated=True, native=named,
    )  # fmt: skip


def group(*members: MemberPod, gangs: tuple[str, ...] = (), home: RecordRef | None = HOME) -> GroupSnapshot:
    merged = MergedGroup(
        key=KEY, formats=(Format.SCHEDULER_PLUGINS,), minimum=3, wait=Fraction(60), mode=GangMode.STRICT,
        gangs=gangs, resources=(), pod_group=None, pod_group_missing=False, present=len(members),
    )  # fmt: skip
    return GroupSnapshot(group=merged, label="abc", members=members, created=0.0, record_ref=home, record=RECORD)


def test_the_pod_group_wants_the_minimum_and_goes_with_what_the_record_stands_on() -> None:
    made = native.native_pod_group(group(member(1)), RECORD)
    assert made["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("jobset-gate-abc", "team")
    version = f"{names.PLUGINS_GROUP}/v1alpha1"
    owner = {"apiVersion": version, "kind": "PodGroup", "name": "ring", "uid": "u1"}
    assert made["metadata"]["ownerReferences"] == [owner]
    assert native.is_current(made, group(member(1)))


def test_a_config_map_of_ours_owns_it_where_the_way_has_no_pod_group() -> None:
    home = RecordRef(api="", namespace="team", name="jobset-gate-gang-abc", uid="u2", resource_version="1")
    (owner,) = native.native_pod_group(group(member(1), home=home), RECORD)["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("v1", "ConfigMap", "u2")


def test_one_of_an_earlier_generation_is_not_that_of_this_one() -> None:
    made = native.native_pod_group(group(member(1)), RECORD)
    made["metadata"]["annotations"][names.NATIVE_GENERATION] = "1"
    assert not native.is_current(made, group(member(1)))
    assert not native.is_current({"metadata": {}}, group(member(1)))


def test_one_that_goes_with_a_pod_group_of_before_is_another_s() -> None:
    old = native.native_pod_group(group(member(1), home=replace(HOME, uid="old")), RECORD)
    assert native.is_current(old, group(member(1), home=replace(HOME, uid="old")))
    assert not native.is_current(old, group(member(1), home=replace(HOME, uid="new")))


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
