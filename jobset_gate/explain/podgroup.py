"""Why a pod group waits, in the words of a JobSet's gang: its report, its members by reason, what to run next (G5)."""

from collections.abc import Iterator, Sequence

from jobset_gate import names
from jobset_gate.barrier.model import MissingByReason
from jobset_gate.explain.model import ControllerStatus, ExplainedPod, Explanation
from jobset_gate.podgroups.model import GangMode
from jobset_gate.podgroups.phase import last_ungated_at
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.podgroups.status import GroupStatus, missing_members, unscheduled_text, waiting_for

MOST_COMMANDS = 3


def explain_pod_group(
    report: GroupStatus,
    now: float,
    *,
    controller: ControllerStatus | None = None,
    unknown: Sequence[str] = (),
    pod: str = "",
) -> Explanation:
    """Everything there is to say of a group; `pod` is the name of a member that the command line names."""
    record, counts = report.record, report.counts
    placing = record is not None and record.stage is AdmissionState.OPEN and record.satisfied is None
    clock = last_ungated_at(report.snapshot, record, now) if placing and record is not None else None
    return Explanation(
        kind=names.POD_GROUP,
        namespace=report.key.namespace,
        name=report.key.name or "<none>",
        state=report.reason,
        message=report.message.replace(
            unscheduled_text(report.snapshot), ""
        ),  # the missing members are listed by reason
        now=now,
        expected=counts.minimum,
        started=counts.bound,
        passed=counts.running,
        missing=tuple(_lacks(report)),
        timeout=_limit(record) if placing and record is not None else None,
        waiting_since=clock,
        decided=None if record is None or record.stage is not AdmissionState.OPEN else record.at,
        afterwards=_afterwards(record) if placing and record is not None else "",
        subject=next((_subject(it) for it in report.snapshot.members if it.name == pod), None) if pod else None,
        controller=controller,
        unknown=tuple(unknown),
        commands=_commands(report),
    )


def _limit(record: AdmissionRecord) -> int:
    return round(float(record.wait) * (2 if record.extended else 1))


def _afterwards(record: AdmissionRecord) -> str:
    if record.mode is GangMode.NON_STRICT:
        return "nothing is taken back (its mode is NonStrict): what is bound goes on, the others wait for a place"
    return "all of its pods are taken back, so that others get the room, and it waits to be opened again"


# --- Members ---------------------------------------------------------------------------------------------------------


def _lacks(report: GroupStatus) -> Iterator[MissingByReason]:
    """Members without a node, by what holds them; last those without a pod."""
    yield from missing_members(report.snapshot.members)
    absent = report.counts.minimum - report.counts.present
    if absent > 0:
        yield MissingByReason(
            reason="NotCreated", message="no such pods exist yet", count=absent, command=_members(report)
        )


def _subject(member: MemberPod) -> ExplainedPod:
    if member.bound and member.alive:
        return ExplainedPod(
            name=member.name, slot="", message=f"is bound to node {member.node}" if member.node else "has ended"
        )
    return ExplainedPod(name=member.name, slot="", message=": ".join(waiting_for(member)))


# --- What to run next ------------------------------------------------------------------------------------------------


def _members(report: GroupStatus) -> str:
    return f"kubectl get pods -n {report.key.namespace} -l {names.POD_GROUP_LABEL}={report.label}"


def _commands(report: GroupStatus) -> tuple[str, ...]:
    namespace, group = report.key.namespace, report.pod_group
    described = [f"kubectl describe podgroups.{group.api} {group.name} -n {namespace}"] if group else []
    pods = [it for it in report.snapshot.members if it.alive and not it.bound]
    first = [f"kubectl describe pod {min(it.name for it in pods)} -n {namespace}"] if pods else []
    own = {
        names.REASON_POD_GROUP_MISSING: [f"kubectl get podgroups -n {namespace}", _members(report)],
        names.REASON_WAITING_FOR_CAPACITY: ["kubectl describe nodes", _members(report)],
        names.REASON_BEHIND_OTHER: ["kubectl jobset-gate get groups -A -o wide"],
        names.REASON_WAITING_FOR_GANG_GROUP: [f"kubectl jobset-gate get groups -n {namespace} -o wide"],
        names.REASON_OTHER_GATE: first,
        names.REASON_PLACING: first,
        names.REASON_TIMED_OUT: first,
    }.get(report.reason, [_members(report)])
    return tuple(dict.fromkeys((*own, *described)))[:MOST_COMMANDS]
