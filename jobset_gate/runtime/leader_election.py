"""Leader election: a Lease, acquired and renewed by compare-and-swap, and the time for which its holder may write."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, KubeError, LeadershipLost, NotFound, NotLeader, Unreachable
from jobset_gate.kube.resources import LEASES
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.store import ObjectKey

MIN_WRITE_SECONDS = 0.05  # seconds; less is too short for any request


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """In seconds. Raises ValueError unless duration > renew_deadline > 2 retry > 0."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > 2 * self.retry > 0:
            raise ValueError(f"duration > renew_deadline > twice retry must hold for {self}")


class LeaderElector:
    """One candidate for the Lease of that (namespace, name).

    A leader may write until `renew_deadline` after the *start* of its last successful renewal; another may take the
    lease `duration` after it *saw* the last change of it. So even without any agreement of clocks there are
    `duration - renew_deadline` seconds in which nobody writes, for requests that are still in flight.
    `clock` (Unix time) only dates the Lease for its readers. `on_status` gets True and False for the metric
    leader_election_master_status, `on_problem` the text of each failed attempt.
    """

    def __init__(
        self,
        client: Client,
        lease: ObjectKey,
        identity: str,
        timing: LeaseTiming | None = None,
        *,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        on_status: Callable[[bool], None] = lambda _: None,
        on_problem: Callable[[str], None] = lambda _: None,
    ) -> None:
        if not identity:
            raise ValueError("an empty identity means that nobody holds the lease")
        timing = timing or LeaseTiming()
        self._client = client.with_guard(None).without_retries()
        (self._namespace, self._name), self._identity = lease, identity
        self._duration, self._renew_deadline, self._retry = timing.duration, timing.renew_deadline, timing.retry
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._on_status = on_status
        self._on_problem = on_problem
        self._lease: dict[str, Any] | None = None  # as last read; None: there is none
        self._is_last_write_ours = False  # and no request has failed since
        self._other_holds_until = -math.inf  # another may lead until then: our observation plus the lease's duration
        self._acquire_time = ""  # of our term: tells our records from another process of the same identity
        self._write_until = -math.inf
        self._leading = False

    @property
    def is_leader(self) -> bool:
        """May a write begin now?"""
        return self._leading and self._left() >= MIN_WRITE_SECONDS

    @property
    def holder(self) -> str:
        """Who held the lease when it was last read; "" if nobody did, or it was never read."""
        return str(_spec(self._lease).get("holderIdentity") or "")

    @property
    def is_held_by_other(self) -> bool:
        """Has another renewed it so lately that it may lead?"""
        return monotonic() < self._other_holds_until

    def guard(self) -> float:
        """Seconds that a write may take that begins now; the guard of a Client. Raises NotLeader."""
        if not self.is_leader:
            raise NotLeader(f"{self._identity} does not hold the lease {self._namespace}/{self._name}")
        return self._left()

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Acquires the lease, leads until the work ends or this is cancelled, and releases the lease.

        Raises what `lead` raises; and LeadershipLost, after `lead` was cancelled and has ended, if the lease cannot be
        renewed in time or another has it. From that moment on all guarded writes fail.
        """
        await self._acquire()
        self._set_leading(now=True)
        work = asyncio.ensure_future(lead())
        renewal = asyncio.create_task(self._renew())
        try:
            await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost = renewal.done()
            if lost:
                self._set_leading(now=False)
            work.cancel()
            # The lease is renewed while the work ends. After its loss, work that does not end is not waited for.
            await asyncio.wait((work,), timeout=self._duration - self._renew_deadline if lost else None)
            renewal.cancel()
            await asyncio.wait((renewal,))
            self._set_leading(now=False)
            await self._release()
        _raise_outcome(work, renewal)

    async def _acquire(self) -> None:
        while True:
            pause = self._retry * self._rng.uniform(1.0, 1.2)
            try:
                if await self._attempt(self._renew_deadline):
                    return
            except KubeError as error:
                self._report_problem(f"cannot acquire: {error}")
                if isinstance(error, ApiError) and error.retry_after:
                    pause = max(pause, min(error.retry_after, self._duration))
            await asyncio.sleep(pause)

    async def _renew(self) -> NoReturn:
        """Ends only by raising LeadershipLost."""
        while True:
            await asyncio.sleep(min(self._retry, max(0.0, self._left())))
            left = self._left()
            if left < MIN_WRITE_SECONDS:
                raise LeadershipLost(f"no renewal of {self._namespace}/{self._name} within {self._renew_deadline:g} s")
            try:
                # A hung request may take half of the time at most, so that another connection is tried.
                held = await self._attempt(min(left, self._renew_deadline / 2))
            except KubeError as error:
                self._report_problem(f"cannot renew: {error}")
                continue
            if not held:
                raise LeadershipLost(f"{self._namespace}/{self._name} is held by {_spec(self._lease)}")

    async def _attempt(self, seconds: float) -> bool:
        """One try to acquire or renew the lease. False: another has it. Raises KubeError if that is unknown."""
        start = monotonic()
        try:
            async with asyncio.timeout(seconds):
                held = await self._acquire_or_renew()
        except TimeoutError as error:
            raise Unreachable(f"no answer for {seconds:g} s") from error
        if held:
            self._write_until = start + self._renew_deadline
        return held

    async def _acquire_or_renew(self) -> bool:
        if not self._is_last_write_ours:
            await self._read_lease()
        if not self._is_ours():
            if monotonic() < self._other_holds_until:
                return False
            self._acquire_time = self._date()
        self._is_last_write_ours = False  # until the response is here the outcome is unknown: next time, read first
        if self._lease is None:
            written = await self._client.create(LEASES, self._lease_body({}, self._identity), self._namespace)
        else:
            written = await self._client.replace(LEASES, self._lease_body(self._lease, self._identity))
        self._observe_lease(written)
        self._is_last_write_ours = True
        return True

    async def _read_lease(self) -> None:
        try:
            self._observe_lease(await self._client.get(LEASES, self._name, self._namespace))
        except NotFound:
            self._lease = None  # deleted, perhaps under a leader that does not know yet: _other_holds_until stands

    def _observe_lease(self, lease: dict[str, Any]) -> None:
        changed = _version(lease) != _version(self._lease)
        self._lease = lease
        if self._is_ours() or not _spec(lease).get("holderIdentity"):
            self._other_holds_until = -math.inf
        elif changed:
            promised = float(_spec(lease).get("leaseDurationSeconds") or 0)
            self._other_holds_until = monotonic() + max(self._duration, promised)

    async def _release(self) -> None:
        """Lets others acquire it at once. Only while it is surely ours; otherwise it expires."""
        left, self._write_until = self._left(), -math.inf
        if left < MIN_WRITE_SECONDS:
            return
        try:
            async with asyncio.timeout(min(left, self._retry)):
                if not self._is_last_write_ours:  # a renewal was in flight
                    await self._read_lease()
                if self._lease is not None and self._is_ours():
                    self._observe_lease(await self._client.replace(LEASES, self._lease_body(self._lease, "")))
        except (KubeError, TimeoutError) as error:
            self._report_problem(f"cannot release: {error!r}")
        self._is_last_write_ours = False

    def _lease_body(self, lease: Mapping[str, Any], holder: str) -> dict[str, Any]:
        """The lease as it was, with our record."""
        old, date = _spec(lease), self._date()
        changes = old.get("holderIdentity") != holder and bool(holder)
        record = {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(self._duration) if holder else 1,
            "acquireTime": self._acquire_time,
            "renewTime": date,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (1 if changes and old else 0),
        }
        meta = lease.get("metadata") or {"name": self._name, "namespace": self._namespace}
        return {**lease, "metadata": meta, "spec": {**old, **record}}

    def _is_ours(self) -> bool:
        spec = _spec(self._lease)
        return spec.get("holderIdentity") == self._identity and spec.get("acquireTime") == self._acquire_time

    def _left(self) -> float:
        return self._write_until - monotonic()

    def _set_leading(self, *, now: bool) -> None:
        if now != self._leading:
            self._leading = now
            self._on_status(now)

    def _report_problem(self, problem: str) -> None:
        self._on_problem(f"lease {self._namespace}/{self._name}: {problem}")

    def _date(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _raise_outcome(work: asyncio.Future[None], renewal: asyncio.Task[NoReturn]) -> None:
    if not renewal.cancelled():
        renewal.result()
    if not work.done() or work.cancelled():
        return
    error = work.exception()
    if (lost := _not_leader(error)) is not None:  # the work noticed the end of the term before the renewal did
        raise LeadershipLost(str(lost)) from error
    if error is not None:
        raise error


def _not_leader(error: BaseException | None) -> NotLeader | None:
    """This NotLeader, or the first of a group that has nothing else, however deep its task groups."""
    if isinstance(error, BaseExceptionGroup):
        found = [_not_leader(one) for one in error.exceptions]
        return found[0] if all(found) else None
    return error if isinstance(error, NotLeader) else None


def _spec(lease: Mapping[str, Any] | None) -> dict[str, Any]:
    return (lease or {}).get("spec") or {}


def _version(lease: Mapping[str, Any] | None) -> tuple[str, str]:
    meta = (lease or {}).get("metadata") or {}
    return meta.get("uid", ""), meta.get("resourceVersion", "")
