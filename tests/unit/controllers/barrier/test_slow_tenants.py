"""Conditions and Events pass the tenant's own admission webhooks: whatever they do, no other gang waits for it."""

from dataclasses import replace

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import EVENTS, JOBSETS
from jobset_gate_demo.fake.apiserver.requests import ApiRequest
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.fakes.embedded_controller import embedded_controller
from tests.fakes.faults import ALWAYS, WRITES, Match
from tests.fakes.gate_stream import until

SLOW_GANGS = 8
WORKERS = 4
PROMPTLY = 5.0
"""Virtual seconds; each request that hangs takes thirty."""


def about_slow_gangs(call: ApiRequest) -> bool:
    return b"slow-" in call.body or "slow-" in str(call.target.name)


@pytest.mark.parametrize("bypassed", [False, True], ids=["the conditions hang", "the Events hang"])
async def test_a_gang_is_released_promptly_while_status_writes_of_many_others_hang(bypassed: bool) -> None:
    async with embedded_controller(workers=WORKERS) as at:
        ours = [Match(EVENTS, WRITES, agent=names.PROGRAM), Match(JOBSETS, subresource="status", agent=names.PROGRAM)]
        hanging = [at.faults.hang(replace(it, when=about_slow_gangs), times=ALWAYS) for it in ours]
        at.kubelets.inject_fault(PodFault(PodMatch(name="slow-*"), unschedulable="no room"))
        for number in range(SLOW_GANGS):
            await at.make(name=f"slow-{number}", annotations={names.BYPASS: "true"} if bypassed else None)
        await until(lambda: sum(rule.struck for rule in hanging) >= WORKERS)
        await at.make()
        assert (await at.until_verdict(PROMPTLY)).kind is VerdictKind.RELEASE
        for rule in hanging:
            rule.released.set()
