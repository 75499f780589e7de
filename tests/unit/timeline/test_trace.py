"""The trace of a gang's start: what someone sees who opens it in Jaeger, for a late pod and for a timeout."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.barrier.model import Verdict, VerdictKind
from jobset_gate.sources.table import JOB
from jobset_gate.timeline.model import PodTimeline, Timeline
from jobset_gate.timeline.trace import MAX_LINKS, MAX_PODS, Span, Trace, gang_trace
from tests.fakes import gangs
from tests.fakes.timelines import T0, held, pod, through, timeline, timelines

RELEASE = gangs.verdict()
TIMEOUT = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT)


def traced(*pods: PodTimeline, verdict: Verdict = RELEASE, decided: float = 30.5, **more: Any) -> Trace:
    return gang_trace(timeline(*pods, **more), verdict, T0 + decided, timeout=300)


def children(trace: Trace, parent: Span | None = None) -> dict[str, tuple[float, float]]:
    """Start and end, in seconds after T0, of the spans below this one, or below the root."""
    above = (parent or trace.spans[0]).span_id
    return {it.name: (it.start - T0, it.end - T0) for it in trace.spans if it.parent_id == above}


def named(trace: Trace, name: str) -> Span:
    return next(it for it in trace.spans if it.name == name)


def test_the_stages_of_a_gang_with_a_late_pod_follow_each_other() -> None:
    trace = traced(through(0), through(1, start=30))
    assert children(trace) == {
        "created": (0, 0),
        "scheduled": (0, 1),
        "pulled": (1, 29),
        "started": (9, 30),
        "decided": (30, 30.5),
        "released": (30.5, 30.5),
        "running": (30.5, 32),
        "pod workers-0/0": (0, 32),
        "pod workers-0/1": (0, 32),
    }
    assert (trace.spans[0].start, trace.spans[0].end, trace.spans[0].error) == (T0, T0 + 32, "")


def test_the_gangs_span_names_it_and_the_verdict() -> None:
    found = traced(through(0), through(1)).spans[0].attributes
    assert found == {
        "k8s.namespace.name": "team-a",
        "jobset_gate.jobset.name": "train",
        "jobset_gate.jobset.uid": "u-1",
        "jobset_gate.attempt": 0,
        "jobset_gate.epoch": 0,
        "jobset_gate.verdict": "release",
        "jobset_gate.cause": "AllPodsStarted",
        "jobset_gate.message": "as decided",
        "jobset_gate.timeout_seconds": 300,
        "jobset_gate.pods.expected": 2,
        "jobset_gate.pods.started": 2,
        "jobset_gate.pods.shown": 2,
        "jobset_gate.start_skew_seconds": 0.0,
    }
    found = traced(through(0), source=JOB).spans[0].attributes
    assert (found["jobset_gate.job.name"], found["jobset_gate.job.uid"]) == ("train", "u-1")
    assert not any(".jobset." in key for key in found)


def test_a_pods_span_shows_its_activities_up_to_its_main_containers_and_the_moment_of_each_step() -> None:
    trace = traced(through(0, node="node-7"), through(1))
    span = named(trace, "pod workers-0/0")
    activities = {"waiting for a node": (0, 1), "images and init": (1, 10), "held at the gate": (10, 30)}
    assert children(trace, span) == activities | {"starting": (30, 32)}
    assert span.attributes["k8s.node.name"] == "node-7"
    assert " ".join(name for name, _ in span.events) == "created scheduled pulled started released mainPulled running"


def test_the_gangs_span_links_to_the_slowest_pods_and_only_some_pods_have_spans() -> None:
    trace = traced(*(through(number, start=2 + number % 25) for number in range(200)))
    by_id = {it.span_id: it.name for it in trace.spans}
    slowest = [f"pod workers-0/{number}" for number in (99, 74, 49)]
    assert [by_id[span_id] for span_id, _ in trace.spans[0].links] == slowest
    assert len(slowest) == MAX_LINKS
    assert sum(name.startswith("pod ") for name in by_id.values()) == MAX_PODS
    assert trace.spans[0].attributes["jobset_gate.pods.expected"] == 200
    assert named(trace, "started").attributes["jobset_gate.pods.reached"] == 200


def test_a_timeout_is_an_error_of_the_gang_and_of_the_pod_that_had_not_started() -> None:
    late = pod(1, at={"created": 0})
    first = held(0, gave_up=T0 + 41, alive=False)
    trace = traced(first, late, verdict=TIMEOUT, decided=40, after=42, waiting_since=T0 + 10)
    assert trace.spans[0].error == "as decided"
    assert children(trace) == {
        "created": (0, 0),
        "scheduled": (0, 40),
        "pulled": (1, 40),
        "started": (9, 40),
        "decided": (10, 40),
        "pod workers-0/0": (0, 41),
        "pod workers-0/1": (0, 42),
    }
    assert named(trace, "started").attributes["jobset_gate.pods.pending"] == 1
    assert named(trace, "pod workers-0/1").error == "it had not started at the timeout"
    assert named(trace, "pod workers-0/0").error == "its barrier ended without a release"
    assert trace.spans[0].links[0][1]["jobset_gate.slot"] == "workers-0/1"


def test_a_gang_whose_pods_are_gone_is_traced_from_its_clock_to_the_verdict() -> None:
    trace = traced(verdict=TIMEOUT, decided=40, waiting_since=T0 + 10, expected=2)
    assert children(trace) == {"decided": (10, 40)}
    assert (trace.spans[0].start, trace.spans[0].end) == (T0 + 10, T0 + 40)


def test_the_same_generation_has_the_same_ids_and_another_has_others() -> None:
    first, again = traced(through(0)), traced(through(0))
    assert first == again
    for other in (gangs.verdict(attempt=1), gangs.verdict(epoch=1), gangs.verdict(uid="u-2")):
        trace = traced(through(0), verdict=other)
        assert trace.trace_id != first.trace_id
        assert {it.span_id for it in trace.spans}.isdisjoint(it.span_id for it in first.spans)


@given(timelines(most=30), st.sampled_from([RELEASE, TIMEOUT]), st.integers(0, 600))
def test_no_span_runs_backwards_or_leaves_its_trace_whatever_the_clocks_say(
    seen: Timeline, verdict: Verdict, decided: int
) -> None:
    trace = gang_trace(seen, verdict, T0 + decided)
    ids = {it.span_id for it in trace.spans}
    assert len(ids) == len(trace.spans)
    root = trace.spans[0]
    for span in trace.spans:
        assert root.start <= span.start <= span.end <= root.end
        assert span.parent_id in ids or span is root
    assert {span_id for span_id, _ in root.links} <= ids
