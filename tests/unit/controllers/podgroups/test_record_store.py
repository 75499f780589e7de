"""Records are changed by compare-and-swap only, and a write without an answer is verified (G3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from controllers.podgroups import informers
from controllers.podgroups.cache import PodGroupCache
from controllers.podgroups.record_cache import ObjectPlace
from controllers.podgroups.record_store import RecordStore
from jobset_gate import names
from jobset_gate.kube.errors import Conflict, Expired, Invalid, KubeError, ServerError, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, decode_record, encode_record
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordObject, RecordRef
from jobset_gate.runtime.informer import Informer
from jobset_gate.runtime.workqueue import Requeue
from jobset_gate.settings import Groups
from tests.fakes.podgroups.cluster import PLUGINS, InMemoryCluster
from tests.fakes.podgroups.objects import key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import group_snapshot

MINE = record((key(), 1))
MAP = key(flavor=Flavor.ALIBABA)


class Records:
    """A store, and what it reports ahead of the informers."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.cluster = cluster
        self.seen: list[RecordObject] = []
        self.gone: list[ObjectPlace] = []
        sources = informers.watch_sources(PodGroupCache(Groups()), Groups(), namespace=None)
        stores = informers.record_stores([Informer(cluster.client, source) for source in sources])
        self.store = RecordStore(cluster.client, stores, self._observe)
        self.write, self.load = self.store.write_record, self.store.load_records

    def _observe(self, place: ObjectPlace, found: RecordObject | None) -> None:
        if found is None:
            self.gone.append(place)
        else:
            self.seen.append(found)

    @property
    def last(self) -> AdmissionRecord:
        found = self.seen[-1].record
        assert found is not None
        return found


@pytest.fixture
async def records(cluster: InMemoryCluster) -> Records:
    return Records(cluster)


def seen(cluster: InMemoryCluster) -> GroupSnapshot:
    """The group as it stands."""
    return group_snapshot(pod("a"), group=cluster.stored(PLUGINS, "team", "g"))


async def test_it_is_written_on_the_pod_group_and_seen_at_once(records: Records) -> None:
    records.cluster.put(PLUGINS, pod_group(notes={"theirs": "x"}))
    await records.write(seen(records.cluster), MINE)
    (stored,) = records.cluster.all(PLUGINS)
    assert stored["metadata"]["annotations"]["theirs"] == "x"
    assert records.seen[-1].ref.resource_version == stored["metadata"]["resourceVersion"]
    assert records.last == records.cluster.record() == msgspec.structs.replace(MINE, home_uid=stored["metadata"]["uid"])


def made_again(cluster: InMemoryCluster) -> None:
    cluster.remove(PLUGINS, "g")
    cluster.put(PLUGINS, pod_group(uid="second"))


def annotated(text: str) -> Callable[[InMemoryCluster], object]:
    body = {"metadata": {"annotations": {names.POD_GROUP_RECORD: text}}}
    return lambda cluster: cluster.patch_object(PLUGINS, "g", body)


@pytest.mark.parametrize(
    "meddle",
    [
        made_again,
        annotated("open sesame"),
        annotated(encode_record(msgspec.structs.replace(MINE, at=MINE.at - 1))),
        lambda cluster: cluster.patch_object(PLUGINS, "g", {"status": {"phase": "Pending"}}),
    ],
    ids=["it is another one by now", "what is no record of ours", "another writer was first", "another field"],
)
async def test_what_was_written_meanwhile_stands_and_is_observed(
    records: Records, meddle: Callable[[InMemoryCluster], object]
) -> None:
    records.cluster.put(PLUGINS, pod_group(uid="first"))
    old = seen(records.cluster)
    meddle(records.cluster)
    there = records.cluster.all(PLUGINS)
    with pytest.raises(Requeue):
        await records.write(old, MINE)
    assert records.cluster.all(PLUGINS) == there
    assert records.seen[-1].ref.resource_version == there[0]["metadata"]["resourceVersion"]
    records.cluster.remove(PLUGINS, "g")
    with pytest.raises(Requeue):
        await records.write(old, MINE)
    assert records.gone == [(names.PLUGINS_GROUP, "team", "g")]


async def test_a_write_without_an_answer_is_verified(records: Records) -> None:
    records.cluster.put(PLUGINS, pod_group())
    records.cluster.fault = lambda *_: "lost"
    await records.write(seen(records.cluster), MINE)
    assert records.cluster.record() is not None
    assert records.cluster.count_writes("patch", PLUGINS) == 1


TOO_LONG = Invalid(422, "Invalid", "too long", details={"causes": [{"field": "metadata.annotations"}]})


@pytest.mark.parametrize("refusal", [ServerError(500), TOO_LONG], ids=["server in trouble", "object takes no record"])
async def test_a_refused_write_is_not_repeated_at_once(records: Records, refusal: KubeError) -> None:
    records.cluster.put(PLUGINS, pod_group())
    asked: list[str] = []

    def refuse(verb: str, *_: object) -> KubeError:
        asked.append(verb)
        return refusal

    records.cluster.fault = refuse
    with pytest.raises(type(refusal)):
        await records.write(seen(records.cluster), MINE)
    assert asked == ["patch"]


def mapped(home: RecordRef | None = None, known: AdmissionRecord | None = None) -> GroupSnapshot:
    """A group without a PodGroup."""
    return msgspec.structs.replace(group_snapshot(pod("a", of=MAP), of=MAP, record=known), record_ref=home)


@pytest.mark.parametrize("fate", [None, "lost"])
async def test_without_a_pod_group_it_is_a_configmap_of_ours(records: Records, fate: str | None) -> None:
    records.cluster.fault = lambda *_: fate
    await records.write(mapped(), record((MAP, 1)))
    (stored,) = records.cluster.all(CONFIGMAPS)
    assert stored["metadata"]["labels"][names.POD_GROUP_RECORD] == "true"
    assert stored["metadata"]["annotations"] == {names.POD_GROUP_KEY: "alibaba/team/g"}
    assert decode_record(stored["data"][names.KEY_RECORD]).gangs == ((MAP, 1),)
    records.cluster.fault = lambda *_: None
    home, said = records.seen[-1].ref, records.last
    await records.write(mapped(home, said), msgspec.structs.replace(said, stage=AdmissionState.CLOSED))
    await records.store.delete_record(records.seen[-1].ref)
    assert records.cluster.all(CONFIGMAPS) == []
    assert records.gone == [("", "team", home.name)]


async def test_a_configmap_that_another_client_created_first_is_read(records: Records) -> None:
    await records.write(mapped(), record((MAP, 1)))
    with pytest.raises(Requeue):
        await records.write(mapped(), msgspec.structs.replace(record((MAP, 1)), at=1.0))
    assert records.last.at == MINE.at


async def test_a_configmap_that_was_changed_meanwhile_is_not_removed(records: Records) -> None:
    await records.write(mapped(), record((MAP, 1)))
    (stored,) = records.cluster.all(CONFIGMAPS)
    old = records.seen[-1].ref
    records.cluster.patch_object(CONFIGMAPS, stored["metadata"]["name"], {"data": {"more": "x"}})
    with pytest.raises((Requeue, Conflict)):
        await records.store.delete_record(old)
    assert len(records.cluster.all(CONFIGMAPS)) == 1


async def test_a_new_leader_lists_all_records_however_long_the_api_server_is_in_trouble(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may open groups without having read them, and there is nobody else to lead."""
    records.cluster.put(PLUGINS, pod_group())
    records.cluster.put(PLUGINS, pod_group("undecided"))
    await records.write(seen(records.cluster), MINE)
    await records.write(mapped(), record((MAP, 1)))
    records.seen.clear()
    troubles: list[KubeError] = [ServerError(503), Unreachable("gone"), Expired(410)]
    listed = records.cluster.list

    async def trouble(*args: Any, **more: Any) -> Any:
        if troubles:
            raise troubles.pop()
        return await listed(*args, **more)

    monkeypatch.setattr(records.cluster, "list", trouble)
    await records.load()
    assert {it.record.gangs[0][0] for it in records.seen if it.record is not None} == {key(), MAP}
