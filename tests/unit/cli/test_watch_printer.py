"""What `watch` shows of one moment: as a frame, as a line, and on terminals of any width."""

from __future__ import annotations

import io

import msgspec
import pytest

from jobset_gate.barrier.model import MissingByReason
from jobset_gate.cli.fetch.outcome import WaitOutcome
from jobset_gate.cli.fetch.view import ViewState
from jobset_gate.cli.printers import watch as printed
from jobset_gate.cli.printers.output import PLAIN_STYLE, TerminalStyle
from jobset_gate.explain.model import ControllerStatus, Explanation, ReplicatedJobCount

NOW = 1_800_000_000.0
NO_ROOM = "0/40 nodes are available: insufficient nvidia.com/gpu"
WAITING = Explanation(
    kind="JobSet",
    namespace="team",
    name="train",
    state="Waiting",
    now=NOW,
    expected=300,
    started=261,
    parts=(ReplicatedJobCount("driver", 1, 1), ReplicatedJobCount("workers", 260, 299)),
    missing=(
        MissingByReason(
            reason="Unscheduled", message=NO_ROOM, count=37, slots=("workers-2/17",), oldest_created_at=NOW - 250
        ),
        MissingByReason(reason="ImagePull", message="no such\nhost", count=2),
    ),
    timeout=300,
    waiting_since=NOW - 50,
    afterwards="its pods end with exit code 124",
    controller=ControllerStatus(leads=False, message="no controller runs: there is no Lease"),
    unknown=("cannot list events in namespace team",),
)
GROUP = Explanation(
    kind="PodGroup", namespace="team", name="ring", state="Gathering", message="1/3 pods exist", now=NOW, expected=3,
    started=0, controller=ControllerStatus(leads=True, message="a controller runs"),
)  # fmt: skip
WIDE = """\
JobSet team/train: Waiting, 4m10s left of 5m
  started ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╸      261/300
  driver  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━     1/1
  workers ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╸      260/299
37 pods: Unscheduled, for 4m10s: 0/40 nodes are available: insufficient
nvidia.com/gpu
2 pods: ImagePull: no such host
at the timeout: its pods end with exit code 124
no controller runs: there is no Lease
not known: cannot list events in namespace team
"""


def moment(shown: Explanation | None, words: str = "", trouble: str = "") -> ViewState:
    return ViewState(shown, WaitOutcome(message=words), trouble)


def drawn(shown: Explanation, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As it stands there at the end."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "40")
    stream = io.StringIO()
    with printed.LiveScreen(stream, PLAIN_STYLE) as picture:
        picture.show(moment(shown), NOW)
    text = stream.getvalue().split("\x1b[?25l")[1].split("\x1b[?25h")[0]
    last = text[text.rindex("JobSet team") :]
    return [line.rstrip() for line in last.splitlines()]


def test_a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(WAITING, 72, monkeypatch) == WIDE.splitlines()


@pytest.mark.parametrize("columns", [30, 49, 50, 200])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_lost(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(WAITING, columns, monkeypatch)
    assert max(map(len, lines)) <= columns
    words = " ".join(" ".join(lines).split())
    for word in ("261/300", "260/299", "workers", NO_ROOM, "no such host", "4m10s left of 5m", "no controller runs"):
        assert word in words


def test_a_line_for_what_is_no_terminal_says_nothing_that_passes() -> None:
    text = f"Waiting 261/300 started (driver 1/1, workers 260/299); 37 pods: Unscheduled: {NO_ROOM}"
    assert printed.watch_line(moment(WAITING)) == f"{text}; 2 pods: ImagePull: no such host"
    later = msgspec.structs.replace(WAITING, now=NOW + 60)
    assert printed.watch_line(moment(later)) == printed.watch_line(moment(WAITING))
    assert printed.watch_line(moment(GROUP)) == "Gathering 0/3 bound; 1/3 pods exist"
    blind = msgspec.structs.replace(WAITING, started=None, parts=(), missing=())
    assert printed.watch_line(moment(blind)) == "Waiting ?/300 started"
    assert printed.watch_line(moment(None, "was deleted")) == "was deleted"


def test_of_many_reasons_the_first_are_shown_and_the_rest_counted() -> None:
    missing = tuple(MissingByReason(reason=f"Why{number}", message="", count=3) for number in range(10))
    frame = printed.watch_frame(moment(msgspec.structs.replace(WAITING, missing=missing)), PLAIN_STYLE)
    assert "3 pods: Why7" in frame.below
    assert "and 6 pods more for 2 more reasons" in frame.below


def test_a_server_that_does_not_answer_is_named_and_colours_are_for_who_wants_them() -> None:
    look = TerminalStyle(colour=True)
    frame = printed.watch_frame(moment(GROUP, trouble="no answer"), look)
    assert (frame.below[-1], frame.head[0]) == (
        "\x1b[31mno answer\x1b[0m",
        "PodGroup team/ring: \x1b[33mGathering\x1b[0m",
    )
    assert printed.watch_warnings(moment(WAITING)) == [*WAITING.unknown, "no controller runs: there is no Lease"]
    assert printed.watch_warnings(moment(GROUP)) == []
