"""Faults of the API server between a gang and its release (faults.md 1, 6, 8, 20), on the embedded one."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate_demo.fake import manifests
from tests.fakes.faults import ALWAYS, Faults, Match
from tests.flow.environment import QUICK, Environment, environment
from tests.plane.embedded import Embedded

OURS = names.PROGRAM
"""The controller's user agent."""


@pytest.fixture
async def stage(embedded_plane: Embedded) -> AsyncIterator[Environment]:
    await embedded_plane.make_namespace("faults")
    async with environment(embedded_plane, "faults", behaviour=replace(QUICK, configmap_sync=100_000.0)) as made:
        yield made


@pytest.fixture
def faults(embedded_plane: Embedded) -> Faults:
    return embedded_plane.faults


async def test_throttled_patches_are_sent_again_when_the_server_says_so(stage: Environment, faults: Faults) -> None:
    stage.service.cut()
    throttled = faults.fail(Match(PODS, ("patch",), agent=OURS), status=429, retry_after=1, times=5)
    await stage.create(manifests.gang(jobs=2, pods=3))
    await stage.until_running(6)
    assert throttled.struck == 5


async def test_one_gang_that_cannot_be_kept_does_not_delay_the_others(stage: Environment, faults: Faults) -> None:
    bad = Match(CONFIGMAPS, ("create",), agent=OURS, when=lambda call: b"bad-" in call.body)
    broken = faults.fail(bad, status=500, times=ALWAYS)
    await stage.create(manifests.gang("bad", jobs=1, pods=2))
    for name in ("good", "better", "best"):
        await stage.create(manifests.gang(name, jobs=1, pods=2))
    await stage.until_running(6)
    assert broken.struck > 0
    assert await stage.verdict("bad") is None
    broken.cancel()
    # A change of the JobSet ends the back-off, which may have grown to a minute.
    await stage.merge("bad", {"metadata": {"annotations": {"touched": "yes"}}})
    await stage.until_running(8)


async def test_a_status_that_cannot_be_written_holds_up_no_release(stage: Environment, faults: Faults) -> None:
    refused = faults.fail(Match(JOBSETS, ("patch",), subresource="status", agent=OURS), status=500, times=ALWAYS)
    await stage.create(manifests.gang(jobs=2, pods=3))
    await stage.until_running(6)
    refused.cancel()
    await stage.until_condition("gang", names.REASON_STARTED)
