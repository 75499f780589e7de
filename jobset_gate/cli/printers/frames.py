"""What `watch` shows of one moment: a frame for a terminal, or one line for everything else. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobset_gate.cli.printers.terminal import TerminalStyle
from jobset_gate.cli.watch.view import ViewState
from jobset_gate.explain import text as said
from jobset_gate.explain.model import Explanation, GangState
from jobset_gate.objects import terminal_text

MOST_REASONS: Final = 8
"""Of which a frame has lines."""
_GOOD: Final = frozenset({GangState.RELEASED, GangState.COMPLETED, "Satisfied", "Running", "Finished"})
_BAD: Final = frozenset(
    {GangState.TIMED_OUT, GangState.GATE_MISSING, GangState.CONFIG_MAP_CONFLICT, GangState.FAILED, "InvalidGroup"}
)


@dataclass(frozen=True, slots=True)
class CountBar:
    """How far one part is."""

    name: str
    done: int | None
    """None: not known."""
    expected: int

    @property
    def count(self) -> str:
        """`7/10`."""
        return f"{'?' if self.done is None else self.done}/{self.expected or '?'}"


@dataclass(frozen=True, slots=True)
class WatchFrame:
    """Lines above the bars, the bars, and lines below; lines may be longer than the terminal is wide."""

    head: Sequence[str]
    bars: Sequence[CountBar]
    below: Sequence[str]


def watch_frame(moment: ViewState, look: TerminalStyle) -> WatchFrame:
    """All there is to show."""
    it = moment.told
    if it is None:
        return WatchFrame((terminal_text.line(moment.standing.message),), (), _trouble(moment, look))
    style = "good" if it.state in _GOOD else "bad" if it.state in _BAD else "wait"
    head = f"{it.kind} {it.namespace}/{it.name}: {look.paint(style, it.state)}"
    clock = said.time_left(it)
    below = [*_reasons(it, look), *_rest(it, look), *_trouble(moment, look)]
    return WatchFrame((head + (f", {clock}" if clock else ""),), tuple(_bars(it)), below)


def watch_line(moment: ViewState) -> str:
    """The same in one line, without whatever changes while nothing happens."""
    it = moment.told
    if it is None:
        return moment.standing.message
    whole, *parts = _bars(it)
    counted = ", ".join(f"{part.name} {part.count}" for part in parts)
    words = [f"{it.state} {whole.count} {whole.name}" + (f" ({counted})" if counted else "")]
    words += [said.missing_reason(lack) for lack in it.lacks] or ([it.message] if it.message else [])
    return "; ".join(map(terminal_text.line, words))


def watch_warnings(moment: ViewState) -> list[str]:
    """What has to be known beside the lines: what may not be read, and that nobody decides."""
    it = moment.told
    if it is None:
        return []
    nobody = it.controller is not None and it.controller.leads is not True
    return [*it.unknown, *([it.controller.told] if it.controller is not None and nobody else [])]


def _bars(it: Explanation) -> Iterator[CountBar]:
    yield CountBar("started" if it.kind == "JobSet" else "bound", it.started, it.expected)
    if len(it.parts) > 1:
        yield from (CountBar(terminal_text.line(part.name), part.started, part.expected) for part in it.parts)


def _reasons(it: Explanation, look: TerminalStyle) -> Iterator[str]:
    if it.message:
        yield terminal_text.line(it.message)
    for lack in it.lacks[:MOST_REASONS]:
        since = (
            f", for {said.format_duration(it.now - lack.oldest_created_at)}"
            if lack.oldest_created_at is not None
            else ""
        )
        head = f"{said.format_pod_count(lack.count)}: {look.paint('wait', lack.reason)}{since}"
        yield head + (f": {terminal_text.line(lack.message)}" if lack.message else "")
    more = it.lacks[MOST_REASONS:]
    if more:
        yield f"and {said.format_pod_count(sum(lack.count for lack in more))} more for {len(more)} more reasons"


def _rest(it: Explanation, look: TerminalStyle) -> Iterator[str]:
    if it.afterwards:
        yield f"{'at the timeout' if said.is_waiting(it) else 'what follows'}: {terminal_text.line(it.afterwards)}"
    if it.controller is not None and it.controller.leads is not True and it.controller.told:
        yield look.paint("bad" if it.controller.leads is False else "dim", it.controller.told)
    yield from (look.paint("dim", f"not known: {words}") for words in it.unknown)


def _trouble(moment: ViewState, look: TerminalStyle) -> list[str]:
    return [look.paint("bad", moment.trouble)] if moment.trouble else []
