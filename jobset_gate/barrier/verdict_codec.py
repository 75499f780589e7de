"""Verdicts and clocks as texts: how they stand in the ConfigMap, in the pod annotation and before the barrier's eyes.

A verdict's first line is for the barrier, a shell script: five words. What follows is for people.
"""

from datetime import UTC, datetime

from jobset_gate import names
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind, WaitingSince
from jobset_gate.objects import terminal_text

MESSAGE_LIMIT = 1024
"""Bytes of a verdict's message: what a barrier writes as its termination message (A7)."""

MAX_VERDICT_LENGTH = 2048
"""Characters of a verdict as a whole: what is longer is none of ours, and is not kept."""

CAUSES = frozenset({names.REASON_STARTED, names.REASON_TIMED_OUT, names.REASON_BYPASSED})
"""Why a verdict is taken."""

_MAX_DIGITS = 9
"""More digits than this are no epoch of ours; the shell compares numbers of this length safely everywhere."""


_LATEST = 10.0**11
"""Seconds since the epoch: no clock of a gang shows more, and a later moment is hardly a date."""

_SMALL: dict[str | None, int] = {str(small): small for small in range(1024)}


def parse_epoch(text: str | None) -> int:
    """The epoch that an annotation carries; absent, negative or garbage is 0 (A5)."""
    return parse_number(text, 0)


def parse_number(text: str | None, otherwise: int) -> int:
    """A count as labels and annotations carry it: plain ASCII digits, or `otherwise`."""
    if text in _SMALL:  # nearly always, and this is done thrice for each event of a pod
        return _SMALL[text]
    if text and len(text) <= _MAX_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    return otherwise


def render(verdict: Verdict) -> str:
    """`<release|timeout> <uid> <attempt> <epoch> <cause>`, then the message, at most 1 KiB of it."""
    its = verdict.generation
    head = f"{verdict.kind.value} {its.uid} {its.attempt} {its.epoch} {verdict.cause}\n"
    return head + truncate(verdict.message, MESSAGE_LIMIT) + "\n" if verdict.message else head


def parse(text: str) -> Verdict | None:
    """The verdict that a text holds; None for anything that we would not have written.

    Whoever may write ConfigMaps of the namespace may have written its message.
    """
    if len(text) > MAX_VERDICT_LENGTH:
        return None
    head, _, message = text.partition("\n")
    words = head.split(" ")
    if len(words) != 5 or words[0] not in set(VerdictKind) or words[4] not in CAUSES:
        return None
    if not words[1] or not words[1].isprintable():
        return None
    attempt, its_epoch = parse_number(words[2], -1), parse_number(words[3], -1)
    if attempt < 0 or its_epoch < 0:
        return None
    return Verdict(
        kind=VerdictKind(words[0]),
        generation=Generation(words[1], attempt, its_epoch),
        cause=words[4],
        message=truncate(terminal_text.lines(message.removesuffix("\n")), MESSAGE_LIMIT),
    )


def render_clock(clock: WaitingSince) -> str:
    """`<uid> <attempt> <epoch> <RFC 3339 time, UTC>`."""
    its = clock.generation
    when = datetime.fromtimestamp(clock.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{its.uid} {its.attempt} {its.epoch} {when}"


def parse_clock(text: str) -> WaitingSince | None:
    """The clock that a text holds; None for anything that we would not have written."""
    words = text.split(" ")
    if len(words) != 4 or not words[0]:
        return None
    attempt, its_epoch = parse_number(words[1], -1), parse_number(words[2], -1)
    if attempt < 0 or its_epoch < 0:
        return None
    try:
        at = datetime.fromisoformat(words[3])
    except ValueError:
        return None
    # The first and the last day of the calendar are none in other time zones, so they could not be written again.
    if at.tzinfo is None or not 0 <= at.timestamp() <= _LATEST:
        return None
    return WaitingSince(generation=Generation(words[0], attempt, its_epoch), at=at.timestamp())


def config_map_data(verdict: Verdict | None, clock: WaitingSince | None) -> dict[str, str]:
    """What a gang's ConfigMap holds: the verdict and the clock, each only if there is one."""
    data = {}
    if verdict is not None:
        data[names.KEY_VERDICT] = render(verdict)
    if clock is not None:
        data[names.KEY_WAITING_SINCE] = render_clock(clock)
    return data


def truncate(text: str, limit: int) -> str:
    """The text in at most `limit` bytes of UTF-8, cut at a character and marked as cut."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[: limit - 3].decode(errors="ignore") + "..."
