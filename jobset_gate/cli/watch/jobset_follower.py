"""One JobSet and its ConfigMap, live: until something is decided. By a watch, never by asking again and again."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import ConfigMapSeen, JobSetSeen
from jobset_gate.cli.fetch import jobset as single
from jobset_gate.cli.fetch.permissions import Permissions, forbidden_text
from jobset_gate.cli.watch.outcome import WaitOutcome, jobset_outcome
from jobset_gate.cli.watch.source import VERBS, ResourceWatch, is_forbidden
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.informer import Informer

FIRST_READ_TIMEOUT: Final = 60.0
"""Seconds for the first look, however short a wait may be: whoever waits 0 seconds wants to know how it is now."""


class JobSetFollower(ResourceWatch):
    """`async with Following(...) as following`; `uid` is the life of the JobSet that is meant."""

    def __init__(self, client: Client, namespace: str, name: str, uid: str, rights: Permissions) -> None:
        super().__init__()
        self._namespace, self._name, self._uid, self._rights = namespace, name, uid, rights
        self._gate_name = names.config_map_name(name)
        self._jobsets: Informer[wire.JobSet, JobSetSeen] = self.watch(
            client, JOBSETS, wire.JobSet, decode.jobset, namespace, fields=f"metadata.name={name}"
        )
        self._gates: Informer[wire.ConfigMap, ConfigMapSeen] = self.watch(
            client, CONFIGMAPS, wire.ConfigMap, decode.config_map, namespace, fields=f"metadata.name={self._gate_name}"
        )

    async def until(self, holds: Callable[[WaitOutcome], bool], seconds: float) -> WaitOutcome:
        """The first standing of which it is true. Raises TimeoutError, and Failed without the right to watch."""
        async with asyncio.timeout(seconds):
            await self.ready()
            while not holds(now := self.outcome()):
                await self.change()
        return now

    def outcome(self) -> WaitOutcome:
        """As far as it is known at this moment."""
        jobset = self._jobsets.cache.get((self._namespace, self._name))
        if jobset is None or jobset.uid != self._uid:
            return WaitOutcome(
                message="was deleted" if self._jobsets.has_synced else "", final=self._jobsets.has_synced
            )
        return jobset_outcome(jobset, self._gates.cache.get((self._namespace, self._gate_name)), time.time())

    def lost(self, number: int, problem: WatchProblem) -> bool:
        """Without its ConfigMap less is known of it; without the JobSet nothing."""
        del number
        if not is_forbidden(problem):
            return False
        if problem.resource == CONFIGMAPS:
            self._rights.add_missing(
                VERBS[problem.kind], CONFIGMAPS, self._namespace, single.UNKNOWN_WITHOUT_CONFIG_MAP
            )
        else:
            self.failed = forbidden_text(VERBS[problem.kind], problem.resource, self._namespace)
        return True
