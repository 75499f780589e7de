"""What is watched, and what is reported of failed lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controllers.barrier import informers as watches
from controllers.barrier.cache import GangCache
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS, JOBSETS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Resource
from jobset_gate.runtime.decoder import OnWatchProblem, WatchProblem
from jobset_gate.runtime.informer import AnyInformer, not_synced, wait_for_sync
from jobset_gate.sources.table import JOBSET, LWS, START_GROUP
from tests.fakes.scripted_server import ScriptedServer, no_response, refusal


@asynccontextmanager
async def running(
    server: ScriptedServer,
    only: Resource,
    sources: tuple[str, ...] = ("jobset",),
    on_problem: OnWatchProblem = lambda _: None,
) -> AsyncIterator[list[AnyInformer]]:
    """All informers, whose this one runs."""
    async with Client(Access(server.url)) as client, asyncio.TaskGroup() as tasks:
        index = GangCache(lambda _: None, lambda _, __: None)
        every = watches.make_informers(
            client,
            index,
            lambda _: None,
            sources=sources,
            namespace=None,
            clock=time.time,
            on_problem=on_problem,
        )
        chosen = [one for one in every if one.resource == only]
        runs = [tasks.create_task(one.run()) for one in chosen]
        yield chosen
        for run in runs:
            run.cancel()


GROUPS = "jobset-gate.dev/gated=lws"
ALONE = "jobset-gate.dev/start-group,!jobset-gate.dev/gated"


@pytest.mark.parametrize(
    ("sources", "selectors"),
    [
        (("jobset",), ["jobset-gate.dev/gated=true"]),
        (("jobset", "job"), ["jobset-gate.dev/gated in (true,job)"]),
        (("jobset", "startgroup"), ["jobset-gate.dev/gated=true", ALONE]),
        (("jobset", "job", "lws"), ["jobset-gate.dev/gated in (true,job)", GROUPS]),
        (("jobset", "lws", "startgroup"), ["jobset-gate.dev/gated=true", GROUPS, ALONE]),
    ],
    ids=" ".join,
)
async def test_pods_of_start_groups_have_a_watch_of_their_own_if_they_are_enabled(
    server: ScriptedServer, sources: tuple[str, ...], selectors: list[str]
) -> None:
    async with running(server, PODS, sources) as informers:
        for informer in informers:
            await informer.wait_synced()
        assert [it.query["labelSelector"] for it in server.requests if it.verb == "list"] == selectors
        own = [JOBSET, *(it for it in (LWS, START_GROUP) if it.name in sources)]
        found = [watches.pods_of(informers, source) for source in own]
        assert found == informers, "the staleness of a gang is that of its own watch"


@pytest.mark.parametrize("kind", [PODS, CRDS, JOBSETS])
async def test_a_refusal_is_reported_in_the_servers_words_until_it_is_lifted(
    server: ScriptedServer, kind: Resource
) -> None:
    """Such as a ClusterRole that lacks a verb, or a Role where all namespaces are to be watched."""
    server.lists.extend([refusal(403), no_response])
    async with running(server, kind) as informers:
        await server.until(lambda: server.count("list") > 1)
        assert not_synced(informers, watches.MAY_BE_ABSENT) == f"not listed yet: {kind.plural} (403: scripted 403)"
        await informers[0].wait_synced()
        assert not_synced(informers, watches.MAY_BE_ABSENT) == ""


@pytest.mark.parametrize("kind", [JOBSETS, LEADER_WORKER_SETS])
async def test_what_has_custom_resources_need_not_be_installed_yet(server: ScriptedServer, kind: Resource) -> None:
    server.lists.extend([refusal(404), no_response])
    async with running(server, kind, ("jobset", "lws")) as informers:
        await server.until(lambda: server.count("list") > 1)
        assert not_synced(informers, watches.MAY_BE_ABSENT) == ""
        await wait_for_sync(informers, watches.MAY_BE_ABSENT)


async def test_a_cluster_without_leader_worker_sets_has_no_problem(server: ScriptedServer) -> None:
    problems: list[WatchProblem] = []
    server.lists.extend([refusal(404), no_response])
    async with running(server, LEADER_WORKER_SETS, ("jobset", "lws"), problems.append):
        await server.until(lambda: server.count("list") > 1)
    assert problems == []


async def test_a_leader_worker_set_is_waited_for_since_it_says_what_follows_a_timeout(server: ScriptedServer) -> None:
    server.lists.extend([refusal(403), no_response])
    async with running(server, LEADER_WORKER_SETS, ("jobset", "lws")) as informers:
        waiting = asyncio.create_task(wait_for_sync(informers, watches.MAY_BE_ABSENT))
        await server.until(lambda: server.count("list") > 1)
        assert not waiting.done()
        await waiting
        assert informers[0].has_synced


@pytest.mark.parametrize(
    ("sources", "kinds"),
    [
        (("jobset",), []),
        (("jobset", "job", "startgroup"), []),
        (("jobset", "lws"), [(STATEFUL_SETS, "leaderworkerset.sigs.k8s.io/name"), (LEADER_WORKER_SETS, "")]),
    ],
    ids=["jobset", "others", "lws"],
)
async def test_objects_of_lws_are_watched_if_it_is_enabled(
    server: ScriptedServer, sources: tuple[str, ...], kinds: list[tuple[Resource, str]]
) -> None:
    found = [
        (one.resource, one.label_selector)
        for kind in (STATEFUL_SETS, LEADER_WORKER_SETS)
        for one in await all_of(server, kind, sources)
    ]
    assert found == kinds


async def all_of(server: ScriptedServer, kind: Resource, sources: tuple[str, ...]) -> list[AnyInformer]:
    async with running(server, kind, sources) as informers:
        return informers


async def test_pods_that_nobody_has_heard_of_are_missing_all_the_same(server: ScriptedServer) -> None:
    """Whatever answers there is no API server."""
    server.lists.extend([refusal(404), no_response])
    async with running(server, PODS) as informers:
        await server.until(lambda: server.count("list") > 1)
        assert not_synced(informers, watches.MAY_BE_ABSENT) == "not listed yet: pods (404: scripted 404)"


async def test_a_list_that_fails_later_does_not_make_the_replica_unready(server: ScriptedServer) -> None:
    """What is cached still serves, and a server's outage must not take the gate stream's address away too."""
    async with running(server, PODS) as informers:
        await server.watched()
        server.watches.append(refusal(410))
        server.lists.extend([refusal(500), no_response])
        server.close_watches()
        await server.until(lambda: server.count("list") > 2)
        assert informers[0].list_error
        assert not_synced(informers, watches.MAY_BE_ABSENT) == ""
