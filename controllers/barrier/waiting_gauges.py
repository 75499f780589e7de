"""What waits at closed gates now, as gauges: gangs, pods, missing pods by reason, idle accelerators (A9)."""

from collections import Counter as Tallies
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge

from controllers.barrier import idle_accelerators
from jobset_gate import names
from jobset_gate.barrier.model import Blocked, GangKey, GangSnapshot, PendingReason, Wait

BLOCKED = (names.REASON_GATE_MISSING, names.REASON_CONFIG_MAP_CONFLICT)
"""Why a gang may have no gate that works."""


@dataclass(frozen=True, slots=True)
class _WaitingGang:
    started: int
    missing: Tallies[PendingReason]
    since: float | None
    """When its first pod started."""


class WaitingGauges:
    """Gauges in a registry; each pass over a gang replaces what the one before has found."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float]) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"jobset_gate_{name}", text, labels, registry=registry)

        self._gangs_shown = gauge("waiting_gangs", "Gangs whose gate is closed.")
        self._pods_shown = gauge("waiting_pods", "Started pods held at a closed gate.")
        self._missing_shown = gauge("missing_pods", "Pods that closed gates wait for, by reason.", "reason")
        self._blocked_shown = gauge("blocked_gangs", "Gangs without a gate that works, by reason.", "reason")
        longest = gauge(
            "longest_wait_seconds", "Since the first pod started of the gang that waits longest; 0 if none waits."
        )
        longest.set_function(self._longest)
        self._idle = idle_accelerators.IdleAccelerators(clock)
        registry.register(self._idle)
        self._clock = clock
        self._gangs: dict[GangKey, _WaitingGang] = {}
        self._held = 0
        self._missing: Tallies[PendingReason] = Tallies()
        self._blocked: dict[GangKey, str] = {}
        self._update_gauges()

    def set_waiting(self, key: GangKey, seen: GangSnapshot, decision: Wait) -> None:
        """Its gate is closed."""
        self._drop(key)
        missing: Tallies[PendingReason] = Tallies()
        for lack in decision.missing:
            missing[PendingReason(lack.reason)] += lack.count
        gang = _WaitingGang(decision.started, missing, decision.clock.at if decision.clock else None)
        self._gangs[key] = gang
        self._held += gang.started
        self._missing.update(gang.missing)
        self._idle.set_held(key, idle_accelerators.held_devices(seen))
        self._update_gauges()

    def set_blocked(self, key: GangKey, decision: Blocked) -> None:
        """Something stands in its way that waiting will not mend."""
        self._drop(key)
        self._idle.set_held(key, {})
        self._blocked[key] = decision.condition.reason
        self._update_gauges()

    def clear_gang(self, key: GangKey) -> None:
        """It is held by no gate."""
        self._idle.set_held(key, {})
        if self._drop(key):
            self._update_gauges()

    def _drop(self, key: GangKey) -> bool:
        blocked = self._blocked.pop(key, None)
        gang = self._gangs.pop(key, None)
        if gang is None:
            return blocked is not None
        self._held -= gang.started
        self._missing.subtract(gang.missing)
        return True

    def _update_gauges(self) -> None:
        self._gangs_shown.set(len(self._gangs))
        self._pods_shown.set(self._held)
        for why in PendingReason:
            self._missing_shown.labels(why.value).set(self._missing[why])
        blocked = Tallies(self._blocked.values())
        for reason in BLOCKED:
            self._blocked_shown.labels(reason).set(blocked[reason])

    def _longest(self) -> float:
        since = min((gang.since for gang in self._gangs.values() if gang.since is not None), default=None)
        return 0.0 if since is None else max(0.0, self._clock() - since)
