"""Texts of an explanation, for verdict, condition, status page and command line; and its JSON."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import MissingByReason, WorkloadSeen
from jobset_gate.explain.model import WAITING_STATES, Explanation, FailurePolicies
from jobset_gate.objects.unstructured import Json

_MIN_MESSAGE = 20
"""Bytes that a reason's message keeps at least."""
_GLUE = "; "


def sentence(start: str, missing: Sequence[MissingByReason], limit: int, tail: Sequence[str] = ()) -> str:
    """`<start>; missing: 37 pods: Unscheduled: ... (...); <tail>`, at most `limit` bytes.

    First the messages of single reasons are cut, then the tail is left out; pods that are not named are counted.
    """
    begun = f"{start}; missing: " if missing else start + _GLUE
    pieces = list(_fit(missing, tail, limit - len(begun.encode()) + len(_GLUE)))
    return begun + _GLUE.join(pieces) if pieces else start


def headline(it: Explanation) -> str:
    """`JobSet team/train: Waiting: 297/300 pods started`."""
    text = f"{it.kind} {it.namespace}/{it.name}: {it.state}"
    if it.started is not None and it.expected and it.state in WAITING_STATES:
        text += f": {it.started}/{it.expected} pods started"
    return f"{text}: {it.message}" if it.message else text


def missing_line(group: MissingByReason) -> str:
    """`37 pods: Unscheduled: 0/40 nodes are available (workers-2/17, workers-2/18 and 35 more)`."""
    return f"{missing_reason(group)} ({slot_list(group)})" if group.slots else missing_reason(group)


def missing_reason(group: MissingByReason) -> str:
    """`37 pods: Unscheduled: 0/40 nodes are available`."""
    text = f"{format_pod_count(group.count)}: {group.reason}"
    return f"{text}: {group.message}" if group.message else text


def slot_list(group: MissingByReason) -> str:
    """The first few slots."""
    names_, more = ", ".join(group.slots), group.count - len(group.slots)
    return f"{names_} and {more} more" if more > 0 else names_


def format_pod_count(many: int) -> str:
    """So many, in words."""
    return "1 pod" if many == 1 else f"{many} pods"


def format_duration(seconds: float) -> str:
    """As a person says it: 45s, 4m10s, 3h5m, 2d4h."""
    whole = max(0, int(seconds))
    for unit, name, part, rest in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= unit:
            small = whole % unit // part
            return f"{whole // unit}{name}" + (f"{small}{rest}" if small else "")
    return f"{whole}s"


def format_time(moment: float) -> str:
    """In UTC, to the second."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_left(it: Explanation) -> str:
    for_ever = "no timeout is set: it waits for ever"
    if it.waiting_since is None:
        if it.state not in WAITING_STATES:
            return ""
        return (
            for_ever
            if it.timeout is None
            else f"the timeout of {format_duration(it.timeout)} begins when the first pod starts"
        )
    if it.timeout is None or it.left is None:
        return f"{for_ever}; the first pod started {format_duration(it.now - it.waiting_since)} ago"
    if it.left <= 0:
        return f"time is up: the timeout was {format_duration(it.timeout)}"
    return f"{format_duration(it.left)} left of {format_duration(it.timeout)}"


def is_waiting(it: Explanation) -> bool:
    """Whether a timeout is still to come."""
    return it.state in WAITING_STATES or it.waiting_since is not None


def ownership(it: Explanation) -> str:
    """Of a start group: what owns its pods, and which attempt this is. Not where the headline names the owner."""
    if it.owner is None or it.owner.kind == it.kind:
        return ""
    return f"pods of {it.owner.kind} {it.owner.name}, attempt {it.attempt}"


# --- After a timeout ------------------------------------------------------------------------------------------------


def after_timeout(workload: WorkloadSeen, policy: FailurePolicies | None) -> str:
    """One sentence."""
    if workload.releases_on_timeout:
        return f"the gate opens without those that are missing ({names.ON_TIMEOUT}: {names.ON_TIMEOUT_RELEASE})"
    ends = f"every barrier ends with exit code {names.EXIT_TIMED_OUT}"
    if workload.owner is not None:
        return f"{ends}; what follows is up to the {workload.owner.kind}"
    restarts, kind = workload.source.restarts, workload.source.kind
    if policy is None:
        return f"{ends}; what follows is up to backoffLimit and {'failurePolicy' if restarts else 'podFailurePolicy'}"
    if not restarts:
        return f"{ends}; {_jobs_fail(policy, kind)}"
    return "; ".join((ends, _jobs_fail(policy), _workload_fails(policy, kind)))


def _jobs_fail(policy: FailurePolicies, only: str = "") -> str:
    """From the pods to their Jobs; `only`: the kind of a workload that is its only Job."""
    if policy.exit_actions:
        return f"podFailurePolicy says {' or '.join(policy.exit_actions)} to that"
    limits = " or ".join(map(str, policy.backoff_limits or (0,)))
    if policy.per_index:
        fails = "each index fails at once" if limits == "0" else f"each index fails after {limits} retries"
        return f"with backoffLimitPerIndex {limits} {fails}, and the {only} when all its indexes have ended"
    if limits == "0":
        return f"with backoffLimit 0 {f'the {only}' if only else 'its Job'} fails at once"
    used_up, fail = f"until backoffLimit {limits} is used up", f"the {only} fails" if only else "the Jobs fail"
    if policy.restarts_in_place:
        return f"kubelets restart it, with the same result, {used_up} and {fail}"
    if only:
        return f"the {only} replaces its pods {used_up}, then it fails"
    return f"Jobs replace their pods {used_up}, then they fail"


def _workload_fails(policy: FailurePolicies, kind: str) -> str:
    """From a failed Job to the workload that it belongs to."""
    if policy.max_restarts is None:
        return f"without a failurePolicy the {kind} fails then"
    if policy.rules:
        rules = ", ".join(policy.rules)
        return f"the first rule of the failurePolicy that fits decides ({rules}), else {_restart(policy, kind)}"
    return _restart(policy, kind)


def _restart(policy: FailurePolicies, kind: str) -> str:
    limit = policy.max_restarts or 0
    left = max(0, limit - policy.counted)
    if not left:
        used = f": {policy.counted} of {limit} restarts are used" if limit else " (maxRestarts 0)"
        return f"the {kind} fails{used}"
    return f"the {kind} restarts all its Jobs ({left} of {limit} restarts are left)"


# --- Within so many bytes --------------------------------------------------------------------------------------------


def _fit(missing: Sequence[MissingByReason], tail: Sequence[str], room: int) -> Iterator[str]:
    """Whole entries. The tail matters less than any reason."""
    whole = [missing_line(group) for group in missing]
    if sum(map(_size, whole)) > room:
        yield from _cut(missing, whole, room)
        return
    for text in (*whole, *tail):
        room -= _size(text)
        if room < 0:
            return
        yield text


def _cut(missing: Sequence[MissingByReason], whole: Sequence[str], room: int) -> Iterator[str]:
    """Shortened entries, then the number of pods left out. Every reason matters more than one whole message."""
    many = sum(group.count for group in missing)
    room -= _size(_left_out(many, len(missing)))
    for number, (group, text) in enumerate(zip(missing, whole, strict=True)):
        groups = len(missing) - number
        share = room // groups - len(_GLUE)
        shown = text if len(text.encode()) <= share else _brief(group, share)
        if _size(shown) > room:
            rest = _left_out(many, groups)
            if _size(rest) <= room + _size(_left_out(many, len(missing))):
                yield rest
            return
        yield shown
        room -= _size(shown)
        many -= group.count


def _left_out(many: int, groups: int) -> str:
    return f"and {many} more {'pod' if many == 1 else 'pods'} in {groups} {'group' if groups == 1 else 'groups'}"


def _brief(group: MissingByReason, share: int) -> str:
    """About `share` bytes: names the slots that have waited longest of all, and cuts the message."""
    few = msgspec.structs.replace(group, slots=group.slots[: max(1, group.oldest_count)])
    text = missing_line(few)
    over = len(text.encode()) - share
    if over <= 0:
        return text
    kept = max(_MIN_MESSAGE, len(group.message.encode()) - over)
    return missing_line(msgspec.structs.replace(few, message=verdict_codec.truncate(group.message, kept)))


def _size(text: str) -> int:
    """Bytes with the glue."""
    return len(text.encode()) + len(_GLUE)


# --- As JSON ---------------------------------------------------------------------------------------------------------


def explanation_json(it: Explanation) -> Json:
    """The same for the command line and the status page. Fields are added, never renamed."""
    return {
        "kind": "Explanation",
        "of": it.kind,
        "source": it.source or None,
        "namespace": it.namespace,
        "name": it.name,
        "owner": None
        if it.owner is None
        else {"apiVersion": it.owner.api_version, "kind": it.owner.kind, "name": it.owner.name},
        "attempt": it.attempt,
        "state": str(it.state),
        "message": it.message,
        "at": time_or_none(it.now),
        "expected": it.expected,
        "started": it.started,
        "passed": it.passed,
        "replicatedJobs": [
            {"name": part.name, "started": part.started, "expected": part.expected} for part in it.parts
        ],
        "missing": [_missing(one) for one in it.missing],
        "differing": list(it.differing),
        "timeoutSeconds": it.timeout,
        "waitingSince": time_or_none(it.waiting_since),
        "secondsLeft": None if it.left is None else round(it.left, 1),
        "atTimeout": it.afterwards or None,
        "decidedAt": time_or_none(it.decided),
        "pod": None
        if it.subject is None
        else {"name": it.subject.name, "slot": it.subject.slot or None, "message": it.subject.message},
        "controller": None
        if it.controller is None
        else {"leads": it.controller.leads, "message": it.controller.message},
        "unknown": list(it.unknown),
        "commands": list(it.commands),
    }


def _missing(one: MissingByReason) -> Json:
    return {
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
        "first": list(one.slots),
        "since": time_or_none(one.oldest_created_at),
        "command": one.command or None,
    }


def time_or_none(seconds: float | None) -> str | None:
    """In UTC; null where it is not known or has not come."""
    return None if seconds is None else format_time(seconds)
