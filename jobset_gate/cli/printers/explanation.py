"""An explanation as text for a person: what is wrong first, then how long, then what to do."""

import textwrap
from collections.abc import Iterator

from jobset_gate import names
from jobset_gate.barrier.model import MissingByReason
from jobset_gate.cli.printers.output import TerminalStyle
from jobset_gate.explain import text as said
from jobset_gate.explain.model import GIVEN_UP_STATES, Explanation, GangState
from jobset_gate.objects import terminal_text

_STYLES = {
    **dict.fromkeys((GangState.RELEASED, GangState.COMPLETED, "Satisfied", "Running", "Finished"), "good"),
    **dict.fromkeys(
        (
            *GIVEN_UP_STATES,
            GangState.GATE_MISSING,
            GangState.CONFIG_MAP_CONFLICT,
            GangState.FAILED,
            names.REASON_INVALID_GROUP,
        ),
        "bad",
    ),
}
_INDENT = "    "


def state_style(state: str) -> str:
    """For `TerminalStyle.paint`; what waits is neither good nor bad."""
    return _STYLES.get(state, "wait")


def explanation_text(it: Explanation, look: TerminalStyle) -> str:
    """Whole lines."""
    return "".join(line + "\n" for line in _lines(it, look))


def _lines(it: Explanation, look: TerminalStyle) -> Iterator[str]:
    yield from _headline(it, look)
    yield from _subject(it, look)
    yield from _parts(it)
    if it.missing:
        yield ""
        yield from wrap("Missing, longest waiting first:", look)
    for lack in it.missing:
        yield from _lack(it, lack, look)
    last = [line for line in _last(it, look) if line]
    if last:
        yield ""
        yield from last


def _headline(it: Explanation, look: TerminalStyle) -> Iterator[str]:
    head, colon, rest = said.headline(it).partition(f"{it.state}")
    wrapped = wrap(head + colon + rest, look)
    wrapped[0] = wrapped[0].replace(it.state, look.paint(state_style(it.state), it.state), 1)
    yield from wrapped
    yield from wrap(said.ownership(it), look)
    if it.state == GangState.RELEASED:
        when = "when it was opened is not known" if it.decided is None else f"opened at {said.format_time(it.decided)}"
        through = "how many pods have gone through is not known"
        if it.started is not None:
            through = f"{it.passed} of {it.expected} pods are through the barrier"
        yield from wrap(f"{when}; {through}", look)


def _subject(it: Explanation, look: TerminalStyle) -> Iterator[str]:
    if it.subject is not None:
        slot = f" ({it.subject.slot})" if it.subject.slot else ""
        yield from wrap(f"pod {it.subject.name}{slot}: {it.subject.message}", look)


def _parts(it: Explanation) -> Iterator[str]:
    if it.state not in (GangState.WAITING, GangState.DUE) or not it.parts:
        return
    name = max(len(part.name) for part in it.parts)
    number = max(len(str(part.expected)) for part in it.parts)
    for part in it.parts:
        yield f"  {part.name:<{name}}  {part.started:>{number}}/{part.expected}"


def _lack(it: Explanation, lack: MissingByReason, look: TerminalStyle) -> Iterator[str]:
    wrapped = wrap(said.missing_reason(lack), look, "  ", _INDENT)
    wrapped[0] = wrapped[0].replace(lack.reason, look.paint("wait", lack.reason), 1)
    yield from wrapped
    since = (
        f"; waiting for {said.format_duration(it.now - lack.oldest_created_at)}"
        if lack.oldest_created_at is not None
        else ""
    )
    if lack.slots or since:
        yield from wrap((said.slot_list(lack) + since).removeprefix("; "), look, _INDENT, _INDENT)


def _last(it: Explanation, look: TerminalStyle) -> Iterator[str]:
    yield from wrap(sentence(said.time_left(it)), look)
    for style, words in footnotes(it):
        yield from (look.paint(style, line) for line in wrap(sentence(words), look))
    for number, command in enumerate(it.commands):
        # Never wrapped: it is there to be copied.
        yield ("Next: " if number == 0 else "      ") + look.paint("bold", command)


def footnotes(it: Explanation) -> Iterator[tuple[str, str]]:
    """What follows, that no controller decides, and what is not known; each with its style."""
    if it.afterwards:
        head = "at the timeout" if said.is_waiting(it) else "what follows"
        yield "", f"{head}: {terminal_text.line(it.afterwards)}"
    if it.controller is not None and it.controller.leads is not True and it.controller.message:
        yield "bad" if it.controller.leads is False else "dim", it.controller.message
    yield from (("dim", f"not known: {words}") for words in it.unknown)


def sentence(words: str) -> str:
    """With a capital letter and a full stop; "" stays so."""
    return f"{words[0].upper()}{words[1:]}." if words else ""


def wrap(words: str, look: TerminalStyle, first: str = "", rest: str = "  ") -> list[str]:
    """As many lines as the terminal's width asks for; one where there is none. Nothing for nothing."""
    words = terminal_text.line(words)
    if not words:
        return []
    if look.width is None:
        return [first + words]
    return textwrap.wrap(
        words, look.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )
