"""Tables and bars of few pods and of many, in narrow terminals and wide ones."""

import json

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.barrier.model import Generation
from jobset_gate.cli.manifests.writer import to_yaml
from jobset_gate.cli.printers.timeline import timeline_bars, timeline_table
from jobset_gate.cli.printers.timeline_json import timeline_json
from jobset_gate.timeline.model import Step, Timeline
from jobset_gate.timeline.rows import rows
from jobset_gate.timeline.summary import idle_devices
from tests.fakes.timelines import GPUS, T0, held, pod, through, timeline, timelines

TABLE = """\
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


def many(count: int = 4000) -> Timeline:
    return timeline(*(through(it, start=10 + it / 100) for it in range(count)), opened=T0 + 29)


def test_a_table_tells_what_is_not_yet_from_what_is_not_known() -> None:
    it = waiting()
    assert timeline_table(it, idle_devices(it, {"": 2.5}), wide=False, every=False) == TABLE


def test_a_table_of_many_is_short_unless_all_are_asked_for() -> None:
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


@given(timelines(6))
@settings(max_examples=25)
def test_documents_are_for_programs(it: Timeline) -> None:
    made = timeline_json(it, idle_devices(it, {"": 1.0}))
    assert json.loads(json.dumps(made)) == made
    assert yaml.safe_load(to_yaml([made])) == made
    for one in made["pods"]:
        assert not [step for step in one["unknown"] if one["times"][step] is not None]


def test_documents_have_milliseconds_only_where_they_are_known() -> None:
    it = timeline(held(0, generation=Generation("u-1", 0, 0)), waiting_since=T0 + 0.25)
    made = timeline_json(it, ())
    assert (made["waitingSince"], made["pods"][0]["times"]["started"]) == (
        "2027-01-15T08:00:00.250Z",
        "2027-01-15T08:00:10Z",
    )
