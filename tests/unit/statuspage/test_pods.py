"""The pods of a gang's page: what each waits for, on which node, those that need attention first; and the window."""

import asyncio

from controllers.barrier.cache import GangCache
from controllers.statuspage import timelines
from controllers.statuspage.pods import MAX_PODS, PodsSection, parse_window, pod_list
from controllers.statuspage.source import Freshness, PageSource
from controllers.statuspage.timelines import TimelineRenderer, timed_out_generation
from jobset_gate import names
from jobset_gate.barrier.model import GangKey, Generation, PendingCause, PendingReason, VerdictKind, WorkloadSeen
from jobset_gate.timeline.model import PLACEMENT_STEPS
from jobset_gate.timeline.svg import make_drawing
from tests.fakes import gangs
from tests.fakes.eventually import PATIENCE
from tests.fakes.review_api import FakeReviewApi
from tests.fakes.timelines import T0, held, pod, through, timeline

NO_ROOM = PendingCause(reason=PendingReason.UNSCHEDULED, message="no room")


def test_each_pod_has_its_stage() -> None:
    stages = {
        "Running": through(0, node="n-1"),
        "Started": held(0),
        "Released": pod(0, at={"created": 0, "released": 5}),
        "Starting": pod(0, at={"created": 0, "scheduled": 2}),
        "Unscheduled": pod(0, at={"created": 0}),
        "Failed": held(0, phase="Failed", alive=False),
        "TimedOut": held(0, phase="Failed", alive=False, gave_up=T0 + 40),
        "Terminating": held(0, alive=False),
        "Succeeded": through(0, phase="Succeeded"),
        "Held": pod(0, at={"created": 0}, path=PLACEMENT_STEPS),
        "Bound": pod(0, at={"created": 0, "scheduled": 1}, path=PLACEMENT_STEPS),
    }
    assert {name: pod_list([it], {}).rows[0].stage for name, it in stages.items()} == {name: name for name in stages}


def test_those_that_have_not_started_come_first_with_their_reason() -> None:
    late = pod(1, at={"created": 0})
    found = pod_list([held(0), late, held(2), through(0, job="driver")], {late.name: NO_ROOM})
    assert [(it.pod.slot, it.stage, it.message) for it in found.rows] == [
        ("workers-0/1", "Unscheduled", "no room"),
        ("workers-0/0", "Started", ""),
        ("workers-0/2", "Started", ""),
        ("driver-0/0", "Running", ""),
    ]
    assert pod_list([held(0)], {held(0).name: NO_ROOM}).rows[0].message == "", "a reason from before its start"
    assert [(name, stages, len(rows)) for name, stages, rows in found.parts()] == [
        ("workers", "1 Unscheduled, 2 Started", 3),
        ("driver", "1 Running", 1),
    ]


def test_of_very_many_those_are_shown_that_need_attention() -> None:
    found = pod_list([*(through(it) for it in range(MAX_PODS)), pod(MAX_PODS, at={"created": 0})], {})
    assert (len(found.rows), found.count) == (MAX_PODS, MAX_PODS + 1)
    assert found.rows[0].pod.slot == f"workers-0/{MAX_PODS}"


def test_a_window_is_two_seconds_in_order() -> None:
    assert parse_window({"from": "3", "to": "9"}) == (3.0, 9.0)
    for start, end in (("9", "3"), ("3", "3"), ("", "9"), ("-1", "9"), ("3", "9.5"), ("x", "9"), ("3", "9" * 9)):
        assert parse_window({"from": start, "to": end}) is None


def test_zooming_leads_to_the_opening_and_stays_within_the_timeline() -> None:
    drawing = make_drawing(timeline(through(0, opened=90), after=100, opened=T0 + 90))

    def links(*window: float) -> dict[str, str]:
        seen = (window[0], window[1]) if window else None
        return dict(PodsSection(drawing=drawing, svg="/x.svg", window=seen, path="/x").links())

    end = int(drawing.seconds) + 1
    whole = links()
    assert whole["Zoom in"] == f"/x?from={end - end // 2}&to={end}", "around the opening, as far as there is something"
    assert [whole[it] for it in ("Zoom out", "Earlier", "Later", "Whole")] == [""] * 4
    part = links(20, 40)
    assert part["Zoom in"] == "/x?from=25&to=35"
    assert part["Zoom out"] == "/x?from=10&to=50"
    assert (part["Earlier"], part["Later"], part["Whole"]) == ("/x?from=10&to=30", "/x?from=30&to=50", "/x")
    assert links(0, 20)["Earlier"] == ""
    assert links(20, 24)["Zoom in"] == ""
    grouped = PodsSection(drawing=drawing, svg="/x.svg?a=b", window=(2.0, 9.0), path="/x")
    assert grouped.picture == "/x.svg?a=b&from=2&to=9"


# --- Timelines of gangs that timed out: of the present generation only, and not in the viewers' way ------------------

GENERATION = Generation(gangs.UID, 0, 0)


def late(**changes: object) -> WorkloadSeen:
    condition = gangs.condition(names.REASON_TIMED_OUT, "late (uid u-1, attempt 0, epoch 0)", status="False")
    return gangs.jobset(**({"condition": condition} | changes))


def test_only_a_timeout_of_the_present_generation_counts() -> None:
    timeout = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT)
    opened = gangs.condition(names.REASON_TIMED_OUT, "opened (uid u-1, attempt 0, epoch 0)")
    for jobset, verdict, expected in (
        (late(), None, GENERATION),
        (late(attempt=1), None, None),
        (late(uid="u-2"), None, None),
        (gangs.jobset(), None, None),
        (gangs.jobset(), timeout, GENERATION),
        (gangs.jobset(attempt=1), timeout, None),
        (late(), gangs.verdict(VerdictKind.RELEASE), None),
        (late(condition=opened), None, None),
    ):
        assert timed_out_generation(jobset, verdict) == expected


async def test_many_timeouts_do_not_keep_viewers_waiting() -> None:
    api = FakeReviewApi()
    source = PageSource(GangCache(lambda _: None, lambda _, __: None), lambda: gangs.T0, Freshness)
    renderer = TimelineRenderer(api.client(), source)
    for number in range(1000):
        renderer.on_gang_change(GangKey("default", f"train-{number}"), late(), None)
    assert len(renderer.tasks) == timelines.MAX_TASKS
    async with asyncio.timeout(PATIENCE):
        await renderer.of_gang(gangs.gang(gangs.pod(0), workload=gangs.jobset(name="other")))
    assert len(renderer.tasks) <= timelines.MAX_CONCURRENT
    await renderer.stop()
