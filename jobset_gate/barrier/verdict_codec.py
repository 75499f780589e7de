"""Text form of verdicts and clocks in ConfigMap, pod annotation and the barrier's volume.

The first line of a verdict, five words, is for the barrier, a shell script. The rest is its message.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from jobset_gate import names
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind, WaitingSince
from jobset_gate.objects import terminal_text

MESSAGE_LIMIT = 1024
"""Bytes of a verdict's message, which a barrier writes as its termination message (A7)."""

MAX_VERDICT_LENGTH = 2048
"""Characters of a verdict; a longer text is not parsed."""

CAUSES = (
    names.REASON_STARTED,
    names.REASON_TIMED_OUT,
    names.REASON_INDEX_FAILED,
    names.REASON_BYPASSED,
    names.REASON_GATE_MISSING,
)

_MAX_DIGITS = 9
"""Shells compare numbers of this length safely."""

_LATEST = 10.0**11
"""Seconds since the epoch; the latest time of a gang's clock."""

_SMALL: dict[str | None, int] = {str(small): small for small in range(1024)}


def parse_epoch(text: str | None) -> int:
    """The epoch in an annotation; 0 if absent or malformed (A5)."""
    return parse_number(text, 0)


def parse_number(text: str | None, otherwise: int) -> int:
    """A number in a label or annotation: ASCII digits, or `otherwise`."""
    if text in _SMALL:  # nearly always; called three times per pod event, where it saves a twentieth of the time
        return _SMALL[text]
    if text and len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    return otherwise


def parse_generation(uid: str, attempt: str, epoch: str) -> Generation | None:
    """None without a UID or one of the numbers."""
    numbers = parse_number(attempt, -1), parse_number(epoch, -1)
    return Generation(uid, *numbers) if uid and min(numbers) >= 0 else None


def render(verdict: Verdict) -> str:
    """`<release|timeout> <uid> <attempt> <epoch> <cause>`, then the message, at most 1 KiB of it."""
    its = verdict.generation
    head = f"{verdict.kind.value} {its.uid} {its.attempt} {its.epoch} {verdict.cause}\n"
    return head + truncate(verdict.message, MESSAGE_LIMIT) + "\n" if verdict.message else head


def parse(text: str) -> Verdict | None:
    """None for a text that `render` does not write. Any user who may write ConfigMaps can write the message."""
    if len(text) > MAX_VERDICT_LENGTH:
        return None
    head, _, message = text.partition("\n")
    words = head.split(" ")
    if len(words) != 5 or words[0] not in set(VerdictKind) or words[4] not in CAUSES:
        return None
    generation = parse_generation(*words[1:4])
    if generation is None or not generation.uid.isprintable():
        return None
    return Verdict(
        kind=VerdictKind(words[0]),
        generation=generation,
        cause=words[4],
        message=truncate(terminal_text.lines(message.removesuffix("\n")), MESSAGE_LIMIT),
    )


def addressed(verdict: Verdict, pod: str) -> Verdict:
    """The verdict as the pod of this UID gets it where pods are gated one by one (K3): its own UID, attempt 0, and the
    attempt in the place of the epoch, since nothing marks such a pod with its generation.
    """
    return msgspec.structs.replace(verdict, generation=Generation(pod, 0, verdict.generation.attempt))


def addressee_verdict(text: str, pod: str, workload_uid: str) -> str:
    """The reverse: a pod's annotation as the text of the gang's verdict; "" if it is not addressed to this pod."""
    verdict = parse(text) if text else None
    if verdict is None or (verdict.generation.uid, verdict.generation.attempt) != (pod, 0):
        return ""
    its = Generation(workload_uid, verdict.generation.epoch, 0)
    return render(msgspec.structs.replace(verdict, generation=its))


def render_clock(clock: WaitingSince) -> str:
    """`<uid> <attempt> <epoch> <RFC 3339 time, UTC>`."""
    its = clock.generation
    when = datetime.fromtimestamp(clock.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{its.uid} {its.attempt} {its.epoch} {when}"


def parse_clock(text: str) -> WaitingSince | None:
    """None for a text that `render_clock` does not write."""
    words = text.split(" ")
    generation = parse_generation(*words[:3]) if len(words) == 4 else None
    if generation is None:
        return None
    try:
        at = datetime.fromisoformat(words[3])
    except ValueError:
        return None
    # The calendar's first and last day overflow in other time zones.
    if at.tzinfo is None or not 0 <= at.timestamp() <= _LATEST:
        return None
    return WaitingSince(generation=generation, at=at.timestamp())


def parse_membership(data: Mapping[str, str]) -> Membership | None:
    """The attempt and its members in a start group's ConfigMap; None without a number."""
    attempt = parse_number(data.get(names.KEY_ATTEMPT), -1)
    if attempt < 0:
        return None
    return Membership(attempt=attempt, members=parse_members(data.get(names.KEY_MEMBERS, ""))[0])


@lru_cache(maxsize=4)
def parse_members(text: str) -> tuple[frozenset[str], str]:
    """The members, and their canonical text. The same is read from the answer to each write and from its event."""
    members = frozenset(text.split())
    return members, _members_text(members)


def _members_text(members: frozenset[str]) -> str:
    return "\n".join(sorted(members))


def config_map_data(
    verdict: Verdict | None, clock: WaitingSince | None, membership: Membership | None = None, members: str = ""
) -> dict[str, str]:
    """Content of a gang's ConfigMap. `members`: those of the membership as a text, if that was made before."""
    data = {}
    if membership is not None:
        data[names.KEY_ATTEMPT] = str(membership.attempt)
        if membership.members:
            data[names.KEY_MEMBERS] = members or _members_text(membership.members)
    if verdict is not None:
        data[names.KEY_VERDICT] = render(verdict)
    if clock is not None:
        data[names.KEY_WAITING_SINCE] = render_clock(clock)
    return data


def truncate(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, cut at a character and marked with dots."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[: limit - 3].decode(errors="ignore") + "..."
