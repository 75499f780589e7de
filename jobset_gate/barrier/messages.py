"""Messages of conditions and verdicts (A7, A9).

`explain.text` words missing pods for termination message, condition, Event, status page and command line alike.
Messages have no timestamps.
"""

import re
from collections import Counter
from collections.abc import Sequence

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.count import GangCount
from jobset_gate.barrier.missing import cause_key, commands
from jobset_gate.barrier.model import (
    DesiredCondition,
    GangSnapshot,
    Generation,
    MissingByReason,
    PendingCause,
    PendingReason,
    Verdict,
    VerdictKind,
    WorkloadSeen,
)
from jobset_gate.explain import text
from jobset_gate.objects import terminal_text

CONDITION_LIMIT = 32_768
"""Bytes of a condition's message: the API's limit."""

_GENERATION = re.compile(r"(?:^| )\(uid ([^\s(),]{1,128}), attempt (\d{1,9}), epoch (\d{1,9})\)$")
_PROGRESS = re.compile(r"(?:^|: |with )(?:all |(\d{1,9})/)(\d{1,9}) pods started")
_MISSING = re.compile(r"; (?:missing: )?(\d{1,9}) pods?: (\w+)")
_GROUP = re.compile(r"(?P<head>(?:missing: )?\d+ pods?: (?P<why>\w+): )(?P<words>.*?)(?P<slots> \([^()]*\))?")
"""One reason in the message of a waiting gang."""


def progress(tally: GangCount) -> str:
    """`297/300 pods started`."""
    return f"{tally.started}/{tally.expected} pods started"


def parse_progress(message: str) -> tuple[int, int] | None:
    """(started, expected) in the message of a condition or verdict."""
    found = _PROGRESS.search(message)
    return (int(found[1] or found[2]), int(found[2])) if found is not None else None


def parse_missing(message: str) -> Counter[str]:
    """Missing pods by reason in the message of a condition or verdict."""
    found: Counter[str] = Counter()
    for many, why in _MISSING.findall(message):
        if why in set(PendingReason):
            found[why] += int(many)
    return found


WAITING = frozenset({names.REASON_WAITING, names.REASON_CANNOT_GATHER})
"""Reasons of the condition while the barrier is closed."""


def waiting(seen: GangSnapshot, tally: GangCount, missing: Sequence[MissingByReason]) -> DesiredCondition:
    """The condition while the barrier is closed. It has no durations, so that it changes with the gang only."""
    timeout, suspended = seen.workload.config.timeout, seen.workload.suspended
    tail = [f"next: {command}" for command in commands(missing)]
    if timeout is not None:
        follows = text.after_timeout(seen.workload, None)
        tail.insert(0, f"at the timeout of {text.format_duration(timeout)}: {follows}")
    start = "; ".join(it for it in (progress(tally), seen.cannot_gather, differing(seen.workload)) if it)
    message = "suspended" if suspended else text.sentence(start, missing, CONDITION_LIMIT, tail)
    reason = names.REASON_CANNOT_GATHER if seen.cannot_gather else names.REASON_WAITING
    return DesiredCondition(status="False", reason=reason, message=message)


def differing(workload: WorkloadSeen) -> str:
    """Which pods differ from what counts, "" if none does: such a difference never opens a gate (K2)."""
    if not workload.differing:
        return ""
    which = ", ".join(workload.differing)
    return f"not all its pods say the same, and the most patient values count until these are deleted: {which}"


def two_owners(other: WorkloadSeen) -> str:
    """A start group of the same name waits under another owner."""
    its = other.involved_object
    return (
        f"pods of this name wait under {its.kind} {its.name}, too: a start group has one owner: leave the launcher "
        "out, and set launcherCreationPolicy WaitForWorkersReady"
    )


def without_noise(message: str) -> str:
    """A waiting condition's message with the parts removed that change while the gang does not.

    `0/40 nodes are available` changes with every node, and a kubelet's message with every attempt.
    """
    return "; ".join(map(_group_without_noise, message.split("; ")))


def _group_without_noise(piece: str) -> str:
    found = _GROUP.fullmatch(piece)
    if found is None or found["why"] not in set(PendingReason):
        return piece
    return (
        found["head"]
        + cause_key(PendingCause(reason=PendingReason(found["why"]), message=found["words"]))
        + (found["slots"] or "")
    )


def given_up(workload: WorkloadSeen, cause: str, tally: GangCount, missing: Sequence[MissingByReason]) -> str:
    """Message of TimedOut and IndexFailed: the count, and the first ten missing slots by reason (A7)."""
    releases = workload.releases_on_timeout
    if cause == names.REASON_INDEX_FAILED:
        what = f"{'opened' if releases else 'ended'}, since an index has failed for good"
    else:
        what = f"{'opened after its timeout of' if releases else 'timed out after'} {workload.config.timeout}s"
    return text.sentence(f"{what}: {progress(tally)}", missing, verdict_codec.MESSAGE_LIMIT)


def decided(verdict: Verdict) -> DesiredCondition:
    """The condition of a verdict. It names the generation, so that the verdict survives its ConfigMap (A10).

    With the UID: the API server accepts a status write for a deleted workload on a new one of the same name.
    """
    its = verdict.generation
    return DesiredCondition(
        status="True" if verdict.kind is VerdictKind.RELEASE else "False",
        reason=verdict.cause,
        message=f"{verdict.message} (uid {its.uid}, attempt {its.attempt}, epoch {its.epoch})".lstrip(),
    )


def verdict_in_condition(condition: DesiredCondition | None, uid: str) -> Verdict | None:
    """The reverse of `decided`: the verdict on the workload of this UID, None if the condition names none.

    A condition without UID, as earlier versions wrote it, may be of another workload.
    """
    if condition is None or condition.reason not in verdict_codec.CAUSES:
        return None
    found = _GENERATION.search(condition.message)
    if found is None or found[1] != uid:
        return None
    return Verdict(
        kind=VerdictKind.RELEASE if condition.status == "True" else VerdictKind.TIMEOUT,
        generation=Generation(uid, int(found[2]), int(found[3])),
        cause=condition.reason,
        message=verdict_codec.truncate(condition.message[: found.start()], verdict_codec.MESSAGE_LIMIT),
    )


def without_generation(message: str) -> str:
    """The message of a verdict's condition without the generation that `decided` appends: people do not need it."""
    return _GENERATION.sub("", message)


def bare_pod(pod: str, tally: GangCount) -> str:
    """Message of a release since this pod has no barrier (K6)."""
    return (
        f"gate opened with {progress(tally)}: the pod {pod} carries no {names.BARRIER_CONTAINER} container and waits "
        "for no other: the webhook of jobset-gate was not there when it was created, or another one removed it"
    )


def gate_missing(seen: GangSnapshot) -> DesiredCondition:
    """The pods have no barrier: the webhook was unavailable when the workload was created (A10)."""
    bare = [target.name for target in seen.workload.targets if not target.has_barrier]
    which = verdict_codec.truncate(", ".join(bare), verdict_codec.MESSAGE_LIMIT)
    problem, kind = seen.workload.config_problem, seen.workload.source.kind
    if problem:
        what = f"its groupSchedulingConfig is not valid: {terminal_text.line(problem)}"
    elif not bare:
        what = f"its groupSchedulingConfig names no replicatedJob of this {kind}"
    else:
        what = (
            f"the pod templates{f' of {which}' if which else ''} carry no {names.BARRIER_CONTAINER} container: "
            f"the webhook of jobset-gate was not there when this {kind} was created"
        )
    return DesiredCondition(
        status="False",
        reason=names.REASON_GATE_MISSING,
        message=f"nothing holds the pods; {what}; create the {kind} again to have it gated",
    )


def config_map_conflict(seen: GangSnapshot) -> DesiredCondition:
    """A ConfigMap without our label has the gang's name; it is neither adopted nor overwritten (A10)."""
    name = seen.workload.source.config_map_name(seen.workload.name)
    return DesiredCondition(
        status="False",
        reason=names.REASON_CONFIG_MAP_CONFLICT,
        message=f"the ConfigMap {name} exists and is not jobset-gate's; the gang waits until it is deleted or renamed",
    )
