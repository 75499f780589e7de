"""An explanation as lines of text within so many bytes: one builder for condition, page and command line."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from jobset_gate import verdicts
from jobset_gate.explained import Explanation, Lack, State

_REST = 80
"""Bytes kept back for "and N more"."""
_WORDS = 40
"""Bytes that a reason keeps, however little room there is."""
_WAITS = frozenset({State.WAITING, State.DUE})


def lines(explanation: Explanation, limit: int | None = None, *, timeless: bool = False) -> tuple[str, ...]:
    """Headline, missing pods by reason, time left, what follows; joined by newlines at most `limit` bytes.

    `timeless` leaves out whatever changes while nothing happens. What does not fit is cut where it matters least: first
    the words of single reasons, then what comes after them, and how many pods were left out is said.
    """
    head = [headline(explanation), *_parts(explanation)]
    tail = list(_tail(explanation, timeless=timeless))
    if limit is None:
        return (*head, *map(told, explanation.lacks), *tail)
    return tuple(_fit(head, explanation.lacks, tail, limit))


def headline(it: Explanation) -> str:
    """`JobSet team/train: Waiting: 297/300 pods started`."""
    text = f"{it.kind} {it.namespace}/{it.name}: {it.state}"
    if it.started is not None and it.expected and it.state in _WAITS:
        text += f": {it.started}/{it.expected} pods started"
    return f"{text}: {it.message}" if it.message else text


def told(lack: Lack) -> str:
    """`37 pods: Unscheduled: 0/40 nodes are available (workers-2/17, workers-2/18 and 35 more)`."""
    return f"{reason(lack)} ({named(lack)})" if lack.slots else reason(lack)


def reason(lack: Lack) -> str:
    """`37 pods: Unscheduled: 0/40 nodes are available`."""
    text = f"{pods(lack.count)}: {lack.why}"
    return f"{text}: {lack.detail}" if lack.detail else text


def named(lack: Lack) -> str:
    """The first few slots."""
    names_, more = ", ".join(lack.slots), lack.count - len(lack.slots)
    return f"{names_} and {more} more" if more > 0 else names_


def pods(many: int) -> str:
    """So many, in words."""
    return "1 pod" if many == 1 else f"{many} pods"


def span(seconds: float) -> str:
    """As a person says it: 45s, 4m10s, 3h5m, 2d4h."""
    whole = max(0, int(seconds))
    for unit, name, part, rest in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= unit:
            small = whole % unit // part
            return f"{whole // unit}{name}" + (f"{small}{rest}" if small else "")
    return f"{whole}s"


def date(moment: float) -> str:
    """In UTC, to the second."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(it: Explanation) -> str:
    """How much time is left."""
    for_ever = "no timeout is set: it waits for ever"
    if it.since is None:
        if it.state not in _WAITS:
            return ""
        return for_ever if it.timeout is None else f"the timeout of {span(it.timeout)} begins when the first pod starts"
    if it.timeout is None or it.left is None:
        return f"{for_ever}; the first pod started {span(it.now - it.since)} ago"
    if it.left <= 0:
        return f"time is up: the timeout was {span(it.timeout)}"
    return f"{span(it.left)} left of {span(it.timeout)}"


def waits(it: Explanation) -> bool:
    """Whether a timeout is still to come."""
    return it.state in _WAITS or it.since is not None


def _parts(it: Explanation) -> Iterator[str]:
    if it.state in _WAITS and len(it.parts) > 1:
        yield ", ".join(f"{part.name} {part.started}/{part.expected}" for part in it.parts)


def _tail(it: Explanation, *, timeless: bool) -> Iterator[str]:
    left = clock(it)
    if left and not timeless:
        yield left
    if it.afterwards:
        yield f"{'at the timeout' if waits(it) else 'what follows'}: {it.afterwards}"
    if it.controller is not None and it.controller.leads is not True and it.controller.told:
        yield it.controller.told
    yield from (f"not known: {text}" for text in it.unknown)


def _fit(head: Sequence[str], lacks: Sequence[Lack], tail: Sequence[str], limit: int) -> Iterator[str]:
    left = limit - _size(head)
    if left < 0:
        yield from verdicts.shorten("\n".join(head), limit).split("\n")
        return
    yield from head
    whole = [told(lack) for lack in lacks]
    if _size(whole) + _size(tail) <= left:
        yield from (*whole, *tail)
        return
    # A reason matters more than what comes after it, and every reason more than whole sentences about the first.
    done = 0
    for number, (lack, text) in enumerate(zip(lacks, whole, strict=True)):
        share = (left - _REST) // (len(lacks) - number)
        if len(text.encode()) + 1 > share:
            text = verdicts.shorten(reason(lack), max(_WORDS, share - 1))  # noqa: PLW2901 - the same, shorter
        if len(text.encode()) + 1 > left - _REST:
            break
        yield text
        done, left = number + 1, left - len(text.encode()) - 1
    rest = sum(lack.count for lack in lacks[done:])
    if rest:
        more = f"and {pods(rest)} more for {len(lacks) - done} more reasons"
        if len(more) + 1 <= left:
            yield more
        return
    for text in tail:
        if len(text.encode()) + 1 > left:
            return
        yield text
        left -= len(text.encode()) + 1


def _size(texts: Sequence[str]) -> int:
    """With the newline before each of them."""
    return sum(len(text.encode()) + 1 for text in texts)
