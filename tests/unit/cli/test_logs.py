"""Logs: JSON with the keys that others use, readable lines on a terminal, libraries included."""

import io
import json
import logging
import warnings

import pytest
import structlog

from jobset_gate.cli import exits, logs
from jobset_gate.cli.options import LogFormat, LogLevel
from tests.fakes.cli_runner import Terminal


@pytest.fixture
def stream() -> io.StringIO:
    """What is logged as a process logs it."""
    made = io.StringIO()
    logs.configure(stream=made)
    return made


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines_begin_with_time_level_logger_and_message(stream: io.StringIO) -> None:
    structlog.get_logger("webhook").info("webhook listens", url="https://x")
    (line,) = lines(stream)
    assert list(line) == ["ts", "level", "logger", "msg", "url"]
    assert str(line["ts"]).endswith("Z")
    assert [*line.values()][1:] == ["info", "webhook", "webhook listens", "https://x"]


def test_what_libraries_log_looks_the_same() -> None:
    stream = io.StringIO()
    logs.configure(stream=io.StringIO())
    logs.configure(level=LogLevel.WARNING, stream=stream)  # once more: each line comes once
    logging.getLogger("asyncio").info("below the level")
    logging.getLogger("asyncio").warning("slow by %d s", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("this will change", DeprecationWarning, stacklevel=1)
    first, second = lines(stream)
    assert [first[key] for key in ("level", "logger", "msg")] == ["warning", "asyncio", "slow by 3 s"]
    assert (second["logger"], "DeprecationWarning: this will change" in str(second["msg"])) == ("py.warnings", True)


def test_an_exception_is_one_line_of_json(stream: io.StringIO) -> None:
    structlog.get_logger("a").error("failed", exc_info=ValueError("so"))
    logging.getLogger("b").error("failed too", exc_info=ValueError("so"))
    assert [str(line["exception"]) for line in lines(stream)] == ["ValueError: so", "ValueError: so"]


@pytest.mark.parametrize(
    ("form", "stream", "no_color", "coloured"),
    [
        (LogFormat.AUTO, Terminal(), "", True),
        (LogFormat.CONSOLE, Terminal(), "1", False),
        (LogFormat.CONSOLE, io.StringIO(), "", False),
    ],
)
def test_a_terminal_gets_readable_lines_and_colours_only_where_they_are_wanted(
    form: LogFormat, stream: io.StringIO, no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    logs.configure(form, stream=stream)
    structlog.get_logger("webhook").info("webhook listens")
    shown = stream.getvalue()
    assert ("webhook listens" in shown, "\x1b[" in shown, shown.startswith("{")) == (True, coloured, False)


def test_who_asks_for_json_gets_the_reason_of_a_failure_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    logs.configure(LogFormat.JSON, stream=stream)
    exits.print_error("the lease is lost")
    (line,) = lines(stream)
    assert [*line.values()][1:] == ["error", "jobset_gate.cli", "failed", "the lease is lost"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", [LogFormat.AUTO, LogFormat.CONSOLE])
def test_a_person_gets_it_as_a_plain_line(form: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogFormat.JSON, stream=io.StringIO())
    logs.configure(form, stream=io.StringIO())
    exits.print_error("the lease is lost")
    assert capsys.readouterr().err == "error: the lease is lost\n"


def test_a_line_about_a_gang_says_which(stream: io.StringIO) -> None:
    """However deep inside the pass it is logged."""
    with structlog.contextvars.bound_contextvars(namespace="team-a", jobset="train"):
        logging.getLogger("a.library").warning("slow")
        structlog.get_logger("ours").info("decided")
    assert [(line["namespace"], line["jobset"]) for line in lines(stream)] == [("team-a", "train")] * 2


def test_no_value_makes_a_line_of_a_megabyte(stream: io.StringIO) -> None:
    structlog.get_logger("a").warning("not said", error="x" * 1_000_000)
    logging.getLogger("b").warning("refused: %s", "x" * 1_000_000)
    assert [len(line) < 2 * logs.MAX_VALUE_LENGTH for line in stream.getvalue().splitlines()] == [True, True]
