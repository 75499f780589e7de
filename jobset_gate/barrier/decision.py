"""The decisions on a gang: what `decide.py` returns and the controller carries out."""

from jobset_gate.barrier.model import DesiredCondition, MissingByReason, Value, Verdict, WaitingSince


class Ignore(Value, frozen=True):
    """Nothing to do (A10): the workload is finished, being deleted, or managed by another controller."""


class Blocked(Value, frozen=True):
    """The barrier cannot work, and waiting does not help: report it on the workload."""

    condition: DesiredCondition
    requeue_after: float | None = None
    is_decided: bool = False
    """A verdict stands. Only the workload's condition may record it, so that must stay: an Event reports this one."""


class Wait(Value, frozen=True):
    """Pods are missing. Ensure a ConfigMap that holds `clock`."""

    condition: DesiredCondition
    clock: WaitingSince | None
    requeue_after: float | None
    """Seconds until the timeout."""
    expected: int
    started: int
    missing: tuple[MissingByReason, ...]
    """Oldest first; () while the workload is suspended."""
    verdict: Verdict | None = None
    """The verdict on an older generation of this workload, which the ConfigMap keeps."""

    @property
    def missing_count(self) -> int:
        """Fewer new starts than this cannot complete the gang."""
        return self.expected - self.started


class Decide(Value, frozen=True):
    """Write this verdict by compare-and-swap; on a conflict the gang is requeued."""

    verdict: Verdict
    clock: WaitingSince | None
    condition: DesiredCondition


class Enforce(Value, frozen=True):
    """The verdict is durable: keep it in the ConfigMap, and deliver it to every waiting barrier."""

    verdict: Verdict
    clock: WaitingSince | None
    condition: DesiredCondition


Decision = Ignore | Blocked | Wait | Decide | Enforce
