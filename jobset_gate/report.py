"""Facts and decisions as text: the condition's messages and the verdict's (A7, A9).

One builder with a limit, so that termination message, condition and event say the same thing. Messages carry no
timestamps, and while a gang waits they name classes and numbers only, so that they do not flap.
"""

import re
from collections.abc import Iterable, Mapping

from jobset_gate import names, verdicts
from jobset_gate.model import (
    Condition,
    ConditionSeen,
    GangSeen,
    Generation,
    Kind,
    Missing,
    Tally,
    Verdict,
    Why,
)

NAMED = 10
"""Missing slots that a verdict names one by one (A7)."""

_GENERATION = re.compile(r"(?:^| )\(attempt (\d{1,9}), epoch (\d{1,9})\)$")
_SLOT_LIMIT = 120
"""Bytes of a message kept back for "and N more"."""

_REASON_AT_LEAST = 20
"""Bytes that a reason keeps."""


def progress(tally: Tally) -> str:
    """`297/300 pods started`."""
    return f"{tally.started}/{tally.expected} pods started"


def waiting(seen: GangSeen, tally: Tally, reasons: Mapping[Why, int]) -> Condition:
    """What the condition says while the gate is closed."""
    if seen.jobset.suspended:
        return Condition(status="False", reason=names.REASON_WAITING, message="suspended")
    message = progress(tally)
    if reasons:
        message += "; missing: " + ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
    return Condition(status="False", reason=names.REASON_WAITING, message=message)


def started(tally: Tally) -> str:
    """What a release says that found everybody there."""
    return f"all {tally.expected} pods started"


def bypassed(tally: Tally) -> str:
    """What a release says that somebody asked for."""
    return f"gate opened by the annotation {names.BYPASS} with {progress(tally)}"


def timed_out(tally: Tally, timeout: int, missing: Iterable[Missing], *, releases: bool) -> str:
    """The verdict that a human can act on: how many, and the first ten missing, grouped by reason (A7)."""
    what = "opened after its timeout of" if releases else "timed out after"
    return name_missing(f"{what} {timeout}s: {progress(tally)}", missing, verdicts.MESSAGE_LIMIT)


def name_missing(head: str, missing: Iterable[Missing], limit: int) -> str:
    """`<head>; missing: a/1, a/2 (reason), b/7 (reason), and 30 more` in at most `limit` bytes.

    Longest-waiting first, those of one reason together; at most `NAMED` slots are named.
    """
    ordered = sorted(missing, key=lambda one: (one.since is None, one.since or 0.0))
    if not ordered:
        return verdicts.shorten(head, limit)
    groups: dict[str, list[str]] = {}
    for one in ordered[:NAMED]:
        reason = f"{one.stall.why.value}: {one.stall.detail}" if one.stall.detail else one.stall.why.value
        groups.setdefault(reason, []).append(one.slot)
    text, named = head + "; missing: ", 0
    for number, (reason, slots) in enumerate(groups.items()):
        part = (", " if number else "") + f"{', '.join(slots)} ({reason})"
        room = limit - _SLOT_LIMIT - len(text.encode())
        share = room // (len(groups) - number)
        if len(part.encode()) > share:
            # All slots matter more than whole sentences about the first of them.
            bare = (", " if number else "") + ", ".join(slots)
            part = bare + f" ({verdicts.shorten(reason, max(_REASON_AT_LEAST, share - len(bare.encode()) - 3))})"
            if len(part.encode()) > room:
                break
        text += part
        named += len(slots)
    rest = len(ordered) - named
    if rest:
        text += f", and {rest} more" if named else f"{rest} pods"
    return verdicts.shorten(text, limit)


def decided(verdict: Verdict) -> Condition:
    """The condition that a verdict makes. It names the generation, so the decision survives its ConfigMap (A10)."""
    its = verdict.generation
    return Condition(
        status="True" if verdict.kind is Kind.RELEASE else "False",
        reason=verdict.cause,
        message=f"{verdict.message} (attempt {its.attempt}, epoch {its.epoch})".lstrip(),
    )


def decision_in(condition: ConditionSeen | None, uid: str) -> Verdict | None:
    """The verdict that our own condition tells of, if it tells of one; the reverse of `decided`."""
    if condition is None or condition.reason not in {
        names.REASON_STARTED,
        names.REASON_TIMED_OUT,
        names.REASON_BYPASSED,
    }:
        return None
    found = _GENERATION.search(condition.message)
    if found is None:
        return None
    return Verdict(
        kind=Kind.RELEASE if condition.status == "True" else Kind.TIMEOUT,
        generation=Generation(uid, int(found[1]), int(found[2])),
        cause=condition.reason,
        message=condition.message[: found.start()],
    )


def gate_missing(seen: GangSeen) -> Condition:
    """No barrier holds the pods: the webhook was not there when the JobSet was created (A10)."""
    bare = [target.name for target in seen.jobset.targets if not target.has_barrier]
    problem = seen.jobset.config_problem
    if problem:
        what = f"its groupSchedulingConfig is not valid: {problem}"
    elif not bare:
        what = "its groupSchedulingConfig names no replicatedJob of this JobSet"
    else:
        what = (
            f"the pod templates of {', '.join(bare)} carry no {names.BARRIER_CONTAINER} container: "
            "the webhook of jobset-gate was not there when this JobSet was created"
        )
    return Condition(
        status="False",
        reason=names.REASON_GATE_MISSING,
        message=f"nothing holds the pods; {what}; create the JobSet again to have it gated",
    )


def config_map_conflict(seen: GangSeen) -> Condition:
    """Somebody else's ConfigMap has the gang's name; it is never adopted nor overwritten (A10)."""
    name = names.config_map_name(seen.jobset.name)
    return Condition(
        status="False",
        reason=names.REASON_CONFIG_MAP_CONFLICT,
        message=f"the ConfigMap {name} exists and is not jobset-gate's; the gang waits until it is deleted or renamed",
    )
