"""Logs go to standard error: JSON for machines, readable lines on a terminal; what libraries log looks the same."""

import logging
import os
import signal
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog
from structlog.typing import Processor

from jobset_gate.cli import exits
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.objects import terminal_text

MAX_VALUE_LENGTH: Final = 4096
"""Characters of one value in a line."""


def configure(form: LogFormat = LogFormat.AUTO, level: LogLevel = LogLevel.INFO, stream: TextIO | None = None) -> None:
    """From now on all of this process logs like this. May be called again."""
    out = stream or sys.stderr
    console = out.isatty() if form is LogFormat.AUTO else form is LogFormat.CONSOLE
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.stdlib.ExtraAdder(),
    ]
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=common,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _truncate,
                *(_console(out) if console else _json()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *common[:-1],
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    logging.captureWarnings(True)
    # Who asked for JSON gets nothing else, not even for the last line.
    exits.print_error = _log_error if form is LogFormat.JSON else exits.print_plain_error


def log_signal(number: signal.Signals) -> None:
    """That a service stops, and why."""
    structlog.get_logger("jobset_gate.cli").info("stopping", signal=number.name)


def _log_error(text: str) -> None:
    structlog.get_logger("jobset_gate.cli").error("failed", error=text)


def _truncate(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What is logged may repeat what a tenant wrote."""
    return {
        key: f"{value[:MAX_VALUE_LENGTH]}..." if isinstance(value, str) and len(value) > MAX_VALUE_LENGTH else value
        for key, value in event.items()
    }


def _json() -> list[Processor]:
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("msg"),
        _order_keys,
        structlog.processors.JSONRenderer(),
        lambda _, __, line: terminal_text.escaped(str(line)),  # of controls DEL alone is none that JSON escapes
    ]


def _console(out: TextIO) -> list[Processor]:
    colours = out.isatty() and not os.environ.get("NO_COLOR")
    return [
        structlog.processors.format_exc_info,
        _escape_controls,
        structlog.dev.ConsoleRenderer(
            colors=colours, timestamp_key="ts", exception_formatter=structlog.dev.plain_traceback
        ),
    ]


def _escape_controls(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What others have written steers no terminal."""
    safe = {key: terminal_text.lines if key == "exception" else terminal_text.line for key in event}
    return {key: safe[key](it) if isinstance(it, str) else it for key, it in event.items()}


def _order_keys(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    head = {key: event.pop(key) for key in ("ts", "level", "logger", "msg") if key in event}
    return head | dict(event)
