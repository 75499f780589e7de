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


class RecordingObserver:
    """Keeps what the store reports ahead of the informers."""

    def __init__(self) -> None:
        self.seen: list[RecordObject] = []
        self.gone: list[ObjectPlace] = []

    def __call__(self, place: ObjectPlace, found: RecordObject | None) -> None:
        if found is None:
            self.gone.append(place)
        else:
            self.seen.append(found)

    @property
    def last(self) -> AdmissionRecord | None:
        return self.seen[-1].record


@pytest.fixture
def observer() -> RecordingObserver:
    return RecordingObserver()


@pytest.fixture
async def records(cluster: InMemoryCluster, observer: RecordingObserver) -> RecordStore:
    settings = Groups()
    sources = informers.watch_sources(PodGroupCache(settings), settings, namespace=None)
    stores = informers.record_stores([Informer(cluster.client, source) for source in sources])
    return RecordStore(cluster.client, stores, observer)


def seen(cluster: InMemoryCluster) -> GroupSnapshot:
    """The group as it stands."""
    return group_snapshot(pod("a"), group=cluster.stored(PLUGINS, "team", "g"))


async def test_it_is_written_on_the_pod_group_and_seen_at_once(
    cluster: InMemoryCluster, records: RecordStore, observer: RecordingObserver
) -> None:
    cluster.put(PLUGINS, pod_group(notes={"theirs": "x"}))
    await records.write_record(seen(cluster), MINE)
    (stored,) = cluster.all(PLUGINS)
    assert stored["metadata"]["annotations"]["theirs"] == "x"
    assert observer.seen[-1].ref.resource_version == stored["metadata"]["resourceVersion"]
    assert observer.last == cluster.record() == msgspec.structs.replace(MINE, home_uid=stored["metadata"]["uid"])


def made_again(cluster: InMemoryCluster) -> None:
    cluster.remove(PLUGINS, "g")
    cluster.put(PLUGINS, pod_group(uid="second"))


def annotated(text: str) -> Callable[[InMemoryCluster], object]:
    body = {"metadata": {"annotations": {names.POD_GROUP_RECORD: text}}}
    return lambda cluster: cluster.patch_object(PLUGINS, "g", body)


def with_status(cluster: InMemoryCluster) -> None:
    cluster.patch_object(PLUGINS, "g", {"status": {"phase": "Pending"}})


@pytest.mark.parametrize(
    "meddle",
    [
        made_again,
        annotated("open sesame"),
        annotated(encode_record(msgspec.structs.replace(MINE, at=MINE.at - 1))),
        with_status,
    ],
    ids=["it is another one by now", "what is no record of ours", "another writer was first", "another field"],
)
async def test_what_was_written_meanwhile_stands_and_is_observed(
    cluster: InMemoryCluster,
    records: RecordStore,
    observer: RecordingObserver,
    meddle: Callable[[InMemoryCluster], object],
) -> None:
    cluster.put(PLUGINS, pod_group(uid="first"))
    old = seen(cluster)
    meddle(cluster)
    there = cluster.all(PLUGINS)
    with pytest.raises(Requeue):
        await records.write_record(old, MINE)
    assert cluster.all(PLUGINS) == there
    assert observer.seen[-1].ref.resource_version == there[0]["metadata"]["resourceVersion"]


async def test_a_pod_group_that_is_gone_is_observed(
    cluster: InMemoryCluster, records: RecordStore, observer: RecordingObserver
) -> None:
    cluster.put(PLUGINS, pod_group())
    old = seen(cluster)
    cluster.remove(PLUGINS, "g")
    with pytest.raises(Requeue):
        await records.write_record(old, MINE)
    assert observer.gone == [(names.PLUGINS_GROUP, "team", "g")]


async def test_a_write_without_an_answer_is_verified(cluster: InMemoryCluster, records: RecordStore) -> None:
    cluster.put(PLUGINS, pod_group())
    cluster.fault = lambda *_: "lost"
    await records.write_record(seen(cluster), MINE)
    assert cluster.record() is not None
    assert cluster.count_writes("patch", PLUGINS) == 1


TOO_LONG = Invalid(422, "Invalid", "too long", details={"causes": [{"field": "metadata.annotations"}]})


@pytest.mark.parametrize("refusal", [ServerError(500), TOO_LONG], ids=["server in trouble", "object takes no record"])
async def test_a_refused_write_is_not_repeated_at_once(
    cluster: InMemoryCluster, records: RecordStore, refusal: KubeError
) -> None:
    cluster.put(PLUGINS, pod_group())
    asked: list[str] = []

    def refuse(verb: str, *_: object) -> KubeError:
        asked.append(verb)
        return refusal

    cluster.fault = refuse
    with pytest.raises(type(refusal)):
        await records.write_record(seen(cluster), MINE)
    assert asked == ["patch"]


def mapped(home: RecordRef | None = None, known: AdmissionRecord | None = None) -> GroupSnapshot:
    """A group without a PodGroup."""
    return msgspec.structs.replace(group_snapshot(pod("a", of=MAP), of=MAP, record=known), record_ref=home)


@pytest.mark.parametrize("fate", [None, "lost"])
async def test_without_a_pod_group_it_is_a_configmap_of_ours(
    cluster: InMemoryCluster, records: RecordStore, observer: RecordingObserver, fate: str | None
) -> None:
    cluster.fault = lambda *_: fate
    await records.write_record(mapped(), record((MAP, 1)))
    (stored,) = cluster.all(CONFIGMAPS)
    assert stored["metadata"]["labels"][names.POD_GROUP_RECORD] == "true"
    assert stored["metadata"]["annotations"] == {names.POD_GROUP_KEY: "alibaba/team/g"}
    assert decode_record(stored["data"][names.KEY_RECORD]).gangs == ((MAP, 1),)
    cluster.fault = lambda *_: None
    home, said = observer.seen[-1].ref, observer.last
    assert said is not None
    await records.write_record(mapped(home, said), msgspec.structs.replace(said, stage=AdmissionState.CLOSED))
    await records.delete_record(observer.seen[-1].ref)
    assert cluster.all(CONFIGMAPS) == []
    assert observer.gone == [("", "team", home.name)]


async def test_a_configmap_that_another_client_created_first_is_read(
    cluster: InMemoryCluster, records: RecordStore, observer: RecordingObserver
) -> None:
    await records.write_record(mapped(), record((MAP, 1)))
    with pytest.raises(Requeue):
        await records.write_record(mapped(), msgspec.structs.replace(record((MAP, 1)), at=1.0))
    assert observer.last is not None
    assert observer.last.at == MINE.at


async def test_a_configmap_that_was_changed_meanwhile_is_not_removed(
    cluster: InMemoryCluster, records: RecordStore, observer: RecordingObserver
) -> None:
    await records.write_record(mapped(), record((MAP, 1)))
    (stored,) = cluster.all(CONFIGMAPS)
    old = observer.seen[-1].ref
    cluster.patch_object(CONFIGMAPS, stored["metadata"]["name"], {"data": {"more": "x"}})
    with pytest.raises((Requeue, Conflict)):
        await records.delete_record(old)
    assert len(cluster.all(CONFIGMAPS)) == 1


async def test_a_new_leader_lists_all_records(
    cluster: InMemoryCluster, records: RecordStore, observer: RecordingObserver
) -> None:
    cluster.put(PLUGINS, pod_group())
    cluster.put(PLUGINS, pod_group("undecided"))
    await records.write_record(seen(cluster), MINE)
    await records.write_record(mapped(), record((MAP, 1)))
    observer.seen.clear()
    await records.load_records()
    decided = [it.record.gangs[0][0] for it in observer.seen if it.record is not None]
    assert sorted(decided, key=str) == sorted([key(), MAP], key=str)


async def test_a_request_to_an_api_server_in_trouble_is_retried(
    cluster: InMemoryCluster, records: RecordStore, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may open groups without having read them, and there is nobody else to lead."""
    cluster.put(PLUGINS, pod_group())
    await records.write_record(seen(cluster), MINE)
    observer.seen.clear()
    troubles: list[KubeError] = [ServerError(503), Unreachable("gone"), Expired(410)]
    listed = cluster.list

    async def trouble(*args: Any, **more: Any) -> Any:
        if troubles:
            raise troubles.pop()
        return await listed(*args, **more)

    monkeypatch.setattr(cluster, "list", trouble)
    await records.load_records()
    assert [it.ref.name for it in observer.seen] == ["g"]
