"""A pod group's timeline: gathered, opened, bound, running, and what it cost that pods had nodes before others did."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import msgspec

from jobset_gate.cli.printers.timeline import timeline_bars, timeline_table
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.status import group_status
from jobset_gate.timeline.gang import pod_group_timeline
from jobset_gate.timeline.model import Activity, PodTimeline, Step, Timeline
from jobset_gate.timeline.summary import idle_devices
from jobset_gate.timeline.svg import timeline_svg
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, pod, pod_group, record
from tests.fakes.podgroups.snapshots import bound, group_snapshot, opened
from tests.fakes.podgroups.sources import Json

T0 = TEN_O_CLOCK
NOW = T0 + 120
OPEN = msgspec.structs.replace(record((key(), 1), satisfied=T0 + 20), at=T0 + 10, newest=T0 + 9)
GPUS: Json = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
SVG = "{http://www.w3.org/2000/svg}"


def gpu_pod(made: Json) -> Json:
    return made | {"spec": made["spec"] | GPUS}


def shown(
    *pods: tuple[Json, Mapping[str, float]], now: float = NOW, decided: AdmissionRecord | None = OPEN, gone: Any = ()
) -> Timeline:
    """A group of three with its PodGroup; of each pod the seconds after ten o'clock at which its status says what."""
    seen = group_snapshot(*(body for body, _ in pods), group=pod_group(), record=decided)
    ways = [
        PodTimeline(
            name=member.name,
            uid=member.uid,
            node=member.node,
            alive=member.alive,
            times={Step(step): T0 + second for step, second in at.items()},
            gone=frozenset(gone),
        )
        for member, (_, at) in zip(seen.members, pods, strict=True)
    ]
    return pod_group_timeline(group_status(seen, now), ways, now)


def whole() -> Timeline:
    """Three that were opened at +10 s, bound at +12, +15, +20, and ran two seconds later."""
    ways = [{"created": number, "scheduled": at, "running": at + 2} for number, at in enumerate((12, 15, 20))]
    pods = [gpu_pod(bound(name, at=T0 + 10)) for name in "abc"]
    return shown(*zip(pods, ways, strict=True))


def test_a_group_that_runs_is_shown_from_its_gathering_to_its_last_main() -> None:
    """Bound at 12, 15 and 20, all three run at 22: eight devices of each are idle for 10 + 7 + 2 seconds."""
    it = whole()
    (gpus,) = idle_devices(it, {"": 3600.0})
    assert (gpus.devices, gpus.seconds, gpus.unknown, gpus.cost) == (24, 8 * 19.0, 0, 8 * 19.0)
    text = timeline_table(it, idle_devices(it, {"": 3600.0}), wide=False, every=False)
    assert text.splitlines()[:6] == [
        "PodGroup team/g: 3/3 pods are bound; it was opened 10s after its first pod was made (Fit)",
        "first pod made 2026-08-01T10:00:00Z",
        "gathered, 3 pods there: +2s",
        "its minimum of 3 pods bound: +20s",
        "placement skew, first to last bound: 8s",
        "start skew, first to last main container: 8s",
    ]
    assert any(line.split() == ["POD", "CREATED", "OPENED", "BOUND", "RUNNING", "HELD"] for line in text.splitlines())
    assert any(line.split() == ["b", "+1s", "+10s", "+15s", "+17s", "9s"] for line in text.splitlines())


def test_while_one_is_missing_they_are_idle_up_to_now() -> None:
    late = (gpu_pod(opened("c", at=T0 + 10)), {"created": 0})
    there = [(gpu_pod(bound(name, at=T0 + 10)), {"created": 0, "scheduled": 20, "running": 22}) for name in "ab"]
    it = shown(*there, late, now=T0 + 50, decided=msgspec.structs.replace(OPEN, satisfied=None))
    assert idle_devices(it)[0].seconds == 2 * 8 * 30
    assert "2/3 pods are bound" in timeline_bars(it, idle_devices(it), 100)


def test_what_is_no_longer_known_is_reported_and_not_guessed() -> None:
    pods = [(gpu_pod(bound(name, at=T0 + 10)), {"created": 0, "scheduled": 12}) for name in "abc"]
    it = shown(*pods, gone={Step.RUNNING})
    assert it.placing is not None
    assert (it.placing.works, it.placing.working) == (True, None)
    (gpus,) = idle_devices(it)
    assert (gpus.seconds, gpus.unknown) == (0, 3)
    text = timeline_table(it, idle_devices(it), wide=False, every=False)
    assert any(line.split() == ["a", "+0s", "+10s", "+12s", "?", "10s"] for line in text.splitlines())
    assert "Note: of 3 pods the cluster no longer knows every time" in text


def test_a_group_that_waits_is_held_by_its_gates() -> None:
    it = shown((pod("a"), {"created": 0}), (pod("b"), {"created": 5}), decided=None, now=T0 + 30)
    assert [[(span.activity, span.end - span.start) for span in one.spans(it.until)] for one in it.pods] == [
        [(Activity.HELD, 30)],
        [(Activity.HELD, 25)],
    ]
    text = timeline_table(it, (), wide=False, every=False)
    assert text.startswith("PodGroup team/g: 0/3 pods are bound; it is not opened\n")
    assert "Note: 1 pod of its minimum of 3 is gone or was never made" in text


def test_pods_that_came_later_or_belong_to_an_earlier_generation_count_only_where_there_are_no_others() -> None:
    pods = [(bound(name, at=T0 + 10), {"created": 0, "scheduled": 12}) for name in "ab"]
    later = (bound("later", at=T0 + 60), {"created": 50, "scheduled": 61})
    old = (bound("old", 7, at=T0 - 60), {"created": -90, "scheduled": -50})
    it = shown(*pods, later, old)
    assert ([one.name for one in it.pods], [one.name for one in it.replacements]) == (["a", "b"], ["later"])
    assert it.origin == T0
    assert any("1 pod of an earlier generation" in note for note in it.notes)
    text = timeline_table(it, (), wide=False, every=False)
    assert "when it was gathered is not known any more: pods have been replaced since" in text
    assert "Note: 1 pod made after it was opened" in text
    it = shown((bound("a", at=T0 + 60), {"created": 50, "scheduled": 61}))
    assert ([one.name for one in it.pods], it.replacements) == (["a"], ())


def test_a_group_that_was_taken_back_says_why() -> None:
    back = record((key(), 1), stage=AdmissionState.CLOSED, rolled_back=2, why="1 of 3 pods were bound within 60s")
    it = shown((pod("a"), {"created": 0}), decided=back)
    assert it.notes[0] == "it was taken back 2 times: 1 of 3 pods were bound within 60s; what was before is not shown"


def test_its_picture_has_a_row_for_each_and_its_opening() -> None:
    root = ET.fromstring(timeline_svg(whole(), idle_devices(whole())))  # noqa: S314 - it is our own
    assert [each.get("class") for each in root.iter(f"{SVG}g")].count("pod") == 3
    words = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert "gave up" not in words
    assert any(each.startswith("group opened +10s") for each in words)
    boxes = [each.get("class") for each in next(root.iter(f"{SVG}g")).findall(f"{SVG}rect")]
    assert boxes == ["held", "waiting", "preparing", "running"]
