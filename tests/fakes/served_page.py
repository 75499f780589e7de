"""A page that is served over HTTP on an index that the test fills: no cluster, no Manager."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from prometheus_client import CollectorRegistry

from controllers.barrier.cache import GangCache
from controllers.podgroups.cache import PodGroupCache
from controllers.statuspage.middleware import PageOptions
from controllers.statuspage.server import StatusPage
from controllers.statuspage.source import Freshness, PageSource
from jobset_gate import names
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, JobSeen, PodSeen, VerdictKind, WorkloadSeen
from jobset_gate.podgroups.model import PodGroupKey as GroupKey
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.settings import Groups
from tests.fakes import gangs
from tests.fakes.background import in_background
from tests.fakes.eventually import PATIENCE
from tests.fakes.review_api import FakeReviewApi


class FakePodGroups(PodGroupCache):
    """The cache of pod groups, as far as the page reads it."""

    def __init__(self) -> None:
        super().__init__(Groups())
        self.seen: dict[GroupKey, GroupSnapshot] = {}

    def keys(self) -> Any:
        return iter(list(self.seen))

    def snapshot(self, key: GroupKey) -> GroupSnapshot | None:
        return self.seen.get(key)

    def put(self, *groups: GroupSnapshot) -> None:
        self.seen.update({it.group.key: it for it in groups})


@dataclass
class ServedPage:
    """`put` fills the cache; `fresh` and `now` are what the page gets from the controller."""

    api: FakeReviewApi
    index: GangCache
    page: StatusPage
    groups: FakePodGroups
    fresh: Freshness = field(default_factory=Freshness)
    now: Callable[[], float] = time.time

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    elapsed: float = 0.0
    """The page's monotonic clock: it stands until a test moves it."""

    def monotonic(self) -> float:
        """The clock of caches, sessions and reviews."""
        return self.elapsed

    @property
    def url(self) -> str:
        return self.page.url

    def put(self, jobset: WorkloadSeen, *pods: PodSeen, gate: ConfigMapSeen | None = None) -> GangKey:
        """This gang is there now, with these pods (and nothing else of it)."""
        key = jobset.key
        before = self.index.peek(key)
        self.index.on_workload(ObjectChange(key[:2], before.workload if before else None, jobset))
        self._jobs(key, jobset, before.jobs if before else ())
        known = {it.uid: it for it in before.pods} if before else {}
        for pod in pods:
            mine = msgspec.structs.replace(
                pod,
                source=key.source,
                namespace=key.namespace,
                gang=key.name,
                workload_uid=jobset.uid,
                uid=f"{jobset.uid}-{pod.uid}",
            )
            self.index.on_pod(ObjectChange((key.namespace, mine.name), known.pop(mine.uid, None), mine))
        for gone in known.values():
            self.index.on_pod(ObjectChange((key.namespace, gone.name), gone, None))
        if gate is not None:
            self.index.on_config_map(
                ObjectChange((key.namespace, gate.name), before.config_map if before else None, gate)
            )
        return key

    def _jobs(self, key: GangKey, jobset: WorkloadSeen, known: Sequence[JobSeen]) -> None:
        there = {it.name: it for it in known}
        for part in jobset.replicated_jobs:
            for number in range(part.replicas):
                name = f"{key.name}-{part.name}-{number}"
                whose = {"source": key.source, "gang": key.name, "workload_uid": jobset.uid}
                whose |= {} if part.name else {"uid": jobset.uid}
                made = gangs.job(part.name, number, namespace=key.namespace, name=name, **whose)
                self.index.on_job(ObjectChange((key.namespace, name), there.get(name), made))

    def drop(self, key: GangKey) -> None:
        seen = self.index.peek(key)
        assert seen is not None
        for pod in seen.pods:
            self.index.on_pod(ObjectChange((key.namespace, pod.name), pod, None))
        for job in seen.jobs:
            self.index.on_job(ObjectChange((key.namespace, job.name), job, None))
        if seen.config_map is not None:
            self.index.on_config_map(ObjectChange((key.namespace, seen.config_map.name), seen.config_map, None))
        self.index.on_workload(ObjectChange(key[:2], seen.workload, None))

    def decide(self, key: GangKey, kind: VerdictKind = VerdictKind.RELEASE) -> None:
        """A verdict is in its ConfigMap, as the controller writes it. The gang has pods."""
        seen = self.index.peek(key)
        assert seen is not None
        uid = seen.workload.uid
        cause = names.REASON_STARTED if kind is VerdictKind.RELEASE else names.REASON_TIMED_OUT
        gate = gangs.config_map(
            namespace=key.namespace,
            name=seen.workload.source.config_map_name(key.name),
            source=key.source,
            gang=key.name,
            workload_uid=uid,
            verdict=gangs.verdict(kind, cause, uid=uid),
        )
        self.index.on_config_map(ObjectChange((key.namespace, gate.name), seen.config_map, gate))


@asynccontextmanager
async def serve_page(
    options: PageOptions | None = None, *, now: Callable[[], float] = time.time, with_groups: bool = True
) -> AsyncIterator[ServedPage]:
    """Listening on a free port of loopback."""
    cluster, groups = FakeReviewApi(), FakePodGroups()
    stage = ServedPage(cluster, None, None, groups, now=now)  # type: ignore[arg-type]  # made below, of what it holds
    touched: list[Callable[[GangKey], None]] = []

    def changed(key: GangKey) -> None:
        touched[0](key)

    index = GangCache(lambda _: None, lambda _, __: None, (), changed)
    stage.index = index
    options = options or PageOptions(0)
    source = PageSource(
        index=index, clock=now, fresh=lambda: stage.fresh, groups=groups if with_groups else None, prices=options.prices
    )
    page = StatusPage(options, source, cluster.client(), stage.registry, monotonic=stage.monotonic)
    stage.page = page
    touched.append(page.mark_dirty)
    async with in_background(page.run()):
        async with asyncio.timeout(PATIENCE):
            await page.listening.wait()
        yield stage


@asynccontextmanager
async def http_session(stage: ServedPage, token: str = "", **more: Any) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the page; with a token in the header, else not signed in."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(stage.url, headers=headers, cookie_jar=jar, **more) as session:
        yield session


async def read(stage: ServedPage, path: str, token: str = "") -> tuple[int, str]:
    """Status and text of a page, for a viewer who may list everything unless another token is given."""
    async with http_session(stage, token or stage.api.admin()) as session, session.get(path) as answer:
        return answer.status, await answer.text()


def line(page: str, id_: str) -> str:
    """The row of that id."""
    found = re.search(rf'<tr id="{re.escape(id_)}".*?</tr>', page, re.DOTALL)
    assert found, id_
    return found[0]


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    """(event, data) as an EventSource would tell them."""
    fields: dict[str, str] = {}
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            if "event" in fields:
                yield fields["event"], _data(fields)
            fields = {}


def _data(fields: Mapping[str, str]) -> Any:
    return msgspec.json.decode(fields["data"]) if fields["event"] == "view" else fields["data"]
