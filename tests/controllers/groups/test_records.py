"""Records are changed by compare-and-swap only, and a lost answer is looked for (G3)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controllers.gates import LookAgain
from controllers.groups.records import Records
from jobset_gate import names
from jobset_gate.groups.model import Design, Key
from jobset_gate.groups.record import Record, Stage, parse
from jobset_gate.groups.seen import GroupSeen, Home
from jobset_gate.kube.errors import Conflict, Expired, Invalid, KubeError, ServerError, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import PLUGINS, SmallCluster
from tests.jobset_gate.groups.objects import key, pod, pod_group, record
from tests.jobset_gate.groups.seeing import group_seen

MINE = record((key(), 1))
MAP = key(design=Design.ALIBABA)


class Witness:
    """Who is told ahead of the watch."""

    def __init__(self) -> None:
        self.seen: list[tuple[Key, Home, Record | None]] = []
        self.gone: list[Home] = []

    def saw(self, key: Key, home: Home, record: Record | None) -> None:
        self.seen.append((key, home, record))

    def lost(self, key: Key, home: Home) -> None:
        self.gone.append(home)


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
async def records(cluster: SmallCluster, witness: Witness) -> Records:
    return Records(cluster.client, witness)


def seen(cluster: SmallCluster, known: Record | None = None) -> GroupSeen:
    """The group as it stands, with that record as far as we know."""
    (stored,) = cluster.all(PLUGINS)
    return group_seen(pod("a"), group=stored, record=known)


async def test_it_is_written_on_the_pod_group_and_seen_at_once(
    cluster: SmallCluster, records: Records, witness: Witness
) -> None:
    cluster.put(PLUGINS, pod_group(notes={"theirs": "x"}))
    await records.write(seen(cluster), MINE)
    (stored,) = cluster.all(PLUGINS)
    assert stored["metadata"]["annotations"]["theirs"] == "x"
    told, home, said = witness.seen[-1]
    assert (told, home.resource_version) == (key(), stored["metadata"]["resourceVersion"])
    assert said == cluster.record() == msgspec.structs.replace(MINE, home_uid=stored["metadata"]["uid"])


async def test_of_two_writers_the_second_looks_again(cluster: SmallCluster, records: Records, witness: Witness) -> None:
    cluster.put(PLUGINS, pod_group())
    old = seen(cluster)
    await records.write(old, MINE)
    other = msgspec.structs.replace(MINE, at=MINE.at + 1)
    with pytest.raises(LookAgain):
        await records.write(old, other)
    found = cluster.record()
    assert found is not None
    assert found.at == MINE.at
    assert witness.seen[-1][2] == found, "the loser knows what stands"


async def test_another_version_with_the_same_record_is_no_reason_to_give_up(
    cluster: SmallCluster, records: Records
) -> None:
    cluster.put(PLUGINS, pod_group())
    old = seen(cluster)
    cluster.change(PLUGINS, "g", {"status": {"phase": "Pending"}})
    await records.write(old, MINE)
    assert cluster.record() is not None


async def test_a_pod_group_that_was_made_anew_gets_no_old_record(cluster: SmallCluster, records: Records) -> None:
    cluster.put(PLUGINS, pod_group(uid="first"))
    old = seen(cluster)
    cluster.remove(PLUGINS, "g")
    cluster.put(PLUGINS, pod_group(uid="second"))
    with pytest.raises(LookAgain):
        await records.write(old, MINE)
    assert cluster.record() is None


async def test_a_pod_group_that_is_gone_is_said_to_be(
    cluster: SmallCluster, records: Records, witness: Witness
) -> None:
    cluster.put(PLUGINS, pod_group())
    old = seen(cluster)
    cluster.remove(PLUGINS, "g")
    with pytest.raises(LookAgain):
        await records.write(old, MINE)
    assert witness.gone == [old.home]


async def test_a_write_whose_answer_was_lost_is_looked_up(cluster: SmallCluster, records: Records) -> None:
    cluster.put(PLUGINS, pod_group())
    cluster.fate = lambda *_: "lost"
    await records.write(seen(cluster), MINE)
    assert cluster.record() is not None
    assert cluster.wrote("patch", PLUGINS) == 1


async def test_a_write_that_is_refused_is_not_pressed_on_a_server_in_trouble(
    cluster: SmallCluster, records: Records
) -> None:
    cluster.put(PLUGINS, pod_group())
    asked: list[str] = []

    def refuse(verb: str, *_: object) -> KubeError:
        asked.append(verb)
        return ServerError(500)

    cluster.fate = refuse
    with pytest.raises(ServerError):
        await records.write(seen(cluster), MINE)
    assert asked == ["patch"]


async def test_an_object_that_takes_no_record_is_not_pressed(cluster: SmallCluster, records: Records) -> None:
    """Such as one whose annotations are as large as they may be."""
    cluster.put(PLUGINS, pod_group())
    asked: list[str] = []

    def refuse(verb: str, *_: object) -> KubeError:
        asked.append(verb)
        return Invalid(422, "Invalid", "too long", details={"causes": [{"field": "metadata.annotations"}]})

    cluster.fate = refuse
    with pytest.raises(Invalid):
        await records.write(seen(cluster), MINE)
    assert asked == ["patch"]


async def test_what_is_no_record_of_ours_is_not_written_over(
    cluster: SmallCluster, records: Records, witness: Witness
) -> None:
    cluster.put(PLUGINS, pod_group())
    old = seen(cluster)
    cluster.change(PLUGINS, "g", {"metadata": {"annotations": {names.GANG_RECORD: "open sesame"}}})
    with pytest.raises(LookAgain):
        await records.write(old, MINE)
    assert not witness.seen, "the watch tells what is wrong with it"


def mapped(home: Home | None = None, known: Record | None = None) -> GroupSeen:
    """A group without a PodGroup."""
    return msgspec.structs.replace(group_seen(pod("a", of=MAP), of=MAP, record=known), home=home)


@pytest.mark.parametrize("fate", [None, "lost"])
async def test_without_a_pod_group_it_is_a_configmap_of_ours(
    cluster: SmallCluster, records: Records, witness: Witness, fate: str | None
) -> None:
    cluster.fate = lambda *_: fate
    await records.write(mapped(), record((MAP, 1)))
    (stored,) = cluster.all(CONFIGMAPS)
    assert stored["metadata"]["labels"][names.GANG_RECORD] == "true"
    assert stored["metadata"]["annotations"] == {names.GANG_KEY: "alibaba/team/g"}
    assert parse(stored["data"][names.KEY_RECORD]).gangs == ((MAP, 1),)
    cluster.fate = lambda *_: None
    home, said = witness.seen[-1][1:]
    assert said is not None
    await records.write(mapped(home, said), msgspec.structs.replace(said, stage=Stage.CLOSED))
    await records.remove(MAP, witness.seen[-1][1])
    assert cluster.all(CONFIGMAPS) == []


async def test_a_configmap_that_another_has_made_first_is_looked_at(
    cluster: SmallCluster, records: Records, witness: Witness
) -> None:
    await records.write(mapped(), record((MAP, 1)))
    with pytest.raises(LookAgain):
        await records.write(mapped(), msgspec.structs.replace(record((MAP, 1)), at=1.0))
    said = witness.seen[-1][2]
    assert said is not None
    assert said.at == MINE.at


async def test_a_configmap_that_was_changed_meanwhile_is_not_removed(
    cluster: SmallCluster, records: Records, witness: Witness
) -> None:
    await records.write(mapped(), record((MAP, 1)))
    (stored,) = cluster.all(CONFIGMAPS)
    old = witness.seen[-1][1]
    cluster.change(CONFIGMAPS, stored["metadata"]["name"], {"data": {"more": "x"}})
    with pytest.raises((LookAgain, Conflict)):
        await records.remove(MAP, old)
    assert len(cluster.all(CONFIGMAPS)) == 1


async def test_whoever_begins_to_lead_reads_all_records(
    cluster: SmallCluster, records: Records, witness: Witness
) -> None:
    cluster.put(PLUGINS, pod_group())
    cluster.put(PLUGINS, pod_group("undecided"))
    await records.write(seen_of(cluster, "g"), MINE)
    await records.write(mapped(), record((MAP, 1)))
    witness.seen.clear()
    await records.catch_up([names.PLUGINS_GROUP, names.SIGS_GROUP])
    assert {told for told, _, _ in witness.seen} == {key(), MAP}
    assert all(said is not None for _, _, said in witness.seen)


async def test_an_api_server_in_trouble_is_asked_again(
    cluster: SmallCluster, records: Records, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may open groups without having read them, and there is nobody else to lead."""
    cluster.put(PLUGINS, pod_group())
    await records.write(seen_of(cluster, "g"), MINE)
    witness.seen.clear()
    troubles: list[KubeError] = [ServerError(503), Unreachable("gone"), Expired(410)]
    listed = cluster.list

    async def trouble(*args: Any, **more: Any) -> Any:
        if troubles:
            raise troubles.pop()
        return await listed(*args, **more)

    monkeypatch.setattr(cluster, "list", trouble)
    await records.catch_up([names.PLUGINS_GROUP])
    assert [told for told, _, _ in witness.seen] == [key()]


def seen_of(cluster: SmallCluster, name: str) -> GroupSeen:
    stored = next(it for it in cluster.all(PLUGINS) if it["metadata"]["name"] == name)
    return group_seen(pod("a"), group=stored)
