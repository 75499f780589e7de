"""No decision on what is true no more, and none that waits for another gang (A4, A5, A10; faults.md 2, 9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBSETS, PODS
from jobset_gate_demo.fake.apiserver.requests import ApiRequest
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.fakes.embedded_controller import GANG, SPACE, embedded_controller
from tests.fakes.faults import ALWAYS, WRITES, Match, Rule
from tests.fakes.gate_stream import until

NO_ROOM = PodFault(PodMatch(index=1), unschedulable="no room")
OURS = names.PROGRAM


def writing(what: str) -> Match:
    """The write of this kind of verdict."""
    return Match(CONFIGMAPS, ("update",), agent=OURS, when=lambda call: what.encode() in call.body)


@pytest.mark.parametrize("how", ["429", "503", "no answer"])
async def test_a_release_that_could_not_be_written_is_not_written_once_a_pod_is_lost(how: str) -> None:
    async with embedded_controller() as at:
        match = writing("release")
        rule: Rule = at.faults.fail(match, status=int(how), retry_after=20) if how.isdigit() else at.faults.hang(match)
        await at.make(timeout=None)
        await at.until(rule)
        stuck = at.kubelets.inject_fault(NO_ROOM)
        await at.client.delete(PODS, (await at.pod(1))["metadata"]["name"], SPACE)
        for _ in range(100):
            await asyncio.sleep(1)
            assert await at.verdict() is None
        at.kubelets.clear_fault(stuck)
        assert (await at.until_verdict()).kind is VerdictKind.RELEASE


async def test_no_configmap_is_made_again_and_again_for_a_jobset_that_is_gone() -> None:
    """The watch of JobSets is half open, so the controller has not heard; the garbage collector deletes each."""
    async with embedded_controller() as at:
        at.kubelets.inject_fault(NO_ROOM)
        await at.make(timeout=None)
        await asyncio.sleep(5)
        made: list[float] = []
        at.faults.on_write(
            lambda _: made.append(asyncio.get_running_loop().time()),
            Match(CONFIGMAPS, ("create",), agent=OURS),
            times=ALWAYS,
        )
        assert at.faults.silence(Match(JOBSETS, agent=OURS)) == 1
        await at.client.delete(JOBSETS, GANG, SPACE, propagation="Background")
        await asyncio.sleep(120)
        assert made == []
        assert await at.config_map() == {}


async def test_no_release_counts_a_pod_that_a_silent_watch_still_shows() -> None:
    """The last pod announces itself on the stream; the watch of pods is half open, and a counted pod has gone."""
    async with embedded_controller(stream=True) as at:
        at.kubelets.inject_fault(PodFault(PodMatch(index=1), slow_start=30.0))
        await at.make(timeout=None)
        await asyncio.sleep(10)
        assert at.faults.silence(Match(PODS, agent=OURS)) == 1
        stuck = at.kubelets.inject_fault(PodFault(PodMatch(index=0), unschedulable="no room"))
        await at.client.delete(PODS, (await at.pod(0))["metadata"]["name"], SPACE, grace_seconds=0)
        for _ in range(40):
            await asyncio.sleep(1)
            assert await at.verdict() is None
        at.kubelets.clear_fault(stuck)
        verdict = await at.until_verdict(20)  # long before the silence itself is noticed
        assert (verdict.kind, verdict.message) == (VerdictKind.RELEASE, "all 2 pods started")


@pytest.mark.parametrize(("stream", "seconds"), [(True, 5.0), (False, 300.0)])
async def test_a_release_with_a_living_watch_reads_no_pods(seconds: float, *, stream: bool) -> None:
    """Also after minutes in which nothing happened: the last pod's start is an event of a moment ago."""
    async with embedded_controller(stream=stream) as at:
        reads = at.faults.fail(Match(PODS, ("list",), agent=OURS), times=ALWAYS)
        at.kubelets.inject_fault(PodFault(PodMatch(index=1), slow_start=seconds))
        await at.make(pods=3, timeout=None)
        await at.until_verdict()
        assert reads.struck == 0


# --- Tenants' admission webhooks, which conditions and Events have to pass --------------------------------------------

SLOW_GANGS = 8
WORKERS = 4
PROMPTLY = 5.0
"""Virtual seconds; each request that hangs takes thirty."""


def about_slow_gangs(call: ApiRequest) -> bool:
    return b"slow-" in call.body or "slow-" in str(call.target.name)


@pytest.mark.parametrize("bypassed", [False, True], ids=["the conditions hang", "the Events hang"])
async def test_a_gang_is_released_promptly_while_status_writes_of_many_others_hang(bypassed: bool) -> None:
    async with embedded_controller(workers=WORKERS) as at:
        ours = [Match(EVENTS, WRITES, agent=OURS), Match(JOBSETS, subresource="status", agent=OURS)]
        hanging = [at.faults.hang(replace(it, when=about_slow_gangs), times=ALWAYS) for it in ours]
        at.kubelets.inject_fault(PodFault(PodMatch(name="slow-*"), unschedulable="no room"))
        for number in range(SLOW_GANGS):
            await at.make(name=f"slow-{number}", annotations={names.BYPASS: "true"} if bypassed else None)
        await until(lambda: sum(rule.struck for rule in hanging) >= WORKERS)
        await at.make()
        assert (await at.until_verdict(PROMPTLY)).kind is VerdictKind.RELEASE
        for rule in hanging:
            rule.released.set()
