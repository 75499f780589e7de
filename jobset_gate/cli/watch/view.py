"""One gang, live, as `watch` shows it: what it lacks, and what has become of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import msgspec

from jobset_gate.barrier.model import GangSnapshot, PendingCause, PodSeen
from jobset_gate.cli.fetch import events
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.watch.gang_source import GangWatch
from jobset_gate.cli.watch.outcome import WaitGoal, WaitOutcome, jobset_outcome
from jobset_gate.explain.gang import explain_gang
from jobset_gate.explain.model import ControllerStatus, Explanation, FailurePolicies
from jobset_gate.kube.client import Client

EVENTS_INTERVAL = 10.0
"""Seconds between two looks at Events: they are many, and only some reasons are told by them alone."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """How it is now. `told` None: it is there no more."""

    told: Explanation | None
    standing: WaitOutcome
    trouble: str = ""


class WatchView(Protocol):
    """`async with` it."""

    end: WaitGoal
    """What is hoped for."""
    subject: str
    """As other commands take it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def ready(self) -> None:
        """Once everything is there that may be read. Raises Failed where there is nothing to see."""

    async def change(self) -> None:
        """Until anything is different. Raises Failed where there is nothing to see any more."""

    async def look(self) -> ViewState:
        """How it is now."""


@dataclass(frozen=True, slots=True)
class JobSetTarget:
    """The JobSet that is meant, and what is known of it besides."""

    namespace: str
    name: str
    uid: str
    policy: FailurePolicies | None
    controller: ControllerStatus


class JobSetView(GangWatch):
    """A JobSet with a gate."""

    end = WaitGoal.RELEASED

    def __init__(self, client: Client, about: JobSetTarget, rights: Permissions) -> None:
        super().__init__(client, about.namespace, rights, name=about.name)
        self.subject = f"jobset.jobset.x-k8s.io/{about.name}"
        self._about, self._news = about, _EventCache(client, rights)

    async def look(self) -> ViewState:
        seen = next((it for it in self.gangs() if it.jobset.uid == self._about.uid), None)
        if seen is None:
            return ViewState(None, WaitOutcome(message="was deleted", final=True), self.problem)
        now, its = self.now(), jobset_outcome(seen.jobset, seen.config_map, self.now())
        if not (its.reached or its.final or self.pods_forbidden):
            seen = await self._news.added(seen, now)
        told = explain_gang(
            seen,
            now,
            controller=self._about.controller,
            policy=self._about.policy,
            unknown=self._rights.missing,
            pods_forbidden=self.pods_forbidden,
        )
        return ViewState(told, its, self.problem)


class _EventCache:
    """What Events add, heard now and then."""

    def __init__(self, client: Client, rights: Permissions) -> None:
        self._client, self._rights = client, rights
        self._heard = float("-inf")
        self._denials: tuple[tuple[str, str], ...] = ()
        self._provisioning: frozenset[str] = frozenset()
        self._stalls: dict[str, PendingCause | None] = {}

    async def added(self, seen: GangSnapshot, now: float) -> GangSnapshot:
        """The same with what was heard."""
        if now - self._heard >= EVENTS_INTERVAL:
            self._heard = now
            self._keep(seen, await events.add_events(self._client, seen, self._rights))
        return msgspec.structs.replace(
            seen,
            denials=self._denials,
            provisioning=self._provisioning,
            pods=tuple(map(self._with_words, seen.pods)) if self._stalls else seen.pods,
        )

    def _keep(self, seen: GangSnapshot, heard: GangSnapshot) -> None:
        self._denials, self._provisioning = heard.denials, heard.provisioning
        pairs: Sequence[tuple[PodSeen, PodSeen]] = list(zip(seen.pods, heard.pods, strict=True))
        self._stalls = {pod.uid: pod.pending for was, pod in pairs if pod.pending != was.pending}

    def _with_words(self, pod: PodSeen) -> PodSeen:
        words = self._stalls.get(pod.uid)
        if words is None or pod.pending is None or pod.pending.reason is not words.reason:
            return pod
        return msgspec.structs.replace(pod, pending=words)
