"""Native PodGroups: what a group looks like to the scheduler's own gangs, and when one is made (G6)."""

from collections.abc import Iterable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from controllers.podgroups import native
from controllers.podgroups.native import NativePodGroups
from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import Resource
from jobset_gate.podgroups.model import group_label
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from jobset_gate.runtime.workqueue import Requeue
from tests.fakes.podgroups.objects import key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.podgroups.sources import Json

NAME = "jobset-gate-" + group_label(key())
RECORD = record((key(), 2))


def member(number: int, named: str = NAME) -> Json:
    """A pod that names this PodGroup of the scheduler's, or none."""
    return pod(f"p{number}", spec={"schedulingGroup": {"podGroupName": named}} if named else None)


def group(*pods: Json, gangs: tuple[str, ...] = ()) -> GroupSnapshot:
    seen = group_snapshot(*pods, group=pod_group(), record=RECORD)
    return replace(seen, group=replace(seen.group, gangs=gangs))


SEEN = group(member(1), member(2), member(3))


@pytest.mark.parametrize(
    ("api", "version", "kind"),
    [(names.PLUGINS_GROUP, f"{names.PLUGINS_GROUP}/v1alpha1", "PodGroup"), ("", "v1", "ConfigMap")],
)
def test_the_pod_group_wants_the_minimum_and_goes_with_what_the_record_stands_on(
    api: str, version: str, kind: str
) -> None:
    home = RecordRef(api=api, namespace="team", name="home", uid="u2", resource_version="1")
    made = native.native_pod_group(replace(SEEN, record_ref=home), RECORD)
    assert made["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == (NAME, "team")
    assert made["metadata"]["ownerReferences"] == [{"apiVersion": version, "kind": kind, "name": "home", "uid": "u2"}]


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


class NativeApi:
    """An API server with one native PodGroup at most."""

    def __init__(self, *versions: str, stored: Json | None = None, race: bool = False) -> None:
        self.versions, self.stored, self._race = versions, stored, race
        self.calls: list[str] = []

    async def first_served(self, resources: Iterable[Resource]) -> Resource | None:
        return next((it for it in resources if it.version in self.versions), None)

    async def get(self, resource: Resource, *_: object) -> Any:
        self.calls.append(f"get {resource.version}")
        if self.stored is None:
            raise NotFound(404, "NotFound", "no")
        return self.stored

    async def create(self, resource: Resource, body: Json) -> Json:
        self.calls.append(f"create {resource.version}")
        if self._race:
            raise AlreadyExists(409, "AlreadyExists", "another client was faster")
        self.stored = {**body, "metadata": {**body["metadata"], "uid": "n1", "finalizers": [native.PROTECTION]}}
        return self.stored

    async def delete(self, _: Resource, *__: object, uid: str) -> None:
        """It stays for its finalizer's sake."""
        self.calls.append(f"delete {uid}")

    async def patch(self, *_: object, body: Json, **__: object) -> None:
        assert self.stored is not None
        assert body["metadata"]["uid"] == self.stored["metadata"]["uid"]
        self.stored = {**self.stored, "metadata": {**self.stored["metadata"], **body["metadata"]}}
        if not self.stored["metadata"]["finalizers"]:
            self.stored = None


async def ready(world: NativeApi) -> NativePodGroups:
    found = NativePodGroups(cast("Client", world))
    await found.refresh_version()
    return found


@pytest.mark.parametrize(
    ("served", "used"),
    [(("v1", "v1alpha2"), "v1alpha2"), (("v1", "v1beta1", "v1alpha3"), "v1beta1")],
    ids=["1.36", "1.37"],
)
async def test_the_newest_version_is_used_that_we_know_and_that_is_served(served: tuple[str, ...], used: str) -> None:
    world = NativeApi(*served)
    found = await ready(world)
    assert found.why_held(SEEN) is None
    assert (await ready(NativeApi("v1", "v2"))).why_held(SEEN) is not None
    await found.hand_over_group(SEEN, RECORD)
    assert world.calls == [f"get {used}", f"create {used}"]


async def test_the_pod_group_is_made_once_also_for_a_successor_and_again_if_it_was_deleted() -> None:
    world = NativeApi("v1alpha2")
    for found in (await ready(world), await ready(world)):
        for _ in range(2):
            await found.hand_over_group(SEEN, RECORD)
    assert world.calls.count("create v1alpha2") == 1
    world.stored = None
    await found.hand_over_group(SEEN, RECORD)
    assert world.calls.count("create v1alpha2") == 2


async def test_one_of_an_earlier_generation_goes_first() -> None:
    old = native.native_pod_group(SEEN, RECORD)
    old["metadata"] |= {"uid": "n0", "finalizers": [native.PROTECTION], "annotations": {names.NATIVE_GENERATION: "1"}}
    world = NativeApi("v1alpha2", stored=old)
    found = await ready(world)
    with pytest.raises(Requeue):
        await found.hand_over_group(SEEN, RECORD)
    await found.hand_over_group(SEEN, RECORD)
    assert world.calls == ["get v1alpha2", "delete n0", "get v1alpha2", "create v1alpha2"]


async def test_for_a_recreated_pod_group_there_is_a_new_one_though_it_counts_from_the_start() -> None:
    """The one of before is the garbage collector's: its owner is gone."""
    world = NativeApi("v1alpha2")
    found = await ready(world)
    await found.hand_over_group(SEEN, RECORD)
    assert SEEN.record_ref is not None
    recreated = replace(SEEN, record_ref=replace(SEEN.record_ref, uid="another"))
    with pytest.raises(Requeue):
        await found.hand_over_group(recreated, RECORD)
    await found.hand_over_group(recreated, RECORD)
    assert world.stored is not None
    assert [it["uid"] for it in world.stored["metadata"]["ownerReferences"]] == ["another"]


async def test_where_another_client_was_faster_it_is_requeued() -> None:
    with pytest.raises(Requeue):
        await (await ready(NativeApi("v1alpha2", race=True))).hand_over_group(SEEN, RECORD)


async def test_an_evicted_group_has_none_and_the_next_generation_another() -> None:
    world = NativeApi("v1alpha2")
    found = await ready(world)
    await found.hand_over_group(SEEN, RECORD)
    await found.delete_pod_group(SEEN)
    await found.delete_pod_group(SEEN)
    assert world.stored is None
    await found.hand_over_group(SEEN, RECORD)
    assert world.calls.count("create v1alpha2") == 2
    assert world.calls.count("delete n1") == 1
