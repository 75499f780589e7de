"""`wait`: what it takes for an end, how it says it, and with which exit code (A5, A7)."""

import asyncio
import re
import time
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.cli.fetch.outcome import GANG_GOALS
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.podgroups.record import AdmissionState
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.flow.cli.conftest import LimitedUser

SUBJECT = "jobset.jobset.x-k8s.io/train"
PATIENCE = "90s"


async def test_it_ends_well_when_the_gang_is_released_meanwhile(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset()
    waiting = asyncio.create_task(cli("wait", "jobset/train", "--for=released", f"--timeout={PATIENCE}"))
    await stored.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "2/2 pods started")
    ran = await waiting
    assert (ran.code, ran.out, ran.err) == (0, f"{SUBJECT} released: 2/2 pods started\n", "")


async def test_the_other_outcome_is_a_failure_that_says_which(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset()
    await stored.config_map(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "timed out after 300s: 1/2 pods started")
    ran = await cli("wait", "train", "--timeout", PATIENCE)
    shown = f"error: {SUBJECT} was not released but timed out: timed out after 300s: 1/2 pods started\n"
    assert (ran.code, ran.out, ran.err) == (1, "", shown)
    ran = await cli("wait", "train", "--for=timedout")
    assert (ran.code, ran.out) == (0, f"{SUBJECT} timed out: timed out after 300s: 1/2 pods started\n")


@pytest.mark.parametrize("cause", [names.REASON_TIMED_OUT, names.REASON_INDEX_FAILED])
async def test_a_gate_that_its_timeout_has_opened_is_released_and_has_timed_out(
    stored: StoredJobSet, cli: CliShell, cause: str
) -> None:
    await stored.jobset()
    await stored.config_map(VerdictKind.RELEASE, cause, "late")
    assert [(await cli("wait", "train", f"--for={it}")).code for it in sorted(GANG_GOALS)] == [0, 0]


async def test_several_are_waited_for_and_a_failure_weighs_more_than_the_time(
    stored: StoredJobSet, cli: CliShell
) -> None:
    await stored.jobset()
    ran = await cli("wait", "train", "moon", "jobset/sun", "--timeout=0")
    assert ran.code == 1
    where = f"in namespace {stored.namespace}"
    first, second, third = sorted(line for line in ran.err.splitlines() if line.startswith("error"))
    assert first == f"error: JobSet moon not found {where}, and no pod group of that name either"
    assert second == f"error: JobSet sun not found {where}"
    assert "is not released after 0s" in third


async def test_a_group_is_waited_for_until_it_is_opened_and_then_satisfied(
    groups: StoredPodGroups, cli: CliShell
) -> None:
    await groups.group("ring", 2)
    await groups.held("ring", "a", "b")
    opened = asyncio.create_task(cli("wait", "podgroup/ring", "--for=opened", f"--timeout={PATIENCE}"))
    ran = await cli("wait", "gang/ring", "--timeout=0")
    why = rf"`jobset-gate why podgroup/ring -n {groups.namespace} --kubeconfig \S+` says what it waits for"
    assert (ran.code, ran.out) == (3, "")
    assert re.search(f"error: podgroup/ring is not satisfied after 0s; {why}", ran.err)
    await groups.decide("ring", 2)
    ran = await opened
    assert (ran.code, ran.out.startswith("podgroup/ring opened: 0/2 pods are bound")) == (0, True)
    satisfied = asyncio.create_task(cli("wait", "ring", f"--timeout={PATIENCE}"))
    await groups.decide("ring", 2, satisfied=time.time())
    ran = await satisfied
    assert (ran.code, ran.out.startswith("podgroup/ring satisfied: ")) == (0, True)


async def test_a_group_that_was_taken_back_has_timed_out_and_is_tried_again(
    groups: StoredPodGroups, cli: CliShell
) -> None:
    back = groups.decided(
        "ring", stage=AdmissionState.ROLLING_BACK, rolled_back=1, why="1 of 2 pods were bound within 60s"
    )
    await groups.group("ring", 2, decided=back)
    await groups.held("ring", "a")
    ran = await cli("wait", "podgroup/ring", "--for=timedout", "--timeout=0")
    assert (ran.code, ran.out.startswith("podgroup/ring timed out: ")) == (0, True)
    assert (await cli("wait", "podgroup/ring", "--timeout=0")).code == 3
    given_up = groups.decided("star", stage=AdmissionState.CLOSED, retry=False, rolled_back=1, why="it took too long")
    await groups.group("star", 2, decided=given_up)
    ran = await cli("wait", "podgroup/star", "--timeout", PATIENCE)
    assert (ran.code, "error: podgroup/star was not satisfied but timed out: " in ran.err) == (1, True)


async def test_a_jobset_that_finished_is_known_by_its_condition(stored: StoredJobSet, cli: CliShell) -> None:
    await stored.jobset()
    body: dict[str, Any] = {"status": {"terminalState": "Failed"}}
    await stored.client.patch(
        JOBSETS, "train", stored.namespace, body=body, patch=PatchType.MERGE, subresource="status"
    )
    ran = await cli("wait", "train", "--timeout", PATIENCE)
    assert (ran.code, "has finished, and what was decided is not known any more" in ran.err) == (1, True)
    await stored.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "2/2 pods started")
    assert (await cli("wait", "train", "--timeout", PATIENCE)).code == 0


async def test_without_a_right_to_configmaps_the_condition_tells(
    stored: StoredJobSet, cli: CliShell, limited: LimitedUser
) -> None:
    await stored.jobset()
    rule = {"apiGroups": [names.JOBSET_GROUP], "resources": ["jobsets"], "verbs": ["get", "list", "watch"]}
    config = await limited([rule])
    waiting = asyncio.create_task(cli.user(config)("wait", "train", "--timeout", PATIENCE))
    await stored.condition(names.REASON_STARTED, f"2/2 pods started (uid {stored.uid}, attempt 0, epoch 0)", "True")
    ran = await waiting
    assert (ran.code, ran.out) == (0, f"{SUBJECT} released: 2/2 pods started\n")
    assert f"cannot get configmaps in namespace {stored.namespace}: what was decided is known from" in ran.err
