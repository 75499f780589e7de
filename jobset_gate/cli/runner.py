"""How commands run: asyncio, signals, exit codes. SIGTERM and SIGINT cancel a command, so that it cleans up first."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from jobset_gate.objects import terminal_text

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
SIGTERM_EXIT_CODE: Final = 128 + signal.SIGTERM
"""The exit code that a shell gives to what SIGTERM has ended."""


class _EscapingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return terminal_text.lines(super().format(record))


def log_errors() -> None:
    """Nothing but errors of libraries: what the user has to know, the command prints itself.

    Commands with modules that log by structlog configure that instead; the others do not import it: it is slow.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_EscapingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)


async def run_service(service: Coroutine[Any, Any, None], on_signal: Callable[[signal.Signals], None]) -> None:
    """Runs a service; SIGTERM or SIGINT cancels it, and this returns when it has ended.

    Raises what the service raises.
    """
    with _cancel_on_signal(*SIGNALS, then=on_signal) as received:
        try:
            await service
        except asyncio.CancelledError:
            if not received:
                raise


async def run_command(command: Coroutine[Any, Any, int | None]) -> int | None:
    """The exit code of a command; SIGTERM ends it as Ctrl-C does, which asyncio sees to."""
    with _cancel_on_signal(signal.SIGTERM) as received:
        try:
            return await command
        except asyncio.CancelledError:
            if received:
                return SIGTERM_EXIT_CODE
            raise


@contextmanager
def _cancel_on_signal(
    *numbers: signal.Signals, then: Callable[[signal.Signals], None] = lambda _: None
) -> Iterator[list[signal.Signals]]:
    """The first of them cancels the task that is in here, and stands in the list.

    A second one ends the process at once, as if nobody listened.
    """
    loop, task, received = asyncio.get_running_loop(), asyncio.current_task(), list[signal.Signals]()

    def stop(number: signal.Signals) -> None:
        received.append(number)
        then(number)
        listen_no_more()
        if task is not None:
            task.cancel()

    def listen_no_more() -> None:
        with suppress(NotImplementedError):
            for each in numbers:
                loop.remove_signal_handler(each)

    with suppress(NotImplementedError, RuntimeError, ValueError):  # not on Windows, nor outside the main thread
        for each in numbers:
            loop.add_signal_handler(each, stop, each)
    try:
        yield received
    finally:
        listen_no_more()
