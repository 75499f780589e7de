"""What is kept of a tenant's objects is as long as the rules need it, and not as long as the tenant wrote it."""

from collections.abc import Callable

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec, wire
from jobset_gate.barrier.model import Generation, Verdict, VerdictKind
from jobset_gate.sources import decode
from tests.fakes.growth import retained
from tests.fakes.present import present
from tests.fakes.wire_objects import BARRIER, Json, ended, pod, read_jobset, status

LONG = 250_000


def long(number: int) -> str:
    return f"{number} " + "x" * LONG


def config_map(data: Json, **notes: str) -> Json:
    meta = {
        "name": "train" + names.CONFIG_MAP_SUFFIX,
        "labels": {names.GATE: names.GATE_VALUE},
        "annotations": {names.JOBSET_UID: "uid"} | notes,
    }
    return {"metadata": meta, "data": data}


VERDICT = "timeout uid 0 0 TimedOut\n"

PODS: dict[str, Callable[[int], Json]] = {
    "the annotation of a verdict": lambda it: pod(notes={names.VERDICT: VERDICT + long(it)}),
    "other annotations": lambda it: pod(notes={"example.com/note": long(it)}),
    "other labels": lambda it: pod(labels={f"example.com/{it}-{each}": "x" for each in range(5000)}),
    "a termination message": lambda it: pod(
        status("setup", waiting="CrashLoopBackOff", last=ended(1, message=long(it))), status(BARRIER, waiting="")
    ),
    "the name of an image": lambda it: pod(
        status("setup", waiting="ImagePullBackOff", message=long(it)), status(BARRIER, waiting="")
    ),
    "phase": lambda it: {**pod(), "status": {"phase": long(it)}},
}

CONFIG_MAPS: dict[str, Callable[[int], Json]] = {
    "a verdict with a long message": lambda it: config_map({names.KEY_VERDICT: VERDICT + long(it)}),
    "a verdict with a long cause": lambda it: config_map({names.KEY_VERDICT: VERDICT.strip() + long(it)}),
    "other data": lambda it: config_map({f"key-{it}": long(it)}),
    "the UID of a JobSet": lambda it: config_map({}, **{names.JOBSET_UID: long(it)}),
    "a clock": lambda it: config_map({names.KEY_WAITING_SINCE: long(it)}),
}


@pytest.mark.parametrize("what", [*PODS, *CONFIG_MAPS])
def test_of_a_pod_and_of_a_config_map_little_is_kept_whatever_it_holds(what: str) -> None:
    if what in PODS:
        assert retained(PODS[what], wire.Pod, decode.pod) < 0.5
    else:
        assert retained(CONFIG_MAPS[what], wire.ConfigMap, decode.config_map) < 0.5


def test_of_a_config_that_nobody_can_read_a_few_words_are_retained() -> None:
    seen = present(read_jobset({"metadata": {"name": "train", "annotations": {names.CONFIG: "{" * LONG}}}))
    assert 0 < len(seen.config_problem) < 2000


def test_a_verdict_on_a_pod_that_is_as_long_as_ours_can_be_is_still_read() -> None:
    text = verdict_codec.render(
        Verdict(
            kind=VerdictKind.TIMEOUT,
            generation=Generation("0" * 36, 10**9 - 1, 10**9 - 1),
            cause=names.REASON_TIMED_OUT,
            message="\u20ac" * 10_000,
        )
    )
    seen = decode.pod(msgspec.convert(pod(notes={names.VERDICT: text}), wire.Pod))
    assert seen.verdict == text
    found = present(verdict_codec.parse(text))
    assert verdict_codec.render(found) == text


def test_a_forged_verdict_with_endless_words_still_leaves_a_condition_that_the_api_takes() -> None:
    found = present(verdict_codec.parse(VERDICT + "x" * 1900))
    assert len(messages.decided(found).message) < 1100
    assert verdict_codec.parse(VERDICT + "x" * 900_000) is None


def devices(many: int) -> Json:
    asked = {f"example.com/{number}": "1" for number in range(many)}
    spec = {"containers": [{"name": "c", "resources": {"requests": asked}}]}
    return {
        "metadata": {"name": "train", "annotations": {names.CONFIG: "{}"}},
        "spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": {"spec": spec}}}}]},
    }


def test_a_jobset_that_names_tens_of_thousands_of_devices_is_read_and_none_is_counted() -> None:
    """Its every change would take the loop for seconds."""
    few, many = read_jobset(devices(2000)), read_jobset(devices(40_000))
    assert many is not None
    assert (len(present(few).replicated_jobs[0].devices), many.replicated_jobs[0].devices) == (2000, ())
    assert retained(lambda _: devices(40_000), wire.JobSet, decode.jobset, many=2) < 0.5
