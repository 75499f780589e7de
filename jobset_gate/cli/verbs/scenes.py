"""One gang, live, as `watch` shows it: what it lacks, and what has become of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import msgspec

from jobset_gate.cli.looking import news
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.cli.verbs.live import Live
from jobset_gate.cli.verbs.standing import End, Standing, standing
from jobset_gate.explain import explain
from jobset_gate.explained import Controller, Explanation, Policy
from jobset_gate.kube.client import Client
from jobset_gate.model import GangSeen, PodSeen, Stall

NEWS_EVERY = 10.0
"""Seconds between two looks at Events: they are many, and only some reasons are told by them alone."""


@dataclass(frozen=True, slots=True)
class Moment:
    """How it is now. `told` None: it is there no more."""

    told: Explanation | None
    standing: Standing
    trouble: str = ""


class Scene(Protocol):
    """`async with` it."""

    end: End
    """What is hoped for."""
    subject: str
    """As other commands take it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def ready(self) -> None:
        """Once everything is there that may be read. Raises Failed where there is nothing to see."""

    async def change(self) -> None:
        """Until anything is different. Raises Failed where there is nothing to see any more."""

    async def look(self) -> Moment:
        """How it is now."""


@dataclass(frozen=True, slots=True)
class About:
    """The JobSet that is meant, and what is known of it besides."""

    namespace: str
    name: str
    uid: str
    policy: Policy | None
    controller: Controller


class JobSetScene(Live):
    """A JobSet with a gate."""

    end = End.RELEASED

    def __init__(self, client: Client, about: About, rights: Rights) -> None:
        super().__init__(client, about.namespace, rights, name=about.name)
        self.subject = f"jobset.jobset.x-k8s.io/{about.name}"
        self._about, self._news = about, _News(client, rights)

    async def look(self) -> Moment:
        seen = next((it for it in self.gangs() if it.jobset.uid == self._about.uid), None)
        if seen is None:
            return Moment(None, Standing(told="was deleted", hopeless=True), self.trouble)
        now, its = self.now(), standing(seen.jobset, seen.gate, self.now())
        if not (its.ends or its.hopeless or self.blind):
            seen = await self._news.added(seen, now)
        told = explain(
            seen,
            now,
            controller=self._about.controller,
            policy=self._about.policy,
            unknown=self._rights.missing,
            blind=self.blind,
        )
        return Moment(told, its, self.trouble)


class _News:
    """What Events add, heard now and then."""

    def __init__(self, client: Client, rights: Rights) -> None:
        self._client, self._rights = client, rights
        self._heard = float("-inf")
        self._denials: tuple[tuple[str, str], ...] = ()
        self._provisioning: frozenset[str] = frozenset()
        self._stalls: dict[str, Stall | None] = {}

    async def added(self, seen: GangSeen, now: float) -> GangSeen:
        """The same with what was heard."""
        if now - self._heard >= NEWS_EVERY:
            self._heard = now
            self._keep(seen, await news.hear(self._client, seen, self._rights))
        return msgspec.structs.replace(
            seen,
            denials=self._denials,
            provisioning=self._provisioning,
            pods=tuple(map(self._with_words, seen.pods)) if self._stalls else seen.pods,
        )

    def _keep(self, seen: GangSeen, heard: GangSeen) -> None:
        self._denials, self._provisioning = heard.denials, heard.provisioning
        pairs: Sequence[tuple[PodSeen, PodSeen]] = list(zip(seen.pods, heard.pods, strict=True))
        self._stalls = {pod.uid: pod.stall for was, pod in pairs if pod.stall != was.stall}

    def _with_words(self, pod: PodSeen) -> PodSeen:
        words = self._stalls.get(pod.uid)
        if words is None or pod.stall is None or pod.stall.why is not words.why:
            return pod
        return msgspec.structs.replace(pod, stall=words)
