"""Rows of the lists, with the explanation that `why` gives. Pure."""

from collections import Counter
from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any, Final
from urllib.parse import quote

import msgspec

from controllers.barrier.workloads import WORKLOADS
from jobset_gate import names
from jobset_gate.barrier import count
from jobset_gate.barrier.model import GangKey, GangSnapshot, Generation, Value
from jobset_gate.explain.model import WAITING_STATES, Explanation, GangState
from jobset_gate.kube.resources import LEADER_WORKER_SETS
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.sources.table import JOB, JOBSET, LWS, START_GROUP, TEMPLATE_SOURCES
from jobset_gate.timeline.summary import HOUR, Prices

MAX_MESSAGE: Final = 240
"""Characters of a row's message; the whole of it is on the gang's own page."""


class Severity(IntEnum):
    """How much attention a row needs, the most first. The state says it in words, too: never by a colour alone."""

    BAD = 0
    WAIT = 1
    GOOD = 2
    QUIET = 3


class ListRight(Value, frozen=True):
    group: str
    resource: str

    @property
    def name(self) -> str:
        """As kubectl writes it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


PODS: Final = ListRight(group="", resource="pods")
_LISTED: Final = {source: WORKLOADS[source] for source in TEMPLATE_SOURCES} | {LWS.name: LEADER_WORKER_SETS}
GANGS: Final = {source: ListRight(group=it.group, resource=it.plural) for source, it in _LISTED.items()}
GANGS[START_GROUP.name] = PODS
"""The right to see the gangs of each source; a start group is nothing but its pods."""
FOLDERS: Final = {JOBSET.name: "gangs", JOB.name: "jobs", LWS.name: "lws", START_GROUP.name: "startgroups"}
"""First part of the paths of their pages: a JobSet and a Job may have one name. That of a start group's page ends with
the UID of the owner, since two may have one."""
_IDS: Final = {source: it.removesuffix("s") for source, it in FOLDERS.items()} | {LWS.name: LWS.name}


class RowKind(Enum):
    """What a list shows, and who may see it."""

    GANG = "gangs", "Started", "/", "/events", tuple(GANGS[source] for source in TEMPLATE_SOURCES)
    GROUP = "pod groups", "Bound", "/groups", "/groups/events", (PODS,)

    def __init__(self, noun: str, counted: str, path: str, events: str, enough: tuple[ListRight, ...]) -> None:
        """`noun`: many of them, in words; `counted`: what is counted of their pods; the addresses of list and events.

        Without one of the rights `enough`, and without those of any row, there is nothing to see at all.
        """
        self.noun, self.counted, self.path, self.events_path, self.enough = noun, counted, path, events, enough
        self.required = enough[0]
        """The right that the refusal of a viewer without any right names."""


class HeldDevices(Value, frozen=True):
    """Devices of one kind that are held at the gate of a closed barrier, whatever the time is."""

    resource: str
    count: int
    since_sum: float
    """The sum of the times since when each is held."""
    price: float | None = None
    """Of one device for an hour."""

    @property
    def cost_per_hour(self) -> float | None:
        """None without a price."""
        return None if self.price is None else self.price * self.count

    def hours(self, now: float) -> float:
        """Device-hours until now."""
        return max(0.0, self.count * now - self.since_sum) / HOUR

    def cost(self, now: float) -> float | None:
        """Of these hours; None without a price."""
        return None if self.price is None else self.price * self.hours(now)


class StatusRow(Value, frozen=True):
    """One row. Its viewer needs the rights `needs` in its namespace."""

    id: str
    kind: RowKind
    namespace: str
    name: str
    path: str
    """Its permalink."""
    state: str
    tone: Severity
    started: int | None
    """None: not known."""
    expected: int
    message: str
    until: float | None
    """When its timeout expires; None: its clock does not run."""
    created: float
    needs: tuple[ListRight, ...]
    explanation: Explanation
    """Without the time at which it was made."""
    reasons: tuple[tuple[str, int], ...] = ()
    """Missing pods by reason."""
    since: float | None = None
    """Since when it waits: its first pod started, or its oldest missing pod was created; None: it does not wait."""
    held: tuple[HeldDevices, ...] = ()
    ended: float | None = None
    """When its time was up or its index had failed, of a gang that was ended at its gate, if that is known."""
    report: GroupStatus | None = None
    """Of a pod group."""
    revision: int = 0
    """Rises with every change of the row."""

    @property
    def way(self) -> str:
        """The flavor of a pod group."""
        return "" if self.report is None else str(self.report.key.flavor)


def row_id(key: GangKey) -> str:
    """Of the row of a gang with a start barrier."""
    return f"{_IDS[key.source]}-{key.namespace}.{key.name}"


def gang_row(it: Explanation, seen: GangSnapshot, prices: Prices) -> StatusRow:
    """The row of a gang with a start barrier."""
    waits, key = it.state in WAITING_STATES, seen.workload.key
    moments = (it.waiting_since, *(one.oldest_created_at for one in it.missing)) if waits else ()
    return _row(
        it,
        id=row_id(key),
        kind=RowKind.GANG,
        path=f"/{FOLDERS[key.source]}/{key}",
        message=_message(it),
        created=seen.workload.created,
        needs=(GANGS[key.source],),
        since=min((moment for moment in moments if moment is not None), default=None),
        held=held_devices(seen, prices) if waits else (),
        ended=_ended(it.state, seen),
    )


def pod_group_row(it: Explanation, report: GroupStatus) -> StatusRow:
    """The row of a pod group, whose name may hold anything that an annotation may."""
    api = report.pod_group.api if report.pod_group is not None else ""
    return _row(
        it,
        id=f"group-{report.label}",
        kind=RowKind.GROUP,
        path=f"/groups/{quote(it.namespace, safe='')}/{quote(it.name, safe='')}?way={report.key.flavor}",
        message=_short(report.message or _message(it)),
        created=report.created,
        needs=(PODS, ListRight(group=api, resource="podgroups")) if api else (PODS,),
        since=report.created if _TONES.get(it.state) is None and report.created else None,
        report=report,
    )


def held_devices(seen: GangSnapshot, prices: Prices) -> tuple[HeldDevices, ...]:
    """By resource name: those of pods that have started and are not released."""
    counts, sums = Counter[str](), dict[str, float]()
    for pod, devices in count.device_holders(seen):
        since = seen.announced.get(pod.uid) if pod.barrier_since is None else pod.barrier_since
        if since is None:
            continue
        for resource, many in devices:
            counts[resource] += many
            sums[resource] = sums.get(resource, 0.0) + many * since
    return tuple(
        HeldDevices(resource=name, count=many, since_sum=sums[name], price=prices.get(name))
        for name, many in sorted(counts.items())
    )


def sum_devices(rows: Iterable[StatusRow]) -> tuple[HeldDevices, ...]:
    """Those of all rows, the most first."""
    by_resource: dict[str, list[HeldDevices]] = {}
    for row in rows:
        for it in row.held:
            by_resource.setdefault(it.resource, []).append(it)
    found = [
        msgspec.structs.replace(some[0], count=sum(it.count for it in some), since_sum=sum(it.since_sum for it in some))
        for some in by_resource.values()
    ]
    return tuple(sorted(found, key=lambda it: (-it.count, it.resource)))


def _ended(state: str, seen: GangSnapshot) -> float | None:
    """When it was ended at its gate, as far as its ConfigMap tells."""
    workload, home = seen.workload, seen.own_config_map
    if home is None:
        return None
    if state == GangState.INDEX_FAILED:  # the verdict came at once, and nothing is written after it
        return home.written_at if home.verdict is not None else None
    clock, timeout = home.waiting_since, workload.config.timeout
    present = Generation(workload.uid, workload.attempt, workload.epoch)
    if state != GangState.TIMED_OUT or clock is None or timeout is None or not clock.generation.covers(present):
        return None
    return clock.at + timeout


def _row(it: Explanation, **more: Any) -> StatusRow:
    reasons = Counter[str]()
    for one in it.missing:
        reasons[one.reason] += one.count
    return StatusRow(
        namespace=it.namespace,
        name=it.name,
        state=str(it.state),
        tone=_TONES.get(it.state, Severity.WAIT),
        started=it.started,
        expected=it.expected,
        until=None if it.waiting_since is None or it.timeout is None else it.waiting_since + it.timeout,
        reasons=tuple(reasons.items()),
        explanation=msgspec.structs.replace(it, now=0.0),
        **more,
    )


def _message(it: Explanation) -> str:
    """Of the oldest reason; the reasons themselves have a column of their own."""
    return _short(next((one.message for one in it.missing if one.message), it.message))


def _short(text: str) -> str:
    words = terminal_text.line(text)
    return words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - 1] + "…"


_STATES: Final = {
    Severity.BAD: (
        "Unknown",
        GangState.TIMED_OUT,
        GangState.INDEX_FAILED,
        GangState.GATE_MISSING,
        GangState.CONFIG_MAP_CONFLICT,
        GangState.FAILED,
        names.REASON_CANNOT_GATHER,
        names.REASON_INVALID_GROUP,
        names.REASON_INVALID_GANG_GROUP,
        names.REASON_POD_GROUP_MISSING,
        names.REASON_ROLLED_BACK,
        names.REASON_ROLLBACK_BLOCKED,
        names.REASON_NATIVE_UNAVAILABLE,
        names.REASON_NOT_RECORDED,
    ),
    Severity.GOOD: (GangState.RELEASED, names.REASON_SATISFIED, names.REASON_RUNNING),
    Severity.QUIET: (
        *(GangState.SUSPENDED, GangState.COMPLETED, GangState.IDLE, GangState.DELETING, GangState.MANAGED_ELSEWHERE),
        *(GangState.NOT_GATED, names.REASON_FINISHED),
    ),
}
_TONES: Final = {state: tone for tone, states in _STATES.items() for state in states}
"""All others are WAIT."""
