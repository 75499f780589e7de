"""All that keeps pod groups, as one part of the controller: its informers, its workers, its metrics."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry

from controllers.duty import Duty
from controllers.groups import crds, watches
from controllers.groups.crds import CrdKeeper
from controllers.groups.decisions import WRITES
from controllers.groups.gates import Gates
from controllers.groups.heralds import GROUP_HERALDS, GroupHeralds
from controllers.groups.index import GroupIndex
from controllers.groups.leisure import Leisure
from controllers.groups.makers import Makers
from controllers.groups.measures import GroupMeasures
from controllers.groups.native import NativeGroups
from controllers.groups.opener import Opener
from controllers.groups.owners import Owners
from controllers.groups.reconciler import GroupReconciler
from controllers.groups.records import Records
from controllers.groups.resumption import Resumption
from controllers.groups.rollbacks import Rollbacks
from controllers.groups.talk import Talk
from controllers.loop import Loop, LoopMetrics
from controllers.plumbing import Plumbing
from controllers.queue import WorkQueue
from controllers.ticks import ticks
from jobset_gate.groups import barrier_seen, quota
from jobset_gate.groups.candidates import Hold
from jobset_gate.groups.crds import wanted
from jobset_gate.groups.creators import Creator
from jobset_gate.groups.model import Key
from jobset_gate.groups.outlook import Outlook
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.kube.client import Client
from jobset_gate.kube.problems import OnProblem
from jobset_gate.model import JobSetSeen
from jobset_gate.settings import Groups as GroupSettings
from jobset_gate.settings import Native

Work = Callable[[], Coroutine[Any, Any, None]]

WORKERS: Final = 16
"""Groups dealt with at once."""

SOON: Final = 0.1
"""Seconds within which a group is looked at of which a watch has told something: with all else that is told of it."""

_log = structlog.get_logger(__name__)


def connections(settings: GroupSettings) -> int:
    """To the API server, for all that may be under way at once."""
    return settings.gate_concurrency + WORKERS + WRITES + GROUP_HERALDS


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the part needs of the controller around it."""

    client: Client
    writer: Client
    """Asks before each write whether this process still leads."""
    namespace: str | None
    clock: Callable[[], float]
    registry: CollectorRegistry
    plumbing: Plumbing
    metrics: LoopMetrics
    on_problem: OnProblem
    keep_crds: bool = True
    """Whether the CRDs of PodGroups are made and updated."""
    jobset: Callable[[str, str], JobSetSeen | None] = lambda _, __: None
    """A gated JobSet by namespace and name."""


class Groups:
    """Pod groups. `informers` run on every replica, `works` on the leader only."""

    def __init__(self, settings: GroupSettings, around: Surroundings) -> None:
        self._settings, self._around = settings, around
        self._queue: WorkQueue[Key] = around.plumbing.queue("group")
        self._words: WorkQueue[Key] = around.plumbing.queue("group-status")
        self._creators: dict[Key, tuple[Creator, ...]] = {}
        self.measures = GroupMeasures(around.registry, around.clock)
        self._duty = Duty(self._queue)
        self._goes_on, self._gathers = Leisure(self._duty.add), Leisure(self._look_again)
        self.index = GroupIndex(
            self._heard,
            self._changed,
            settings,
            gathers=self._gathers.later,
            goes_on=self._goes_on.later,
            met=self._duty.add,
            placed=lambda key: self._opener.placed(key),  # noqa: PLW0108 - there is none yet
        )
        self._kinds: list[watches.AnyInformer] = watches.informers(
            around.client, self.index, settings, namespace=around.namespace, on_problem=around.on_problem
        )
        self.crd_keeper = CrdKeeper(around.writer)
        self._rollbacks = Rollbacks(around.writer, wall=around.clock)
        self._resumption = Resumption(self.index, self._rollbacks, around.namespace)
        self._records = Records(around.writer, self.index, around.namespace)
        self._native = NativeGroups(around.writer, self._look_at_all) if settings.native is Native.ON else None
        self._opener = self._make_opener()
        self._gates = Gates(around.writer, around.clock, concurrency=settings.gate_concurrency, sent=self.measures.gate)
        self._heralds = GroupHeralds(
            around.writer.impatient(),
            self._words,
            clock=around.clock,
            failed=around.metrics.errors.labels("group-status").inc,
            patience=ticks,
        )
        self._talk = Talk(self._opener.why, self._heralds, self.measures, clock=around.clock, jobset=around.jobset)
        self._reconciler = self._make_reconciler()
        self._loop = Loop("group", self._queue, self._reconcile, around.metrics, workers=WORKERS)
        self._word_loop = Loop(
            "group-status", self._words, self._heralds.reconcile, around.metrics, workers=GROUP_HERALDS
        )
        self._crds: WorkQueue[str] = around.plumbing.queue("podgroup-crd")
        self._crd_loop = Loop("podgroup-crd", self._crds, self.crd_keeper.reconcile, around.metrics, workers=1)
        self._crd_informers = crds.informers(around.client, self._crd_names(), self._crds.add, around.on_problem)
        self.measures.held(self._held)
        self.measures.waits(self._opener.since)

    @property
    def informers(self) -> Sequence[watches.AnyInformer]:
        """What every replica runs."""
        return *self._kinds, *self._crd_informers

    @property
    def works(self) -> Sequence[Work]:
        """What the leader runs."""
        native = () if self._native is None else (self._native.run,)
        return (
            self._opener.run,
            self._gates.run,
            self._keep,
            self._word_loop.run,
            self._look_after_crds,
            self._resumption.run,
            *native,
        )

    @property
    def troubles(self) -> Sequence[Callable[[], str]]:
        """Who is asked whether the workers work."""
        return self._loop.trouble, self._word_loop.trouble, self._crd_loop.trouble

    def why(self, key: Key) -> Hold | Standing | None:
        """What holds a group up, by the opener; None: nothing that is known, or this process does not lead."""
        return self._opener.why(key)

    def unlisted(self) -> str:
        """What has not been listed yet and why; "" if nothing is missing."""
        return watches.unlisted(self._kinds)

    async def filled(self) -> None:
        """Returns once the caches are full; a kind that is not installed is not waited for."""
        await watches.filled(self._kinds)

    async def _look_after_crds(self) -> None:
        for name in self._crd_names():
            self._crds.add(name)  # no watch tells of one that is not there
        await self._crd_loop.run()

    async def _keep(self) -> None:
        self._duty.begin(self.index.keys)
        await self._loop.run()

    # --- Details -----------------------------------------------------------------------------------------------------

    def _make_opener(self) -> Opener:
        settings = self._settings
        outlook = Outlook(
            self.index.observe,
            self.index.groups(),
            across_namespaces=settings.across_namespaces,
            creators=self._creators,
            short_of_quota=self._short_of_quota,
            barred=self._barred,
            trouble=self.crd_keeper.trouble,
        )
        return Opener(
            index=self.index,
            outlook=outlook,
            records=self._records,
            settings=settings,
            now=self._around.clock,
            told=self._duty.add,
            measured=self.measures.passed,
            opened=self.measures.decided,
        )

    def _make_reconciler(self) -> GroupReconciler:
        return GroupReconciler(
            index=self.index,
            records=self._records,
            gates=self._gates,
            rollbacks=self._rollbacks,
            native=self._native,
            makers=Makers(Owners(self._around.client), self._creators, self._opener.look, self._around.clock),
            now=self._around.clock,
            wake=self._duty.add,
            look=self._opener.look,
            quiet=self._talk.quiet,
            spoken=self._talk.speak,
            forgotten=self._talk.forget,
            satisfied=self.measures.satisfied,
            rolled_back=self.measures.rolled_back,
            makes_way=self._opener.makes_way,
        )

    def _crd_names(self) -> tuple[str, ...]:
        return wanted(self._settings.ways) if self._around.keep_crds else ()

    def _heard(self, key: Key) -> None:
        self._duty.add_after(key, SOON)

    def _look_again(self, key: Key) -> None:
        self._opener.look(key)
        self._goes_on.later(key)  # unless the opener has found other words for it before

    async def _reconcile(self, key: Key) -> float | None:
        self._goes_on.not_needed(key)
        return await self._reconciler.reconcile(key)

    def _changed(self, key: Key | None) -> None:
        if key is not None:
            self._gathers.not_needed(key)
        self._opener.look(key)

    def _short_of_quota(self, seen: GroupSeen) -> str:
        return quota.lacks(seen, self.index.quotas(seen.group.key.namespace))

    def _barred(self, seen: GroupSeen) -> Standing | None:
        held = None if self._native is None else self._native.hold(seen)
        return held or barrier_seen.standing(seen, self._around.jobset)

    def _look_at_all(self) -> None:
        known = self.index.keys()
        for key in known:
            self._opener.look(key)

    def _held(self) -> int:
        seen = map(self.index.observe, self.index.keys())
        return sum(it.gated for group in seen if group is not None for it in group.members)
