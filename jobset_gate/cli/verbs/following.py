"""One JobSet and its ConfigMap, live: until something is decided. By a watch, never by asking again and again."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Self

from jobset_gate import names, read, wire
from jobset_gate.cli.exits import Failed
from jobset_gate.cli.looking.rights import Rights, refused
from jobset_gate.cli.verbs import single
from jobset_gate.cli.verbs.standing import Standing, standing
from jobset_gate.kube.client import Client
from jobset_gate.kube.informer import Informer
from jobset_gate.kube.problems import Kind, Problem
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate.model import GateSeen, JobSetSeen

_FORBIDDEN = "403"
_VERBS = {Kind.LIST_FAILED: "list", Kind.WATCH_FAILED: "watch"}


class Following:
    """`async with Following(...) as following`; `uid` is the life of the JobSet that is meant."""

    def __init__(self, client: Client, namespace: str, name: str, uid: str, rights: Rights) -> None:
        self._namespace, self._name, self._uid, self._rights = namespace, name, uid, rights
        self._changed = asyncio.Event()
        self._refused = ""
        self._blind = False
        more: dict[str, Any] = {
            "namespace": namespace,
            "handler": lambda _: self._changed.set(),
            "on_problem": self._on_problem,
        }
        self._jobsets: Informer[wire.JobSet, JobSetSeen] = Informer(
            client, JOBSETS, wire=wire.JobSet, convert=read.jobset, field_selector=f"metadata.name={name}", **more
        )
        gate = names.config_map_name(name)
        self._gates: Informer[wire.ConfigMap, GateSeen] = Informer(
            client, CONFIGMAPS, wire=wire.ConfigMap, convert=read.gate, field_selector=f"metadata.name={gate}", **more
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for informer in (self._jobsets, self._gates):
            work = asyncio.create_task(informer.run())
            synced = asyncio.create_task(informer.wait_synced())
            synced.add_done_callback(lambda _: self._changed.set())
            self._tasks += [work, synced]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until(self, holds: Callable[[Standing], bool], seconds: float) -> Standing:
        """The first standing of which it is true. Raises TimeoutError, and Failed without the right to watch."""
        async with asyncio.timeout(seconds):
            while True:
                self._changed.clear()
                if self._refused:
                    raise Failed(self._refused)
                if self._jobsets.has_synced and (self._blind or self._gates.has_synced):
                    now = self.standing()
                    if holds(now):
                        return now
                await self._changed.wait()

    def standing(self) -> Standing:
        """As far as it is known at this moment."""
        jobset = self._jobsets.cache.get((self._namespace, self._name))
        if jobset is None or jobset.uid != self._uid:
            return Standing(told="was deleted" if self._jobsets.has_synced else "", hopeless=self._jobsets.has_synced)
        gate = self._gates.cache.get((self._namespace, names.config_map_name(self._name)))
        return standing(jobset, gate, time.time())

    def _on_problem(self, problem: Problem) -> None:
        verb = _VERBS.get(problem.kind)
        if verb is None or not problem.detail.startswith(_FORBIDDEN):
            return
        if problem.resource == CONFIGMAPS:
            self._blind = True
            self._rights.lacks(verb, CONFIGMAPS, self._namespace, single.BLIND)
        else:
            self._refused = refused(verb, problem.resource, self._namespace)
        self._changed.set()
