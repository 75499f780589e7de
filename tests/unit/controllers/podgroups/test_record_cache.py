"""Records: which one decides on a group, where the next is written, and what our own writes have shown."""

from __future__ import annotations

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.kube.resources import CONFIGMAPS, PODGROUPS_PLUGINS
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, encode_record
from jobset_gate.settings import Groups
from tests.fakes.podgroups.filled_cache import FilledCache
from tests.fakes.podgroups.objects import config_map, key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound
from tests.fakes.podgroups.sources import KOORDINATOR, PLUGINS, Json, alibaba, koordinator, problem_lines
from tests.fakes.present import present

G = key()
KOORD = key(flavor=Flavor.KOORDINATOR)
ALI = key(flavor=Flavor.ALIBABA)


def koord(name: str, namespace: str = "team") -> PodGroupKey:
    return key(name, Flavor.KOORDINATOR, namespace)


def gang(name: str, namespace: str = "team", *, gangs: str | None = None) -> Json:
    """A pod of one of Koordinator's gangs."""
    said = {"min_available": "1"} | ({} if gangs is None else {"groups": gangs})
    return pod(f"{name}-0", of=koord(name, namespace), labels={}, notes=koordinator(name, **said), namespace=namespace)


def recorded(decided: AdmissionRecord, **more: str) -> Json:
    """A PodGroup with a record on it."""
    return pod_group(notes={names.POD_GROUP_RECORD: encode_record(decided)}, **more)


# --- Which record holds ----------------------------------------------------------------


def test_a_group_with_nothing_but_its_record_is_still_there() -> None:
    """Its owners may wait to be resumed, or its back-off may not be over."""
    made = FilledCache()
    decided = record((ALI, 4), stage=AdmissionState.CLOSED)
    body = config_map(ALI, decided)
    made.records(body)
    seen = made.snapshot(ALI)
    assert made.keys() == {ALI}
    assert (seen.record, seen.members) == (decided, ())
    assert (seen.group.valid, seen.group.minimum, seen.group.gathered) == (True, 3, False)
    made.remove(CONFIGMAPS, config_map(ALI, decided, version="6"))
    assert (made.keys(), made.cache._members.entries()) == (set(), []), "nothing is kept of it"


def test_a_pod_group_that_comes_later_is_the_home_and_the_earlier_record_still_holds() -> None:
    made = FilledCache().pods(gang("g"))
    made.records(config_map(KOORD, record((KOORD, 3))))
    made.pod_groups(pod_group(), api=names.SIGS_GROUP)
    assert made.ref(KOORD).api == names.SIGS_GROUP
    assert made.snapshot(KOORD).generation == 3
    made.pod_groups(recorded(record((KOORD, 4)), version="6"), api=names.SIGS_GROUP)
    assert made.snapshot(KOORD).generation == 4


def test_a_decision_on_a_gang_group_holds_for_all_of_its_gangs_from_the_first_ones_home() -> None:
    made = FilledCache().pods(gang("a"), gang("b"))
    first = record((koord("a"), 1), (koord("b"), 7))
    made.take_calls()
    made.records(config_map(koord("a"), first))
    assert made.take_calls() == ({koord("a"), koord("b")},) * 2
    assert (made.snapshot(koord("a")).generation, made.snapshot(koord("b")).generation) == (1, 7)
    made.records(config_map(koord("b"), first, uid="uid-b"))
    closed = msgspec.structs.replace(first, stage=AdmissionState.CLOSED)
    made.records(config_map(koord("a"), closed, version="9"))
    for name in "ab":
        held = present(made.snapshot(koord(name)).record)
        assert held.stage is AdmissionState.CLOSED, "what stands on the first one's home, not the copy"


JOINED = '["team/a","victims/b"]'


@pytest.mark.parametrize(("across", "joined"), [(False, JOINED), (True, None), (True, JOINED)])
def test_a_record_decides_in_another_namespace_only_if_a_setting_and_the_group_allow_it(
    across: bool, joined: str | None
) -> None:
    """A user who may write ConfigMaps in one namespace could admit or evict every group of the cluster."""
    made = FilledCache(Groups(across_namespaces=across))
    victim = koord("b", "victims")
    made.pods(gang("b", "victims", gangs=joined))
    made.records(config_map(koord("a"), record((koord("a"), 9), (victim, 9))))
    assert (made.snapshot(victim).record is not None) is (across and joined is not None)
    own = present(made.snapshot(koord("a")).record)
    assert len(own.gangs) == (2 if across else 1)
    later = gang("b", "victims", gangs=JOINED)
    later["metadata"]["resourceVersion"] = "101"
    made.pods(later)
    assert (made.snapshot(victim).generation == 9) is across, "from when its pods say so"


def test_a_pod_group_created_from_a_copy_does_not_have_the_record_of_the_other() -> None:
    made = FilledCache().pod_groups(recorded(record((key("other"), 6))))
    assert made.snapshot(G).record is None
    made.pod_groups(recorded(record((G, 6), home_uid="of-the-one-before"), version="6"))
    assert made.snapshot(G).record is None
    made.pod_groups(recorded(record((G, 6), home_uid="uid-g"), version="8"))
    assert made.snapshot(G).generation == 6


def test_an_unreadable_record_holds_its_group_and_is_reported() -> None:
    made = FilledCache().pods(*map(pod, "abc"), pod("d", of=key("h"), labels={PLUGINS: "h"}))
    made.pod_groups(pod_group(notes={names.POD_GROUP_RECORD: "{"}), pod_group("h"))
    assert (made.group(G).gathered, made.group(G).valid) == (True, False)
    (problem,) = problem_lines(made.group(G).problems)
    assert problem.startswith(f"metadata.annotations[{names.POD_GROUP_RECORD}]: ")
    assert made.group(key("h")).valid
    made.pod_groups(pod_group(version="6"))
    assert made.group(G).valid


def test_which_ended_pods_count_is_decided_again_for_another_record() -> None:
    made = FilledCache().pods(bound("a", phase="Succeeded")).pod_groups(pod_group())
    assert made.group(G).present == 1
    made.pod_groups(recorded(record((G, 3), stage=AdmissionState.CLOSED), version="6"))
    assert made.group(G).present == 0


# --- Where the next one is written ----------------------------------------------------------------


def test_two_designs_that_share_a_pod_group_do_not_overwrite_each_others_records() -> None:
    made = FilledCache().pods(pod("a"), pod("k", of=KOORD, labels={KOORDINATOR: "g"}))
    made.pod_groups(pod_group())
    assert made.ref(G) == made.ref(KOORD), "the first to be admitted has it"
    made.pod_groups(recorded(record((KOORD, 1)), version="6"))
    assert made.ref(KOORD).api == names.PLUGINS_GROUP
    assert (made.snapshot(G).record_ref, made.snapshot(G).record) == (None, None)
    made.records(config_map(G, record((G, 1))))
    assert (made.ref(G).api, made.snapshot(G).generation) == ("", 1)


# --- Ahead of the informer (order and deletions: tests/unit/runtime/test_store.py) -----


def test_what_our_write_has_stored_is_known_at_once_and_its_event_is_no_news() -> None:
    made = FilledCache().pods(pod("a"), pod("b", of=key("h"), labels={PLUGINS: "h"})).pod_groups(pod_group())
    made.take_calls()
    body = recorded(record((G, 1)), version="8")
    made.respond(PODGROUPS_PLUGINS, body)
    assert (made.snapshot(G).record, made.ref(G).resource_version) == (record((G, 1)), "8")
    made.take_calls()
    made.pod_groups(body)
    made.pod_groups(recorded(record((G, 1)), version="9"))
    made.pod_groups(pod_group(version="7"))
    assert made.take_calls() == (set(), set())
    assert made.snapshot(G).generation == 1


def test_a_record_object_that_a_read_has_not_found_is_dropped() -> None:
    made = FilledCache().pods(pod("a", of=ALI, labels=alibaba())).records(config_map(ALI, record((ALI, 1))))
    made.cache.set_record_object(("", "team", made.ref(ALI).name), None)
    assert (made.snapshot(ALI).record_ref, made.snapshot(ALI).record) == (None, None)


def test_a_pod_group_that_was_recreated_has_nothing_of_the_one_before() -> None:
    made = FilledCache().pods(pod("a")).pod_groups(pod_group())
    made.respond(PODGROUPS_PLUGINS, recorded(record((G, 1)), version="8"))
    made.pod_groups(pod_group(uid="new", version="9"))
    assert (made.ref(G).uid, made.snapshot(G).record) == ("new", None)
