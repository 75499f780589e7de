"""Groups as they are seen: put together from pods and a PodGroup as they stand in the API, and a record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from jobset_gate import names
from jobset_gate.podgroups import generation, merge
from jobset_gate.podgroups.model import Flavor, MemberSource, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod, read_pod, read_pod_group
from tests.fakes.podgroups.sources import KEP24, Json

KEP24_KEY = key(flavor=Flavor.KEP_24)
RUNNING = {"phase": "Running"}


def timestamp(seconds: float) -> str:
    """As the API dates things."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def opened(name: str, generation: int = 1, *, at: float = TEN_O_CLOCK, meta: Json | None = None, **more: Any) -> Json:
    """A pod whose gate was removed in that generation."""
    notes = {names.POD_GROUP_OPENED: f"{generation} {timestamp(at)}"}
    return pod(name, gates=(), notes=notes, meta=meta, **more)


def bound(name: str, generation: int = 1, phase: str = "Running", **more: Any) -> Json:
    """The same with a node."""
    return opened(name, generation, node="n", status={"phase": phase}, **more)


def kep24_pod(name: str, *, group: str = "g", **more: Any) -> Json:
    return pod(name, of=key(group, Flavor.KEP_24), labels={}, notes={KEP24: group}, **more)


def group_snapshot(
    *pods: Json,
    of: PodGroupKey | None = None,
    group: Json | None = None,
    record: AdmissionRecord | None = None,
    api: str = "",
) -> GroupSnapshot:
    """What the index would show; `group` is its PodGroup."""
    mine = of or key()
    where = api or (names.KEP24_GROUP if mine.flavor is Flavor.KEP_24 else names.PLUGINS_GROUP)
    members = tuple(read_pod(it) for it in pods)
    home = None if group is None else read_pod_group(group, where)
    said = () if home is None or home.pod_group is None else (home.pod_group,)
    merged = merge.merge_group(mine, [_member(it) for it in members if it.membership is not None], said)
    merged = msgspec.structs.replace(merged, present=len(generation.MemberTable(members, record).present))
    return GroupSnapshot(
        group=merged,
        label=group_label(mine),
        members=members,
        created=TEN_O_CLOCK if home is None else home.created,
        record_ref=None if home is None else home.ref,
        record=record,
        pod_group_status={} if home is None else home.status,
        state="" if home is None else home.state,
        status_managers=() if home is None else home.status_managers,
    )


def _member(seen: MemberPod) -> MemberSource:
    assert seen.membership is not None
    return MemberSource(pod=seen.name, membership=seen.membership)
