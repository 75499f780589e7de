"""Which changes of a group are looked at at once, and which at leisure because nothing can come of them yet."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.podgroups import informers
from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState, encode_record
from jobset_gate.settings import Groups
from tests.fakes.podgroups.filled_cache import FilledCache, InformerFeed
from tests.fakes.podgroups.objects import key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound, opened
from tests.fakes.podgroups.sources import Json, koordinator

G = key()


class RecordingCache(FilledCache):
    """An index that tells what can wait from what cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[tuple[str, PodGroupKey | None]] = []
        self.index = PodGroupCache(
            self._say("look"),
            self._say("changed"),
            Groups(),
            gathers=self._say("gathers"),
            goes_on=self._say("goes on"),
            placed=self._say("placed"),
        )
        self.feeds = [InformerFeed(kind) for kind in informers.watch_sources(self.index, self.settings, None)]

    def _say(self, what: str) -> Any:
        return lambda key: self.words.append((what, key))

    def heard(self, of: PodGroupKey = G) -> set[str]:
        """What was said of a group since the last time."""
        self.index.snapshot(of)
        found = {what for what, key in self.words if key == of}
        self.words.clear()
        return found


def versioned(body: Json, version: int) -> Json:
    return body | {"metadata": body["metadata"] | {"resourceVersion": str(version)}}


def decided(made: RecordingCache, *pods: Json, **more: Any) -> None:
    """A group that was opened with these pods."""
    text = encode_record(record((G, 1), **more))
    made.pod_groups(pod_group(notes={names.POD_GROUP_RECORD: text}))
    made.pods(*pods)
    made.heard()


def test_of_a_group_that_lacks_others_one_more_is_looked_at_at_leisure_and_the_last_one_at_once() -> None:
    made = RecordingCache()
    made.pod_groups(pod_group())
    made.pods(pod("a"))
    assert "changed" in made.heard()
    made.pods(pod("b"))
    assert made.heard() == {"gathers"}
    made.pods(pod("c"))
    assert "changed" in made.heard()
    made.pods(pod("d"))
    assert "changed" in made.heard(), "who comes on top is opened with them"


def test_a_pod_that_goes_is_no_progress() -> None:
    made = RecordingCache()
    made.pod_groups(pod_group())
    made.pods(pod("a"), pod("b"))
    made.heard()
    made.remove(PODS, versioned(pod("b"), 300))
    assert made.heard() == {"look", "changed"}


def test_without_its_pod_group_or_with_a_fault_every_pod_counts() -> None:
    made = RecordingCache()
    made.pods(pod("a"))
    made.heard()
    made.pods(pod("b"))
    assert "changed" in made.heard()
    made.pod_groups(pod_group(spec={"minMember": -1}))
    made.heard()
    made.pods(pod("c"))
    assert "changed" in made.heard()


def test_the_other_gangs_of_a_gang_group_hear_of_every_pod() -> None:
    made = RecordingCache()
    a, b = key("a", Flavor.KOORDINATOR), key("b", Flavor.KOORDINATOR)
    said = koordinator("a", min_available="3", groups='["team/a","team/b"]')
    for number in range(2):
        made.heard(a)
        made.pods(pod(f"a{number}", of=a, labels={}, notes=said))
    assert {("look", b), ("changed", a)} <= set(made.words)


def test_while_an_open_group_is_placed_it_is_looked_at_at_leisure_and_at_once_when_its_minimum_is_bound() -> None:
    made = RecordingCache()
    decided(made, pod("a"), pod("b"), pod("c"))
    for number, name in enumerate("abc"):
        made.pods(versioned(opened(name), 200 + number))
    assert made.heard() == {"goes on", "placed"}
    made.pods(versioned(bound("a"), 210), versioned(bound("b"), 211))
    assert made.heard() == {"goes on", "placed"}
    made.pods(versioned(bound("c"), 212))
    assert made.heard() == {"look", "placed"}


def test_an_open_group_that_loses_or_gets_a_pod_is_looked_at_at_once() -> None:
    made = RecordingCache()
    decided(made, bound("a"), opened("b"), opened("c"))
    made.remove(PODS, versioned(opened("b"), 300))
    assert made.heard() == {"look", "changed"}
    made.pods(pod("d"))
    assert made.heard() == {"look", "changed"}
    made.pods(versioned(opened("c", status={"phase": "Failed"}), 301))
    assert made.heard() == {"look", "changed"}
    deleting = bound("a")
    deleting["metadata"] |= {"deletionTimestamp": "2026-08-01T10:00:00Z", "resourceVersion": "303"}
    made.pods(deleting)
    assert made.heard() == {"look", "changed"}


@pytest.mark.parametrize("stage", [AdmissionState.ROLLING_BACK, AdmissionState.CLOSED])
def test_of_a_group_that_is_taken_back_nothing_can_wait(stage: AdmissionState) -> None:
    made = RecordingCache()
    decided(made, opened("a"), stage=stage)
    made.pods(versioned(bound("a"), 200))
    assert made.heard() == {"look", "changed"}
    made.pods(pod("b"))
    assert made.heard() == {"look", "changed"}


def test_nor_of_one_whose_pods_ask_for_more_or_that_the_scheduler_places_by_itself() -> None:
    made = RecordingCache()
    decided(made, opened("a"))
    more = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}
    made.pods(versioned(opened("a", spec=more), 200))
    assert made.heard() == {"look", "changed"}
    native = RecordingCache()
    text = encode_record(record((G, 1))).replace(f'"{AdmissionMode.FIT.value}"', f'"{AdmissionMode.NATIVE.value}"')
    native.pod_groups(pod_group(notes={names.POD_GROUP_RECORD: text}))
    native.pods(pod("a"))
    native.heard()
    native.pods(versioned(opened("a"), 200))
    assert "look" in native.heard()


def test_the_echo_of_a_decision_wakes_nobody() -> None:
    made = RecordingCache()
    made.pod_groups(pod_group())
    made.pods(pod("a"))
    made.heard()
    home = made.snapshot(G).record_ref
    assert home is not None
    decision = record((G, 1))
    newer = type(home)(api=home.api, namespace=home.namespace, name=home.name, uid=home.uid, resource_version="50")
    made.index.record_observed(G, newer, decision)
    assert made.heard() == {"goes on", "changed"}
    made.pod_groups(pod_group(version="50", notes={names.POD_GROUP_RECORD: encode_record(decision)}))
    assert made.heard() == set()
