"""Which facts of a snapshot must be read from the API before the decision on them is written (A6, A7, A10). Pure.

The cache may lag behind the API. Most decisions are corrected by the next event; a verdict never is.
"""

from collections.abc import Callable, Container
from enum import Enum

from jobset_gate.barrier import integrity
from jobset_gate.barrier.decide import NO_VERDICT, Facts

MAX_POD_STALENESS = 10.0
"""Seconds of pods' writes that the cache may lack; if it may lack more, a release needs a list of the gang's pods (A4).

The event of the last pod's start is mostly a moment old. The list is for a start that is announced on the gate stream
while the watch hangs, and for old events after that: the cache may count pods that are gone.
"""


class Read(Enum):
    CONFIG_MAP = "the ConfigMap: is the conflict about its name over?"
    WORKLOAD = "the workload: does it still exist, and what does its condition say about the ConfigMap?"
    PODS = "Jobs and pods: is the gang complete, or incomplete, in the API too?"


def next_read(facts: Facts, pod_staleness: float, done: Container[Read]) -> Read | None:
    """The next live read that the decision on these facts needs, None when all are done."""
    needed = (read for read, is_needed in READS if read not in done and is_needed(facts, pod_staleness))
    return next(needed, None)


def _conflict_may_be_over(facts: Facts, _: float) -> bool:
    """No watch shows that another owner's ConfigMap was deleted."""
    return facts.seen.config_map_conflict


def _config_map_is_doubtful(facts: Facts, _: float) -> bool:
    """A missing ConfigMap may have held a verdict, or be deleted with its workload; an edited one may be forged."""
    if any(rule(facts) is not None for rule in NO_VERDICT):
        return False
    return not integrity.is_config_map_canonical(facts.seen) or integrity.needs_verification(facts.seen)


def _pods_may_be_stale(facts: Facts, pod_staleness: float) -> bool:
    """Before an incomplete gang is given up always; before a release if the cache of pods is old.

    Before the members are replaced always, since an old view would end an attempt that it has not seen yet (K5).
    """
    workload = facts.seen.workload
    if facts.replaces_members:
        return True
    if workload.suspended or workload.bypass or facts.standing is not None:
        return False
    if any(rule(facts) is not None for rule in NO_VERDICT):
        return False
    if facts.count.complete and not workload.bare_pod:
        return pod_staleness > MAX_POD_STALENESS
    return workload.bare_pod != "" or facts.is_due or facts.cannot_start


READS: tuple[tuple[Read, Callable[[Facts, float], bool]], ...] = (
    (Read.CONFIG_MAP, _conflict_may_be_over),
    (Read.WORKLOAD, _config_map_is_doubtful),
    (Read.PODS, _pods_may_be_stale),  # last: the other reads may find a verdict
)
