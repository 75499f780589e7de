"""One JobSet and its ConfigMap, live: until something is decided. By a watch, never by asking again and again."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from jobset_gate import names, read, wire
from jobset_gate.cli.looking.rights import Rights, refused
from jobset_gate.cli.verbs import single
from jobset_gate.cli.verbs.standing import Standing, standing
from jobset_gate.cli.verbs.watched import VERBS, Watched, is_forbidden
from jobset_gate.kube.client import Client
from jobset_gate.kube.informer import Informer
from jobset_gate.kube.problems import Problem
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate.model import GateSeen, JobSetSeen

FIRST_LOOK: Final = 60.0
"""Seconds for the first look, however short a wait may be: whoever waits 0 seconds wants to know how it is now."""


class Following(Watched):
    """`async with Following(...) as following`; `uid` is the life of the JobSet that is meant."""

    def __init__(self, client: Client, namespace: str, name: str, uid: str, rights: Rights) -> None:
        super().__init__()
        self._namespace, self._name, self._uid, self._rights = namespace, name, uid, rights
        self._gate_name = names.config_map_name(name)
        self._jobsets: Informer[wire.JobSet, JobSetSeen] = self.watch(
            client, JOBSETS, wire.JobSet, read.jobset, namespace, fields=f"metadata.name={name}"
        )
        self._gates: Informer[wire.ConfigMap, GateSeen] = self.watch(
            client, CONFIGMAPS, wire.ConfigMap, read.gate, namespace, fields=f"metadata.name={self._gate_name}"
        )

    async def until(self, holds: Callable[[Standing], bool], seconds: float) -> Standing:
        """The first standing of which it is true. Raises TimeoutError, and Failed without the right to watch."""
        async with asyncio.timeout(seconds):
            await self.ready()
            while not holds(now := self.standing()):
                await self.change()
        return now

    def standing(self) -> Standing:
        """As far as it is known at this moment."""
        jobset = self._jobsets.cache.get((self._namespace, self._name))
        if jobset is None or jobset.uid != self._uid:
            return Standing(told="was deleted" if self._jobsets.has_synced else "", hopeless=self._jobsets.has_synced)
        return standing(jobset, self._gates.cache.get((self._namespace, self._gate_name)), time.time())

    def lost(self, number: int, problem: Problem) -> bool:
        """Without its ConfigMap less is known of it; without the JobSet nothing."""
        del number
        if not is_forbidden(problem):
            return False
        if problem.resource == CONFIGMAPS:
            self._rights.lacks(VERBS[problem.kind], CONFIGMAPS, self._namespace, single.BLIND)
        else:
            self.failed = refused(VERBS[problem.kind], problem.resource, self._namespace)
        return True
