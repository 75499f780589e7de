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
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.informer import AnyInformer, not_synced, wait_for_sync
from jobset_gate.sources.table import JOBSET, LWS, START_GROUP
from tests.fakes.scripted_server import ScriptedServer, no_response, refusal


@asynccontextmanager
async def running(
    server: ScriptedServer, *kinds: Resource, sources: tuple[str, ...] = ("jobset",), problems: list[WatchProblem]
) -> AsyncIterator[list[AnyInformer]]:
    """The informers of these kinds."""
    async with Client(Access(server.url)) as client, asyncio.TaskGroup() as tasks:
        index = GangCache(lambda _: None, lambda _, __: None)
        every = watches.make_informers(
            client, index, lambda _: None, sources=sources, namespace=None, clock=time.time, on_problem=problems.append
        )
        chosen = [one for one in every if one.resource in kinds]
        runs = [tasks.create_task(one.run()) for one in chosen]
        yield chosen
        for run in runs:
            run.cancel()


JOBSETS_ONLY, WITH_JOBS = "jobset-gate.dev/gated=true", "jobset-gate.dev/gated in (true,job)"
GROUPS, ALONE = "jobset-gate.dev/gated=lws", "jobset-gate.dev/start-group,!jobset-gate.dev/gated"
SETS, PARENTS = "leaderworkerset.sigs.k8s.io/name", ""


@pytest.mark.parametrize(
    ("sources", "selectors", "of_lws"),
    [
        (("jobset",), [JOBSETS_ONLY], []),
        (("jobset", "job"), [WITH_JOBS], []),
        (("jobset", "startgroup"), [JOBSETS_ONLY, ALONE], []),
        (("jobset", "job", "lws"), [WITH_JOBS, GROUPS], [SETS, PARENTS]),
        (("jobset", "lws", "startgroup"), [JOBSETS_ONLY, GROUPS, ALONE], [SETS, PARENTS]),
    ],
    ids=" ".join,
)
async def test_pods_that_are_gated_alone_and_objects_of_lws_are_watched_if_their_source_is_enabled(
    server: ScriptedServer, sources: tuple[str, ...], selectors: list[str], of_lws: list[str]
) -> None:
    async with running(server, PODS, sources=sources, problems=[]) as informers:
        for informer in informers:
            await informer.wait_synced()
        assert [it.query["labelSelector"] for it in server.requests if it.verb == "list"] == selectors
        own = [JOBSET, *(it for it in (LWS, START_GROUP) if it.name in sources)]
        found = [watches.pods_of(informers, source) for source in own]
        assert found == informers, "the staleness of a gang is that of its own watch"
    async with running(server, STATEFUL_SETS, LEADER_WORKER_SETS, sources=sources, problems=[]) as informers:
        assert [it.label_selector for it in informers] == of_lws


@pytest.mark.parametrize("kind", [PODS, CRDS, JOBSETS, LEADER_WORKER_SETS])
@pytest.mark.parametrize("status", [403, 404])
async def test_what_cannot_be_listed_is_reported_and_waited_for_unless_it_is_not_installed_yet(
    server: ScriptedServer, kind: Resource, status: int
) -> None:
    """403: a ClusterRole lacks a verb, say. 404: custom resources come later; for others what answers is no API server.

    A LeaderWorkerSet says what follows a timeout, and a cluster without any has no problem.
    """
    absent = status == 404 and kind in (JOBSETS, LEADER_WORKER_SETS)
    problems: list[WatchProblem] = []
    server.lists.extend([refusal(status), no_response])
    sources = ("jobset", "lws") if kind == LEADER_WORKER_SETS else ("jobset",)
    async with running(server, kind, sources=sources, problems=problems) as informers:
        await server.until(lambda: server.count("list") > 1)
        expected = f"not listed yet: {kind.plural} ({status}: scripted {status})"
        assert not_synced(informers, watches.MAY_BE_ABSENT) == ("" if absent else expected)
        assert bool(problems) is not (absent and kind == LEADER_WORKER_SETS)
        await wait_for_sync(informers, watches.MAY_BE_ABSENT)
        assert informers[0].has_synced is not absent
        await informers[0].wait_synced()
        assert not_synced(informers, watches.MAY_BE_ABSENT) == ""


async def test_a_list_that_fails_later_does_not_make_the_replica_unready(server: ScriptedServer) -> None:
    """What is cached still serves, and a server's outage must not take the gate stream's address away too."""
    async with running(server, PODS, problems=[]) as informers:
        await server.watched()
        server.watches.append(refusal(410))
        server.lists.extend([refusal(500), no_response])
        server.close_watches()
        await server.until(lambda: server.count("list") > 2)
        assert informers[0].list_error
        assert not_synced(informers, watches.MAY_BE_ABSENT) == ""
