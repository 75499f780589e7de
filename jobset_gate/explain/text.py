"""An explanation as text within so many bytes: the one builder for verdict, condition, page and command line."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from jobset_gate.barrier import verdict_codec
from jobset_gate.explain.model import Explanation, GangState, MissingByReason

_WORDS = 20
"""Bytes that others' words keep, however little room there is."""
_LINE, _SENTENCE = "\n", "; "
_WAITS = frozenset({GangState.WAITING, GangState.DUE})


def explanation_lines(explanation: Explanation, limit: int | None = None, *, timeless: bool = False) -> tuple[str, ...]:
    """Headline, missing pods by reason, time left, what follows; joined by newlines at most `limit` bytes.

    `timeless` leaves out whatever changes while nothing happens. What does not fit is cut where it matters least: first
    the words of single reasons, then what comes after them, and the number of pods left out is added.
    """
    head = [headline(explanation), *_parts(explanation)]
    after = list(tail(explanation, timeless=timeless))
    if limit is None:
        return (*head, *map(missing_line, explanation.lacks), *after)
    room = limit - len(_LINE.join(head).encode())
    if room < 0:
        return tuple(verdict_codec.truncate(_LINE.join(head), limit).split(_LINE))
    return (*head, *_fit(explanation.lacks, after, room, len(_LINE)))


def sentence(start: str, lacks: Sequence[MissingByReason], limit: int, tail: Sequence[str] = ()) -> str:
    """The same on one line of at most `limit` bytes: `<start>; missing: 37 pods: Unscheduled: ... (...); <tail>`."""
    begun = f"{start}; missing: " if lacks else start + _SENTENCE
    room = limit - len(begun.encode()) + len(_SENTENCE)
    pieces = list(_fit(lacks, tail, room, len(_SENTENCE)))
    return begun + _SENTENCE.join(pieces) if pieces else verdict_codec.truncate(start, limit)


def tail(it: Explanation, *, timeless: bool = False) -> Iterator[str]:
    """What comes after the missing: time left, what happens then, what is not known, what to run next."""
    left = time_left(it)
    if left and not timeless:
        yield left
    if it.afterwards:
        yield f"{_when(it, timeless=timeless)}: {it.afterwards}"
    if it.controller is not None and it.controller.leads is not True and it.controller.message:
        yield it.controller.message
    yield from (f"not known: {text}" for text in it.unknown)
    yield from (f"next: {command}" for command in it.commands)


def _when(it: Explanation, *, timeless: bool) -> str:
    if not is_waiting(it):
        return "what follows"
    return (
        f"at the timeout of {format_duration(it.timeout)}" if timeless and it.timeout is not None else "at the timeout"
    )


def headline(it: Explanation) -> str:
    """`JobSet team/train: Waiting: 297/300 pods started`."""
    text = f"{it.kind} {it.namespace}/{it.name}: {it.state}"
    if it.started is not None and it.expected and it.state in _WAITS:
        text += f": {it.started}/{it.expected} pods started"
    return f"{text}: {it.message}" if it.message else text


def missing_line(lack: MissingByReason) -> str:
    """`37 pods: Unscheduled: 0/40 nodes are available (workers-2/17, workers-2/18 and 35 more)`."""
    return f"{missing_reason(lack)} ({slot_list(lack)})" if lack.slots else missing_reason(lack)


def missing_reason(lack: MissingByReason) -> str:
    """`37 pods: Unscheduled: 0/40 nodes are available`."""
    text = f"{format_pod_count(lack.count)}: {lack.reason}"
    return f"{text}: {lack.message}" if lack.message else text


def slot_list(lack: MissingByReason) -> str:
    """The first few slots."""
    names_, more = ", ".join(lack.slots), lack.count - len(lack.slots)
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
    """How much time is left."""
    for_ever = "no timeout is set: it waits for ever"
    if it.since is None:
        if it.state not in _WAITS:
            return ""
        return (
            for_ever
            if it.timeout is None
            else f"the timeout of {format_duration(it.timeout)} begins when the first pod starts"
        )
    if it.timeout is None or it.left is None:
        return f"{for_ever}; the first pod started {format_duration(it.now - it.since)} ago"
    if it.left <= 0:
        return f"time is up: the timeout was {format_duration(it.timeout)}"
    return f"{format_duration(it.left)} left of {format_duration(it.timeout)}"


def is_waiting(it: Explanation) -> bool:
    """Whether a timeout is still to come."""
    return it.state in _WAITS or it.since is not None


# --- Within so many bytes --------------------------------------------------------------------------------------------


def _fit(lacks: Sequence[MissingByReason], after: Sequence[str], room: int, glue: int) -> Iterator[str]:
    """Whole entries, each with `glue` bytes before it. What comes after reasons matters less than any of them."""
    whole = [missing_line(lack) for lack in lacks]
    if _size(whole, glue) > room:
        yield from _cut(lacks, whole, room, glue)
        return
    for text in (*whole, *after):
        room -= _size((text,), glue)
        if room < 0:
            return
        yield text


def _cut(lacks: Sequence[MissingByReason], whole: Sequence[str], room: int, glue: int) -> Iterator[str]:
    """Entries with fewer words; of those for which even that is too much, how many they are.

    Every reason matters more than whole sentences about the first.
    """
    many = sum(lack.count for lack in lacks)
    room -= _size((_left_out(many, len(lacks)),), glue)
    for number, (lack, text) in enumerate(zip(lacks, whole, strict=True)):
        share = room // (len(lacks) - number) - glue
        shown = text if len(text.encode()) <= share else _brief(lack, share)
        if _size((shown,), glue) > room:
            yield from _rest(many, len(lacks) - number, room + _size((_left_out(many, len(lacks)),), glue), glue)
            return
        yield shown
        room -= _size((shown,), glue)
        many -= lack.count


def _rest(many: int, groups: int, room: int, glue: int) -> Iterator[str]:
    text = _left_out(many, groups)
    if _size((text,), glue) <= room:
        yield text


def _left_out(many: int, groups: int) -> str:
    return f"and {many} more {'pod' if many == 1 else 'pods'} in {groups} {'group' if groups == 1 else 'groups'}"


def _brief(lack: MissingByReason, share: int) -> str:
    """A group in about so many bytes: the slots that have waited longest of all are named, the words are cut."""
    few = msgspec.structs.replace(lack, slots=lack.slots[: max(1, lack.oldest_count)])
    text = missing_line(few)
    over = len(text.encode()) - share
    if over <= 0:
        return text
    kept = max(_WORDS, len(lack.message.encode()) - over)
    return missing_line(msgspec.structs.replace(few, message=verdict_codec.truncate(lack.message, kept)))


def _parts(it: Explanation) -> Iterator[str]:
    if it.state in _WAITS and len(it.parts) > 1:
        yield ", ".join(f"{part.name} {part.started}/{part.expected}" for part in it.parts)


def _size(texts: Sequence[str], glue: int) -> int:
    return sum(len(text.encode()) + glue for text in texts)
