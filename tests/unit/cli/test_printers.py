"""What is printed of gangs: `watch` as a frame and as a line, `get -w`, timelines, Jobs; on terminals of any width."""

import io
import json

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.barrier.model import Generation, MissingByReason
from jobset_gate.cli.commands.describe import MOST_ROWS, job_rows
from jobset_gate.cli.fetch.outcome import WaitOutcome
from jobset_gate.cli.fetch.view import ViewState
from jobset_gate.cli.printers import watch as printed
from jobset_gate.cli.printers.listing import ItemPrinter, Output, OutputFormat, PrintedItem
from jobset_gate.cli.printers.output import PLAIN_STYLE, TerminalStyle
from jobset_gate.cli.printers.timeline import timeline_bars, timeline_json, timeline_table
from jobset_gate.explain.model import ControllerStatus, Explanation, ReplicatedJobCount
from jobset_gate.timeline.model import Step, Timeline
from jobset_gate.timeline.rows import rows
from jobset_gate.timeline.summary import idle_devices
from tests.fakes import gangs
from tests.fakes.timelines import GPUS, T0, held, pod, through, timeline, timelines

NOW = 1_800_000_000.0
NO_ROOM = "0/40 nodes are available: insufficient nvidia.com/gpu"
WAITING = Explanation(
    kind="JobSet",
    source="jobset",
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
    _, _, below = printed.watch_frame(moment(msgspec.structs.replace(WAITING, missing=missing)), PLAIN_STYLE)
    assert "3 pods: Why7" in below
    assert "and 6 pods more for 2 more reasons" in below


def test_a_server_that_does_not_answer_is_named_and_colours_are_for_who_wants_them() -> None:
    look = TerminalStyle(colour=True)
    head, _, below = printed.watch_frame(moment(GROUP, trouble="no answer"), look)
    assert (below[-1], head) == ("\x1b[31mno answer\x1b[0m", "PodGroup team/ring: \x1b[33mGathering\x1b[0m")
    assert printed.watch_warnings(moment(WAITING)) == [*WAITING.unknown, "no controller runs: there is no Lease"]
    assert printed.watch_warnings(moment(GROUP)) == []


# --- What `get -w` prints in each form: everything once, then what has changed, and once what has gone ----------------

COLUMNS = ("NAME", "STATE", "AGE")
WATCHED = (
    [("a", "Waiting", "1s"), ("b", "Waiting", "1s")],
    [("a", "Waiting", "9s"), ("b", "Released", "9s")],
    [("b", "Released", "20s"), ("long-name", "Waiting", "0s")],
)
"""What there is at three moments; the age alone is no news."""
CHANGES = """\
NAME   STATE     AGE
a      Waiting   1s
b      Waiting   1s
b      Released   9s
a           Deleted    9s
long-name   Waiting    0s
"""
DOCUMENTS = [("a", "Waiting"), ("b", "Waiting"), ("b", "Released"), ("a", "Deleted"), ("long-name", "Waiting")]


def item(name: str, state: str, age: str) -> PrintedItem:
    document = {"name": name, "state": state, "at": age, "secondsLeft": age}
    return PrintedItem((name,), dict(zip(COLUMNS, (name, state, age), strict=True)), lambda: document, f"gang/{name}")


def item_lines(capsys: pytest.CaptureFixture[str], form: OutputFormat | Output, *, headers: bool = True) -> str:
    asked = form if isinstance(form, Output) else Output(form)
    printer = ItemPrinter(asked, "GangList", "STATE", "state", headers=headers)
    for moment in WATCHED:
        printer.print_changes([item(*cells) for cells in moment])
    return capsys.readouterr().out


def test_a_table_whose_columns_grow(capsys: pytest.CaptureFixture[str]) -> None:
    assert item_lines(capsys, OutputFormat.TABLE) == CHANGES
    bare = item_lines(capsys, OutputFormat.WIDE, headers=False)
    assert [line.split() for line in bare.splitlines()] == [line.split() for line in CHANGES.splitlines()[1:]]


def test_documents_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    text, decoder, found = item_lines(capsys, OutputFormat.JSON), json.JSONDecoder(), []
    while text.strip():
        document, end = decoder.raw_decode(text.lstrip())
        found.append((document["name"], document["state"]))
        text = text.lstrip()[end:]
    assert found == DOCUMENTS
    loaded = list(yaml.safe_load_all(item_lines(capsys, OutputFormat.YAML)))
    assert [(it["name"], it["state"]) for it in loaded] == DOCUMENTS


# --- Timelines: tables and bars of few pods and of many, in narrow terminals and wide ones ----------------------------

TIMELINE = """\
JobSet team-a/train: 3/4 pods started; the gate is closed
first pod made 2027-01-15T08:00:00Z
barriers: first to last start 15s so far (1 pod still to come) or more (of 1 pod not known)
24 nvidia.com/gpu held at the gate: 680 device-seconds or more (of 1 pod not known), cost 0.47

POD           CREATED   SCHEDULED   PULLED   STARTED   RELEASED   RUNNING   HELD
workers-0/0   +0s       +1s         +9s      +10s      -          -         50s+
workers-0/1   +0s       +1s         ?        +25s      -          -         35s+
workers-0/2   +0s       ?           ?        ?         -          -         ?
workers-0/3   +2s       -           -        -         -          -         -

Times count from the first pod's creation. - not yet, ? no longer known.
Note: a note
"""


def waiting() -> Timeline:
    pods = (
        held(0, devices=GPUS),
        pod(1, at={"created": 0, "scheduled": 1, "started": 25}, devices=GPUS),
        pod(2, at={"created": 0}, gone=frozenset({Step.STARTED}), devices=GPUS),
        pod(3, at={"created": 2}),
    )
    return timeline(*pods, notes=("a note",))


def many() -> Timeline:
    return timeline(*(through(it, start=10 + it / 100) for it in range(4000)), opened=T0 + 29)


def test_a_table_tells_what_is_not_yet_from_what_is_not_known() -> None:
    it = waiting()
    assert timeline_table(it, idle_devices(it, {"": 2.5}), wide=False, every=False) == TIMELINE


def test_a_table_of_many_is_short_unless_all_are_requested() -> None:
    short = timeline_table(many(), (), wide=False, every=False)
    assert len(short.splitlines()) < 30
    assert "--all shows every pod" in short
    line = next(it for it in short.splitlines() if it.startswith("workers 0-10%"))
    assert line.split()[2:] == ["400", "+0s", "+1s", "+9s..13s", "+10s..14s", "+30s", "+32s"]
    whole = timeline_table(many(), (), wide=True, every=True)
    assert sum(it.startswith("workers-0/") for it in whole.splitlines()) == 4000


def test_bars_say_the_same_as_the_picture() -> None:
    it = timeline(through(0, start=20, opened=40), held(1, gave_up=T0 + 30, alive=False), after=4000)
    lines = timeline_bars(it, (), 60).splitlines()
    bar = next(line for line in lines if line.startswith("workers-0/0"))
    first, last = bar.index("|"), bar.rindex("|")
    assert "".join(dict.fromkeys(bar[first + 1 : last])) == ".:#>="
    assert next(line for line in lines if line.startswith("workers-0/1")).rstrip(" |").endswith("#X")


@given(timelines(70), st.integers(30, 200))
@settings(max_examples=25)
def test_bars_are_as_wide_as_the_terminal(it: Timeline, columns: int) -> None:
    assert "|" in timeline_bars(waiting(), (), columns - 30)  # however narrow it is
    found = [line for line in timeline_bars(it, (), columns).splitlines() if line.endswith("|")]
    assert len(found) == len(rows(it))
    assert {len(line) for line in found} <= {columns}


def test_documents_have_milliseconds_only_where_they_are_known() -> None:
    it = timeline(held(0, generation=Generation("u-1", 0, 0)), waiting_since=T0 + 0.25)
    made = timeline_json(it, ())
    assert (made["waitingSince"], made["pods"][0]["times"]["started"]) == (
        "2027-01-15T08:00:00.250Z",
        "2027-01-15T08:00:10Z",
    )


# --- The table of Jobs that `describe` shows --------------------------------------------------------------------------

MANY = 2**31 - 1
"""The largest number of replicas there is: a loop over them never ends."""


def test_of_two_billion_jobs_the_first_that_lack_pods_are_shown_and_the_others_counted() -> None:
    spec = gangs.replicated_job(replicas=MANY, parallelism=1, completions=1)
    pods = gangs.pod(0), gangs.pod(0, number=MANY - 1)
    seen = gangs.gang(*pods, workload=gangs.jobset(spec), jobs=(gangs.job(), gangs.job(number=MANY - 1)))
    titles, first, *more, last = job_rows(seen)
    assert titles == ("JOB", "STARTED", "STATE")
    assert first == (f"{seen.workload.name}-{spec.name}-1", "0/1", "not created")
    assert len([first, *more]) == MOST_ROWS
    assert last == (f"and {MANY - MOST_ROWS} more",)
