"""What is watched for groups, and what is reported where it cannot be listed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controllers.podgroups import informers as watches
from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
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
from jobset_gate.runtime.decoder import WatchProblem, WatchProblemKind
from jobset_gate.runtime.informer import AnyInformer, Informer, not_synced, wait_for_sync
from jobset_gate.settings import Groups
from tests.fakes.scripted_server import ScriptedServer, no_response, refusal

MEMBERS, RECORDS = (PODS, names.POD_GROUP_LABEL, ""), (CONFIGMAPS, f"{names.POD_GROUP_RECORD}=true", "")
ROOM = (PODS, f"!{names.POD_GROUP_LABEL}", "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")


def index() -> PodGroupCache:
    return PodGroupCache(Groups())


def watched(settings: Groups) -> set[tuple[Resource, str, str]]:
    """Each kind with its selectors."""
    kinds = watches.watch_sources(index(), settings, None)
    return {(it.resource, it.label_selector, it.field_selector) for it in kinds}


@asynccontextmanager
async def running(
    server: ScriptedServer, only: Resource, problems: list[WatchProblem]
) -> AsyncIterator[list[AnyInformer]]:
    """The informers of one kind."""
    async with Client(Access(server.url)) as client, asyncio.TaskGroup() as tasks:
        sources = [it for it in watches.watch_sources(index(), Groups(), None) if it.resource == only]
        chosen: list[AnyInformer] = [Informer(client, it, on_problem=problems.append) for it in sources]
        runs = [tasks.create_task(it.run()) for it in chosen]
        yield chosen
        for run in runs:
            run.cancel()


# --- What is watched ----------------------------------------------------------------


def test_with_all_ways_all_is_watched() -> None:
    kinds = {(it, "", "") for it in (PODGROUPS_KEP24, PODGROUPS_PLUGINS, PODGROUPS_SIGS, RESOURCEQUOTAS, NODES)}
    assert watched(Groups()) == {MEMBERS, RECORDS, ROOM, *kinds}


@pytest.mark.parametrize(
    ("way", "kinds"),
    [
        (Format.KEP_24, {PODGROUPS_KEP24, RESOURCEQUOTAS}),
        (Format.SCHEDULER_PLUGINS, {PODGROUPS_PLUGINS}),
        (Format.KOORDINATOR_POD_GROUP, {PODGROUPS_PLUGINS, PODGROUPS_SIGS}),
        (Format.KOORDINATOR_ANNOTATIONS, set()),
        (Format.ALIBABA, set()),
    ],
)
def test_of_a_way_that_is_switched_off_nothing_is_watched(way: Format, kinds: set[Resource]) -> None:
    assert watched(Groups(ways=(way,), capacity_check=CapacityCheck.OFF)) == {
        MEMBERS,
        RECORDS,
        *((it, "", "") for it in kinds),
    }


def test_of_one_namespace_only_nodes_and_what_is_bound_to_them_are_watched_everywhere() -> None:
    kinds = watches.watch_sources(index(), Groups(), "team")
    everywhere = {(it.resource, it.label_selector, it.field_selector) for it in kinds if it.namespace is None}
    assert everywhere == {(NODES, "", ""), (PODS, "", ROOM[2])}, "also those of other namespaces' groups"
    assert {it.namespace for it in kinds} == {None, "team"}


# --- Reports ----------------------------------------------------------------


@pytest.mark.parametrize(("kind", "status"), [(PODGROUPS_SIGS, 404), (PODGROUPS_SIGS, 403), (NODES, 404)])
async def test_only_a_crd_that_is_not_installed_is_no_trouble(
    server: ScriptedServer, kind: Resource, status: int
) -> None:
    """Where nodes are not found, whatever answers is no API server."""
    absent = (kind, status) == (PODGROUPS_SIGS, 404)
    problems: list[WatchProblem] = []
    server.lists.extend([refusal(status), no_response])
    async with running(server, kind, problems) as informers:
        await server.until(lambda: server.count("list") > 1)
        expected = f"not listed yet: {kind.plural} ({status}: scripted {status})"
        assert not_synced(informers, watches.POD_GROUP_RESOURCES) == ("" if absent else expected)
        await wait_for_sync(informers, watches.POD_GROUP_RESOURCES)
        assert informers[0].has_synced is not absent
    assert {it.kind for it in problems} == (set() if absent else {WatchProblemKind.LIST_FAILED})
