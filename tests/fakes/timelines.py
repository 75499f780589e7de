"""Builders of pods' ways through the gate, and strategies for any way that there may be."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from jobset_gate.barrier.model import Generation
from jobset_gate.sources.table import JOBSET
from jobset_gate.timeline.model import BARRIER_STEPS, PodTimeline, Step, Timeline

T0 = 1_800_000_000.0
GPUS = (("nvidia.com/gpu", 8),)


def pod(index: int | None = 0, /, *, job: str = "workers", number: int = 0, at: Any = None, **more: Any) -> PodTimeline:
    """A pod of the first attempt; `at` are seconds after T0 by the name of the step."""
    times = {Step(name): T0 + seconds for name, seconds in (at or {}).items()}
    given: dict[str, Any] = {
        "name": f"train-{job}-{number}-{index}-x7k2p",
        "uid": f"pod-{job}-{number}-{index}",
        "replicated_job": job,
        "job_index": number,
        "index": index,
        "times": times,
        "generation": Generation("u-1", 0, 0),
    }
    return PodTimeline(**(given | more))


def through(index: int | None = 0, /, *, start: float = 10, opened: float = 30, **more: Any) -> PodTimeline:
    """One that came to the gate after `start` seconds and runs."""
    at = {"created": 0, "scheduled": 1, "pulled": start - 1, "started": start}
    at |= {"released": opened, "mainPulled": opened + 1, "running": opened + 2}
    return pod(index, at=at, **more)


def held(index: int | None = 0, /, *, start: float = 10, **more: Any) -> PodTimeline:
    return pod(index, at={"created": 0, "scheduled": 1, "pulled": start - 1, "started": start}, **more)


def timeline(*pods: PodTimeline, after: float = 60, **more: Any) -> Timeline:
    """As it stands so many seconds after T0."""
    given: dict[str, Any] = {"source": JOBSET, "namespace": "team-a", "name": "train", "attempt": 0}
    given["expected"] = len(pods)
    return Timeline(pods=pods, now=T0 + after, **(given | more))


@st.composite
def pod_timelines(draw: st.DrawFn, index: int = 0) -> PodTimeline:
    """Any way: clocks that disagree, times that are lost, ends in the middle."""
    far = draw(st.integers(1, len(BARRIER_STEPS.steps)))
    known = draw(st.lists(st.booleans(), min_size=far, max_size=far))
    seconds = draw(st.lists(st.integers(0, 500), min_size=far, max_size=far))
    at = {step: T0 + at for step, is_known, at in zip(BARRIER_STEPS.steps, known, seconds, strict=False) if is_known}
    last = BARRIER_STEPS.steps[far - 1]
    gone = frozenset({last}) if last in BARRIER_STEPS.transition_steps else frozenset()
    quits = T0 + draw(st.integers(0, 600)) if last is Step.STARTED and draw(st.booleans()) else None
    return pod(
        index,
        job=draw(st.sampled_from(["leader", "workers"])),
        times={Step.CREATED: T0, **at},
        gone=gone,
        gave_up=quits,
        alive=draw(st.booleans()),
        devices=draw(st.sampled_from([(), GPUS])),
    )


@st.composite
def timelines(draw: st.DrawFn, most: int = 150) -> Timeline:
    some = draw(st.lists(pod_timelines(), min_size=1, max_size=6))
    many = draw(st.integers(1, most))
    pods = [with_index(some[number % len(some)], number) for number in range(many)]
    opened = draw(st.one_of(st.none(), st.integers(0, 500)))
    return timeline(*pods, after=600, opened=None if opened is None else T0 + opened, verdict="AllPodsStarted")


def with_index(like: PodTimeline, number: int) -> PodTimeline:
    """The same way, gone by another pod."""
    name = f"{like.replicated_job}-{number}"
    return msgspec.structs.replace(like, index=number, name=name, uid=name)
