"""What `watch` shows of one moment: a frame for a terminal, or one line for everything else. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobset_gate import explained_lines as said
from jobset_gate import terminal_text
from jobset_gate.cli.telling.looks import Look
from jobset_gate.cli.verbs.scenes import Moment
from jobset_gate.explained import Explanation, State

MOST_REASONS: Final = 8
"""Of which a frame has lines."""
_GOOD: Final = frozenset({State.RELEASED, State.COMPLETED, "Satisfied", "Running", "Finished"})
_BAD: Final = frozenset({State.TIMED_OUT, State.GATE_MISSING, State.CONFIG_MAP_CONFLICT, State.FAILED, "InvalidGroup"})


@dataclass(frozen=True, slots=True)
class Bar:
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
class Frame:
    """Lines above the bars, the bars, and lines below; lines may be longer than the terminal is wide."""

    head: Sequence[str]
    bars: Sequence[Bar]
    below: Sequence[str]


def frame(moment: Moment, look: Look) -> Frame:
    """All there is to show."""
    it = moment.told
    if it is None:
        return Frame((terminal_text.line(moment.standing.told),), (), _trouble(moment, look))
    style = "good" if it.state in _GOOD else "bad" if it.state in _BAD else "wait"
    head = f"{it.kind} {it.namespace}/{it.name}: {look.paint(style, it.state)}"
    clock = said.clock(it)
    below = [*_reasons(it, look), *_rest(it, look), *_trouble(moment, look)]
    return Frame((head + (f", {clock}" if clock else ""),), tuple(_bars(it)), below)


def line(moment: Moment) -> str:
    """The same in one line, without whatever changes while nothing happens."""
    it = moment.told
    if it is None:
        return moment.standing.told
    whole, *parts = _bars(it)
    counted = ", ".join(f"{part.name} {part.count}" for part in parts)
    words = [f"{it.state} {whole.count} {whole.name}" + (f" ({counted})" if counted else "")]
    words += [said.reason(lack) for lack in it.lacks] or ([it.message] if it.message else [])
    return "; ".join(map(terminal_text.line, words))


def warnings(moment: Moment) -> list[str]:
    """What has to be known beside the lines: what may not be read, and that nobody decides."""
    it = moment.told
    if it is None:
        return []
    nobody = it.controller is not None and it.controller.leads is not True
    return [*it.unknown, *([it.controller.told] if it.controller is not None and nobody else [])]


def _bars(it: Explanation) -> Iterator[Bar]:
    yield Bar("started" if it.kind == "JobSet" else "bound", it.started, it.expected)
    if len(it.parts) > 1:
        yield from (Bar(terminal_text.line(part.name), part.started, part.expected) for part in it.parts)


def _reasons(it: Explanation, look: Look) -> Iterator[str]:
    if it.message:
        yield terminal_text.line(it.message)
    for lack in it.lacks[:MOST_REASONS]:
        since = f", for {said.span(it.now - lack.since)}" if lack.since is not None else ""
        head = f"{said.pods(lack.count)}: {look.paint('wait', lack.why)}{since}"
        yield head + (f": {terminal_text.line(lack.detail)}" if lack.detail else "")
    more = it.lacks[MOST_REASONS:]
    if more:
        yield f"and {said.pods(sum(lack.count for lack in more))} more for {len(more)} more reasons"


def _rest(it: Explanation, look: Look) -> Iterator[str]:
    if it.afterwards:
        yield f"{'at the timeout' if said.waits(it) else 'what follows'}: {terminal_text.line(it.afterwards)}"
    if it.controller is not None and it.controller.leads is not True and it.controller.told:
        yield look.paint("bad" if it.controller.leads is False else "dim", it.controller.told)
    yield from (look.paint("dim", f"not known: {words}") for words in it.unknown)


def _trouble(moment: Moment, look: Look) -> list[str]:
    return [look.paint("bad", moment.trouble)] if moment.trouble else []
