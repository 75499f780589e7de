"""The one condition GroupStarted of a LeaderWorkerSet: it counts the groups, and names one that waits (K7)."""

from collections.abc import Mapping
from itertools import count

from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec
from jobset_gate.barrier.model import DesiredCondition, Value
from jobset_gate.sources.table import LWS


class GroupState(Value, frozen=True):
    """What a group with a leader pod has come to."""

    waits_since: float
    condition: DesiredCondition | None
    """What a condition of this leader would say; None before the first pass over it."""


def condition(name: str, replicas: int, groups: Mapping[int, GroupState]) -> DesiredCondition:
    """The condition of a LeaderWorkerSet. `groups`: those with a leader pod, by index below `replicas`."""
    waiting = {index: it for index, it in groups.items() if it.condition is None or it.condition.status != "True"}
    started = len(groups) - len(waiting)
    if started >= replicas:
        message = f"all {started} groups have started"
        return DesiredCondition(status="True", reason=names.REASON_STARTED, message=message)
    reason, why = names.REASON_WAITING, "its leader pod is not there, or has no barrier yet"
    if waiting:
        index = min(waiting, key=lambda it: (waiting[it].waits_since, it))
        found = waiting[index].condition
        if found is None:
            why = "no pass has looked at it yet"
        else:
            reason, why = found.reason, messages.without_generation(found.message)
    else:
        index = next(it for it in count() if it not in groups)
    shown = LWS.shown_name(f"{name}-{index}")
    return DesiredCondition(
        status="False",
        reason=reason,
        message=verdict_codec.truncate(
            f"{started} of {replicas} groups have started; {shown}: {why}", messages.CONDITION_LIMIT
        ),
    )
