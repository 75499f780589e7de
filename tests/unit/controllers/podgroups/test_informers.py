"""What is watched for groups, and what need not be there (tests/unit/controllers/barrier/test_informers.py)."""

from __future__ import annotations

import pytest

from controllers.podgroups import informers as watches
from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.kube.resources import (
    CONFIGMAPS,
    NODES,
    PODGROUPS_KEP24,
    PODGROUPS_PLUGINS,
    PODGROUPS_SIGS,
    PODS,
    RESOURCEQUOTAS,
    Resource,
)
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.runtime.informer import AnyWatchSource
from jobset_gate.settings import Groups

MEMBERS, RECORDS = (PODS, names.POD_GROUP_LABEL, ""), (CONFIGMAPS, f"{names.POD_GROUP_RECORD}=true", "")
ROOM = (PODS, f"!{names.POD_GROUP_LABEL}", "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")


def sources(settings: Groups, namespace: str | None = None) -> list[AnyWatchSource]:
    return watches.watch_sources(PodGroupCache(settings), settings, namespace)


def watched(settings: Groups) -> set[tuple[Resource, str, str]]:
    """Each kind with its selectors."""
    return {(it.resource, it.label_selector, it.field_selector) for it in sources(settings)}


POD_GROUPS = {PODGROUPS_KEP24, PODGROUPS_PLUGINS, PODGROUPS_SIGS}


@pytest.mark.parametrize(
    ("ways", "kinds"),
    [
        ((Format.KEP_24,), {PODGROUPS_KEP24, RESOURCEQUOTAS}),
        ((Format.SCHEDULER_PLUGINS,), {PODGROUPS_PLUGINS}),
        ((Format.KOORDINATOR_POD_GROUP,), {PODGROUPS_PLUGINS, PODGROUPS_SIGS}),
        ((Format.KOORDINATOR_ANNOTATIONS, Format.ALIBABA), set()),
        (tuple(Format), {*POD_GROUPS, RESOURCEQUOTAS}),
    ],
)
def test_of_a_way_that_is_switched_off_nothing_is_watched(ways: tuple[Format, ...], kinds: set[Resource]) -> None:
    plain = {(it, "", "") for it in kinds}
    assert watched(Groups(ways=ways, capacity_check=CapacityCheck.OFF)) == {MEMBERS, RECORDS, *plain}
    assert watched(Groups(ways=ways)) == {MEMBERS, RECORDS, *plain, ROOM, (NODES, "", "")}


def test_pod_groups_alone_need_not_be_installed() -> None:
    absent = {it.resource for it in sources(Groups()) if it.may_be_absent}
    assert absent == set(watches.POD_GROUP_RESOURCES) == POD_GROUPS


def test_of_one_namespace_only_nodes_and_what_is_bound_to_them_are_watched_everywhere() -> None:
    kinds = sources(Groups(), "team")
    everywhere = {(it.resource, it.label_selector, it.field_selector) for it in kinds if it.namespace is None}
    assert everywhere == {(NODES, "", ""), (PODS, "", ROOM[2])}, "also those of other namespaces' groups"
    assert {it.namespace for it in kinds} == {None, "team"}
