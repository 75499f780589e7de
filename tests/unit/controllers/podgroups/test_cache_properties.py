"""Whatever the order in which informers deliver, and whenever they relist: the cache ends up as one filled at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.kube.resources import CONFIGMAPS, NODES, POD_GROUPS, PODS, Resource
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, encode_record
from tests.fakes.podgroups.filled_cache import FilledCache, InformerFeed, Name
from tests.fakes.podgroups.objects import config_map, key, node, pod, pod_group, record
from tests.fakes.podgroups.sources import KOORDINATOR, PLUGINS, Json, alibaba, koordinator

Draw = Callable[[st.SearchStrategy[Any]], Any]

NAMES = st.sampled_from(["g", "h"])
DESIGNS = st.sampled_from([Flavor.SCHEDULER_PLUGINS, Flavor.KOORDINATOR, Flavor.ALIBABA])
NUMBERS = st.integers(0, 3)
OPENED = {names.POD_GROUP_OPENED: "1 2026-08-01T10:00:05.000Z"}
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
KEYS = [key(name, design) for name in "gh" for design in Flavor]


@st.composite
def pods(draw: Draw, crowded: bool) -> Json:
    """Held, opened, bound, done, never taken, moved; of three designs, or a few pods of one group over and over."""
    group = key() if crowded else key(draw(NAMES), draw(DESIGNS))
    said = key(draw(NAMES), group.flavor) if not crowded and draw(NUMBERS) == 0 else group
    state: Json = draw(
        st.sampled_from(
            [
                {},
                {"gates": (), "notes": OPENED},
                {"gates": (), "notes": OPENED, "node": "n0"},
                {"gates": (), "notes": OPENED, "node": "n1", "status": {"phase": "Succeeded"}},
                {"gates": (), "held": "", "node": "n0"},
                {"gates": (), "held": ""},
                {"meta": {"deletionTimestamp": "2026-08-01T10:00:00Z"}},
                {"status": {"phase": "Failed"}},
            ]
        )
    )
    notes, labels = _words(said, str(draw(st.integers(2, 3))))
    made: Json = {"held": group_label(group)} | state | {"notes": notes | state.get("notes", {}), "labels": labels}
    return pod(f"p{draw(NUMBERS) // (2 if crowded else 1)}", of=group, **made)


def _words(group: PodGroupKey, minimum: str) -> tuple[Json, Json]:
    """Annotations and labels of a pod."""
    if group.flavor is Flavor.KOORDINATOR:
        by_label = minimum == "2"
        listed = koordinator(group.name, min_available=minimum, groups='["team/g","team/h"]')
        return ({}, {KOORDINATOR: group.name}) if by_label else (listed, {})
    return {}, {PLUGINS: group.name} if group.flavor is Flavor.SCHEDULER_PLUGINS else alibaba(group.name, minimum)


@st.composite
def records(draw: Draw) -> AdmissionRecord:
    """Of one gang, or of both of Koordinator's."""
    if draw(st.booleans()):
        gangs = [(key(name, Flavor.KOORDINATOR), draw(NUMBERS)) for name in "gh"]
    else:
        gangs = [(key(draw(NAMES), draw(DESIGNS)), draw(NUMBERS))]
    return record(*gangs, stage=draw(st.sampled_from(AdmissionState)))


@st.composite
def record_objects(draw: Draw) -> tuple[Resource, Json]:
    """A PodGroup of any kind or a ConfigMap, with a record or something else on it."""
    text = draw(st.one_of(records().map(encode_record), st.just("{"), st.none()))
    if draw(NUMBERS) == 0:
        return CONFIGMAPS, config_map(key(draw(NAMES), draw(DESIGNS)), text or "{}")
    body = pod_group(draw(NAMES), notes={} if text is None else {names.POD_GROUP_RECORD: text})
    return POD_GROUPS[draw(st.sampled_from(sorted(POD_GROUPS)))], body | {
        "spec": {"minMember": draw(st.integers(1, 3))}
    }


NODE = st.builds(lambda number, cpu: node(f"n{number}", cpu=str(cpu)), st.integers(0, 1), st.integers(1, 2))


def _steps(crowded: bool) -> st.SearchStrategy[list[tuple[str, Any]]]:
    return st.lists(
        st.one_of(
            st.tuples(st.just("put"), pods(crowded).map(lambda it: (PODS, it))),
            st.tuples(st.just("put"), record_objects()),
            st.tuples(st.just("put"), NODE.map(lambda it: (NODES, it))),
            st.tuples(st.sampled_from(["remove", "deliver", "deliver all", "relist", "write"]), st.integers(0, 99)),
        ),
        max_size=40,
    )


STEPS = st.booleans().flatmap(_steps)


class LaggingCluster:
    """Objects with versions, and informers that deliver them at any time."""

    def __init__(self) -> None:
        self.made = FilledCache()
        self.stored: dict[tuple[Resource, Name], Json] = {}
        self.undelivered: list[deque[tuple[str, Json]]] = [deque() for _ in self.made.feeds]
        self.version = 1000

    def put(self, what: tuple[Resource, Json]) -> None:
        resource, body = what
        meta = body["metadata"]
        place = resource, (meta.get("namespace", ""), meta["name"])
        known = self.stored.get(place)
        uid = known["metadata"]["uid"] if known is not None else f"{meta['name']}-{self.version}"
        self._happens("put", place, body | {"metadata": meta | {"uid": uid}})

    def remove(self, number: int) -> None:
        if self.stored:
            place = list(self.stored)[number % len(self.stored)]
            self._happens("remove", place, self.stored[place])

    def write(self, number: int) -> None:
        """A decision of ours, known at once."""
        places = [it for it in self.stored if it[0] == CONFIGMAPS or it[0] in POD_GROUPS.values()]
        if not places:
            return
        place = places[number % len(places)]
        body, (resource, (_, name)) = self.stored[place], place
        design = Flavor.KOORDINATOR if resource == POD_GROUPS[names.SIGS_GROUP] else Flavor.SCHEDULER_PLUGINS
        if resource == CONFIGMAPS:
            of = next(it for it in KEYS if name.endswith(group_label(it)))
            body = body | {"data": {names.KEY_RECORD: encode_record(record((of, number)))}}
        else:
            notes = {names.POD_GROUP_RECORD: encode_record(record((key(name, design), number)))}
            body = body | {"metadata": body["metadata"] | {"annotations": notes}}
        self._happens("put", place, body)
        self.made.respond(resource, self.stored[place])

    def deliver(self, number: int) -> None:
        which = number % len(self.undelivered)
        if self.undelivered[which]:
            self._deliver(which)

    def deliver_all(self, _: int) -> None:
        for which, events in enumerate(self.undelivered):
            while events:
                self._deliver(which)

    def relist(self, number: int) -> None:
        which = number % len(self.undelivered)
        self.undelivered[which].clear()
        self._list(self.made.feeds[which])

    def from_scratch(self) -> FilledCache:
        """A cache that is filled by one list of each kind."""
        fresh = FilledCache()
        for feed in fresh.feeds:
            self._list(feed)
        return fresh

    def _deliver(self, which: int) -> None:
        what, body = self.undelivered[which].popleft()
        getattr(self.made.feeds[which], what)(body)
        deque(map(self.made.cache.group, self.made.cache.keys()), 0)  # what is merged by now must not stay as it is

    def _list(self, feed: InformerFeed) -> None:
        bodies = [body for (resource, _), body in self.stored.items() if resource == feed.kind.resource]
        feed.relist(bodies, str(self.version))

    def _happens(self, what: str, place: tuple[Resource, Name], body: Json) -> None:
        self.version += 1
        stamped = body | {"metadata": body["metadata"] | {"resourceVersion": str(self.version)}}
        if what == "put":
            self.stored[place] = stamped
        else:
            del self.stored[place]
        for feed, events in zip(self.made.feeds, self.undelivered, strict=True):
            if feed.kind.resource == place[0]:
                events.append((what, stamped))


@settings(max_examples=2_000 if DEEP else 50)
@given(STEPS)
def test_however_informers_deliver_the_cache_equals_one_filled_at_once(steps: list[tuple[str, Any]]) -> None:
    """And every change of a group, or of capacity, has its effect."""
    cluster = LaggingCluster()
    for what, how in steps:
        step(cluster, what, how)
    cluster.deliver_all(0)
    known, fresh = cluster.made.cache, cluster.from_scratch().cache
    for of in KEYS:
        seen = known.snapshot(of)
        if seen is not None and fresh.snapshot(of) is None:
            # The pod that named the group is gone; a new cache cannot know it.
            assert seen.members
            assert all(it.moved for it in seen.members)
            continue
        assert seen == fresh.snapshot(of)
        assert known.group(of) == fresh.group(of)
    assert known.nodes.node_infos() == fresh.nodes.node_infos()
    for (resource, _), body in cluster.stored.items():
        if resource == PODS:
            uid = body["metadata"]["uid"]
            assert known.nodes.has_pod(uid) == fresh.nodes.has_pod(uid)


def step(cluster: LaggingCluster, what: str, how: Any) -> None:
    """One step, with its effects."""
    known = cluster.made.cache
    before, nodes = {of: known.snapshot(of) for of in KEYS}, known.nodes.node_infos()
    cluster.made.take_calls()
    getattr(cluster, what.replace(" ", "_"))(how)
    changed, urgent = cluster.made.take_calls()
    for of in KEYS:
        # Reconciler and scheduler read it then, the urgent ones at once.
        assert visible(known.snapshot(of)) == visible(before[of]) or of in changed
    assert known.nodes.node_infos() == nodes or None in urgent


def visible(seen: Any) -> Any:
    """All but the version."""
    if seen is None or seen.record_ref is None:
        return seen
    return msgspec.structs.replace(seen, record_ref=msgspec.structs.replace(seen.record_ref, resource_version=""))
