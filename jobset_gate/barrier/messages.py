"""Facts and decisions as text: the condition's messages and the verdict's (A7, A9).

What is missing is said by the one builder of `explained_lines`, so that termination message, condition, event, page
and command line say the same thing. Messages carry no timestamps, and `gist` tells which differences are no news.
"""

import re
from collections import Counter
from collections.abc import Sequence

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.count import GangCount
from jobset_gate.barrier.missing import cause_key, commands
from jobset_gate.barrier.model import (
    ConditionSeen,
    DesiredCondition,
    GangSnapshot,
    Generation,
    MissingByReason,
    PendingCause,
    PendingReason,
    Verdict,
    VerdictKind,
)
from jobset_gate.explain import text as said
from jobset_gate.explain.after_timeout import after_timeout
from jobset_gate.explain.model import Explanation, GangState
from jobset_gate.objects import terminal_text

CONDITION_LIMIT = 32_768
"""Bytes of a condition's message: what the API takes."""

_GENERATION = re.compile(r"(?:^| )\(uid ([^\s(),]{1,128}), attempt (\d{1,9}), epoch (\d{1,9})\)$")
_PROGRESS = re.compile(r"(?:^|: |with )(?:all |(\d{1,9})/)(\d{1,9}) pods started")
_MISSING = re.compile(r"; (?:missing: )?(\d{1,9}) pods?: (\w+)")
_GROUP = re.compile(r"(?P<head>(?:missing: )?\d+ pods?: (?P<why>\w+): )(?P<words>.*?)(?P<slots> \([^()]*\))?")
"""One of a waiting condition's groups."""


def progress(tally: GangCount) -> str:
    """`297/300 pods started`."""
    return f"{tally.started}/{tally.expected} pods started"


def parse_progress(message: str) -> tuple[int, int] | None:
    """How many of how many pods had started, by what a condition or a verdict says of it."""
    found = _PROGRESS.search(message)
    return (int(found[1] or found[2]), int(found[2])) if found is not None else None


def parse_missing(message: str) -> Counter[str]:
    """For which reasons how many pods were missing, by what a condition or a verdict says of it."""
    found: Counter[str] = Counter()
    for many, why in _MISSING.findall(message):
        if why in set(PendingReason):
            found[why] += int(many)
    return found


def waiting(seen: GangSnapshot, tally: GangCount, lacks: Sequence[MissingByReason]) -> DesiredCondition:
    """What the condition says while the gate is closed: what `explain` says, but for what time alone changes."""
    jobset = seen.jobset
    if jobset.suspended:
        return DesiredCondition(status="False", reason=names.REASON_WAITING, message="suspended")
    message = _waiting(progress(tally), tuple(lacks), jobset.config.timeout, after_timeout(jobset, None))
    return DesiredCondition(status="False", reason=names.REASON_WAITING, message=message)


def _waiting(head: str, lacks: tuple[MissingByReason, ...], timeout: int | None, follows: str) -> str:
    it = Explanation(
        kind="JobSet",
        namespace="",
        name="",
        state=GangState.WAITING,
        timeout=timeout,
        afterwards=follows,
        commands=commands(lacks),
    )
    return said.sentence(head, lacks, CONDITION_LIMIT, tuple(said.tail(it, timeless=True)))


def without_noise(message: str) -> str:
    """A waiting condition's message without what changes while nothing happens to the gang.

    `0/40 nodes are available` changes with every node, and the kubelet's words with every try; the numbers and the
    slots are ours, and stay.
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


def started(tally: GangCount) -> str:
    """What a release says that found everybody there."""
    return f"all {tally.expected} pods started"


def bypassed(tally: GangCount) -> str:
    """What a release says that somebody asked for."""
    return f"gate opened by the annotation {names.BYPASS} with {progress(tally)}"


def timed_out(tally: GangCount, timeout: int, lacks: Sequence[MissingByReason], *, releases: bool) -> str:
    """The verdict that a human can act on: how many, and the first ten missing, grouped by reason (A7)."""
    what = "opened after its timeout of" if releases else "timed out after"
    return said.sentence(f"{what} {timeout}s: {progress(tally)}", lacks, verdict_codec.MESSAGE_LIMIT)


def decided(verdict: Verdict) -> DesiredCondition:
    """The condition that a verdict makes. It names the generation, so the decision survives its ConfigMap (A10).

    With the UID: an API server takes a status that was written for a deleted JobSet for the next one of its name.
    """
    its = verdict.generation
    return DesiredCondition(
        status="True" if verdict.kind is VerdictKind.RELEASE else "False",
        reason=verdict.cause,
        message=f"{verdict.message} (uid {its.uid}, attempt {its.attempt}, epoch {its.epoch})".lstrip(),
    )


def verdict_in_condition(condition: ConditionSeen | None, uid: str) -> Verdict | None:
    """The verdict on the JobSet of this UID that our own condition tells of, if any; the reverse of `decided`.

    One without a UID, as earlier versions wrote them, proves nothing: it may have been written for another JobSet.
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


def gate_missing(seen: GangSnapshot) -> DesiredCondition:
    """No barrier holds the pods: the webhook was not there when the JobSet was created (A10)."""
    bare = [target.name for target in seen.jobset.targets if not target.has_barrier]
    which = verdict_codec.truncate(", ".join(bare), verdict_codec.MESSAGE_LIMIT)
    problem = seen.jobset.config_problem
    if problem:
        what = f"its groupSchedulingConfig is not valid: {terminal_text.line(problem)}"
    elif not bare:
        what = "its groupSchedulingConfig names no replicatedJob of this JobSet"
    else:
        what = (
            f"the pod templates of {which} carry no {names.BARRIER_CONTAINER} container: "
            "the webhook of jobset-gate was not there when this JobSet was created"
        )
    return DesiredCondition(
        status="False",
        reason=names.REASON_GATE_MISSING,
        message=f"nothing holds the pods; {what}; create the JobSet again to have it gated",
    )


def config_map_conflict(seen: GangSnapshot) -> DesiredCondition:
    """Somebody else's ConfigMap has the gang's name; it is never adopted nor overwritten (A10)."""
    name = names.config_map_name(seen.jobset.name)
    return DesiredCondition(
        status="False",
        reason=names.REASON_CONFIG_MAP_CONFLICT,
        message=f"the ConfigMap {name} exists and is not jobset-gate's; the gang waits until it is deleted or renamed",
    )
