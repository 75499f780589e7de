"""`wait`: what it takes for an end, how it says it, and with which exit code (A5, A7)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.cli.durations import WEEK, parse_duration
from jobset_gate.cli.fetch.permissions import Permissions
from jobset_gate.cli.watch.jobset_follower import JobSetFollower
from jobset_gate.cli.watch.outcome import JOBSET_GOALS, WaitGoal
from jobset_gate.cli.watch.pod_group_view import PodGroupTarget, PodGroupView
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBSETS, POD_GROUPS
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.stored_gang import StoredJobSet, install_jobset_crd
from tests.fakes.stored_pod_groups import StoredPodGroups, kubeconfig_of
from tests.plane.planes import Plane, Real
from tests.unit.cli.conftest import CliResult, RunCli

SUBJECT = "jobset.jobset.x-k8s.io/train"
PATIENCE = "90s"
embedded = pytest.mark.parametrize("plane", ["embedded"], indirect=True)


class Shell:
    """`wait` while the test's loop goes on."""

    def __init__(self, run: RunCli, kubeconfig: Path, namespace: str) -> None:
        self._run, self._more = run, ("-n", namespace, "--kubeconfig", str(kubeconfig))

    async def __call__(self, *arguments: str) -> CliResult:
        return await asyncio.to_thread(self._run, "wait", *arguments, *self._more)


@pytest.fixture
async def camp(plane: Plane, namespace: str) -> AsyncIterator[StoredJobSet]:
    async with plane.client() as client:
        yield await install_jobset_crd(client, namespace)


@pytest.fixture
def wait(run: RunCli, plane: Plane, namespace: str) -> Shell:
    return Shell(run, plane.kubeconfig, namespace)


# --- What comes ------------------------------------------------------------------------------------------------------


async def test_it_ends_well_when_the_gang_is_released_meanwhile(camp: StoredJobSet, wait: Shell) -> None:
    await camp.jobset()
    waiting = asyncio.create_task(wait("jobset/train", "--for=released", f"--timeout={PATIENCE}"))
    await camp.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "2/2 pods started")
    ran = await waiting
    assert (ran.code, ran.out, ran.err) == (0, f"{SUBJECT} released: 2/2 pods started\n", "")


async def test_the_other_outcome_is_a_failure_that_says_which(camp: StoredJobSet, wait: Shell) -> None:
    await camp.jobset()
    await camp.config_map(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "timed out after 300s: 1/2 pods started")
    ran = await wait("train", "--timeout", PATIENCE)
    told = f"error: {SUBJECT} was not released but timed out: timed out after 300s: 1/2 pods started\n"
    assert (ran.code, ran.out, ran.err) == (1, "", told)
    ran = await wait("train", "--for=timedout")
    assert (ran.code, ran.out) == (0, f"{SUBJECT} timed out: timed out after 300s: 1/2 pods started\n")


async def test_a_gate_that_its_timeout_has_opened_is_released_and_has_timed_out(
    camp: StoredJobSet, wait: Shell
) -> None:
    await camp.jobset()
    await camp.config_map(VerdictKind.RELEASE, names.REASON_TIMED_OUT, "late")
    assert [(await wait("train", f"--for={it}")).code for it in sorted(JOBSET_GOALS)] == [0, 0]


@pytest.mark.parametrize("timeout", ["0", "50ms"])
async def test_the_end_of_the_time_has_an_exit_code_of_its_own(camp: StoredJobSet, wait: Shell, timeout: str) -> None:
    await camp.jobset()
    ran = await wait("train", f"--timeout={timeout}")
    assert (ran.code, ran.out) == (3, "")
    why = rf"`jobset-gate why train -n {camp.namespace} --kubeconfig \S+` says what it waits for"
    assert re.search(rf"error: {re.escape(SUBJECT)} is not released after 0s; {why}", ran.err)


async def test_a_verdict_on_an_earlier_attempt_is_none_on_this_one(camp: StoredJobSet, wait: Shell) -> None:
    await camp.jobset()
    await camp.config_map(VerdictKind.RELEASE, names.REASON_STARTED)
    body = {"status": {"restarts": 1}}
    await camp.client.patch(JOBSETS, "train", camp.namespace, body=body, patch=PatchType.MERGE, subresource="status")
    assert (await wait("train", "--timeout=0")).code == 3


async def test_a_jobset_that_goes_is_not_waited_for_any_longer(camp: StoredJobSet) -> None:
    await camp.jobset()
    async with JobSetFollower(camp.client, camp.namespace, "train", camp.uid, Permissions()) as following:
        first = await following.until(lambda _: True, 90)
        assert not first.final
        await camp.client.delete(JOBSETS, "train", camp.namespace)
        gone = await following.until(lambda now: now.final, 90)
    assert gone.message in {"was deleted", "is being deleted"}


async def test_a_verdict_that_comes_later_is_seen_by_the_watch(camp: StoredJobSet) -> None:
    await camp.jobset()
    async with JobSetFollower(camp.client, camp.namespace, "train", camp.uid, Permissions()) as following:
        assert not (await following.until(lambda _: True, 90)).reached
        await camp.config_map(VerdictKind.RELEASE, names.REASON_STARTED)
        assert (await following.until(lambda now: bool(now.reached), 90)).reached == {WaitGoal.RELEASED}


async def test_several_are_waited_for_and_a_failure_weighs_more_than_the_time(camp: StoredJobSet, wait: Shell) -> None:
    await camp.jobset()
    ran = await wait("train", "moon", "jobset/sun", "--timeout=0")
    assert ran.code == 1
    where = f"in namespace {camp.namespace}"
    first, second, third = sorted(line for line in ran.err.splitlines() if line.startswith("error"))
    assert first == f"error: JobSet moon not found {where}, and no pod group of that name either"
    assert second == f"error: JobSet sun not found {where}"
    assert "is not released after 0s" in third


# --- Pod groups ------------------------------------------------------------------------------------------------------


async def test_a_group_is_waited_for_until_it_is_opened_and_then_satisfied(town: StoredPodGroups, wait: Shell) -> None:
    await town.group("ring", 2)
    await town.held("ring", "a", "b")
    opened = asyncio.create_task(wait("podgroup/ring", "--for=opened", f"--timeout={PATIENCE}"))
    ran = await wait("gang/ring", "--timeout=0")
    why = rf"`jobset-gate why podgroup/ring -n {town.namespace} --kubeconfig \S+` says what it waits for"
    assert (ran.code, ran.out) == (3, "")
    assert re.search(f"error: podgroup/ring is not satisfied after 0s; {why}", ran.err)
    await town.decide("ring", 2)
    ran = await opened
    assert (ran.code, ran.out.startswith("podgroup/ring opened: 0/2 pods are bound")) == (0, True)
    satisfied = asyncio.create_task(wait("ring", f"--timeout={PATIENCE}"))
    await town.decide("ring", 2, satisfied=time.time())
    ran = await satisfied
    assert (ran.code, ran.out.startswith("podgroup/ring satisfied: ")) == (0, True)


@embedded
async def test_a_group_that_was_taken_back_has_timed_out_and_is_tried_again(town: StoredPodGroups, wait: Shell) -> None:
    back = town.decided(
        "ring", stage=AdmissionState.ROLLING_BACK, rolled_back=1, why="1 of 2 pods were bound within 60s"
    )
    await town.group("ring", 2, decided=back)
    await town.held("ring", "a")
    ran = await wait("podgroup/ring", "--for=timedout", "--timeout=0")
    assert (ran.code, ran.out.startswith("podgroup/ring timed out: ")) == (0, True)
    assert (await wait("podgroup/ring", "--timeout=0")).code == 3
    given_up = town.decided("star", stage=AdmissionState.CLOSED, retry=False, rolled_back=1, why="it took too long")
    await town.group("star", 2, decided=given_up)
    ran = await wait("podgroup/star", "--timeout", PATIENCE)
    assert (ran.code, "error: podgroup/star was not satisfied but timed out: " in ran.err) == (1, True)


@embedded
async def test_a_group_that_is_not_there_or_goes_is_not_waited_for(town: StoredPodGroups, wait: Shell) -> None:
    ran = await wait("podgroup/moon", "--timeout", PATIENCE)
    assert (ran.code, ran.err) == (1, f"error: pod group moon not found in namespace {town.namespace}\n")
    await town.group("ring", 2)
    settings = Groups(capacity_check=CapacityCheck.OFF)
    async with PodGroupView(town.client, PodGroupTarget(town.namespace, "ring", ControllerStatus(), settings)) as scene:
        await scene.ready()
        assert not (await scene.look()).standing.final
        await town.client.delete(POD_GROUPS[names.PLUGINS_GROUP], "ring", town.namespace)
        while not (now := (await scene.look()).standing).final:
            await scene.change()
    assert now.message == "is there no more"


# --- What cannot come ------------------------------------------------------------------------------------------------


async def test_nobody_waits_for_a_gate_that_is_not_there(camp: StoredJobSet, wait: Shell) -> None:
    await camp.jobset(gated=False)
    ran = await wait("train", "--timeout", PATIENCE)
    assert (ran.code, ran.out) == (1, "")
    assert "it will not be released any more" in ran.err


async def test_a_jobset_that_finished_is_known_by_its_condition(camp: StoredJobSet, wait: Shell) -> None:
    await camp.jobset()
    body: dict[str, Any] = {"status": {"terminalState": "Failed"}}
    await camp.client.patch(JOBSETS, "train", camp.namespace, body=body, patch=PatchType.MERGE, subresource="status")
    ran = await wait("train", "--timeout", PATIENCE)
    assert (ran.code, "has finished, and what was decided is not known any more" in ran.err) == (1, True)
    await camp.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "2/2 pods started")
    assert (await wait("train", "--timeout", PATIENCE)).code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("pod/x",), "only JobSets and pod groups can be waited for"),
        (("podgroup/x", "--for=released"), "a pod group is opened, and satisfied"),
        (("jobset/x", "--for=opened"), "a JobSet's gate is released or timedout, not opened"),
        (("train", "--timeout=soon"), "'soon' is no length of time such as 30s, 5m or 1h30m"),
        (("train", "--for=ready"), "--for"),
        ((), "NAME"),
    ],
)
def test_wrong_usage(run: RunCli, arguments: tuple[str, ...], told: str) -> None:
    ran = run("wait", *arguments)
    assert (ran.code, told in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "length"), [("0", 0), ("30s", 30), ("1h30m", 5400), ("500ms", 0.5), ("1.5s", 1.5), ("-1s", WEEK)]
)
def test_lengths_of_time_are_those_of_kubectl(text: str, length: float) -> None:
    assert parse_duration(text) == length


# --- With few rights -------------------------------------------------------------------------------------------------

REAL = pytest.mark.parametrize("plane", [pytest.param("real", marks=pytest.mark.real)], indirect=True)


def may(*verbs: str) -> list[dict[str, Any]]:
    return [{"apiGroups": [names.JOBSET_GROUP], "resources": ["jobsets"], "verbs": [*verbs]}] if verbs else []


@REAL
@pytest.mark.parametrize(
    ("verbs", "lacks"), [((), "get"), (("get",), "list"), (("get", "list"), "watch")], ids=["none", "get", "list"]
)
async def test_the_right_that_is_missing_is_named(
    real_plane: Real, camp: StoredJobSet, run: RunCli, *, tmp_path: Path, verbs: tuple[str, ...], lacks: str
) -> None:
    await camp.jobset()
    config = await kubeconfig_of(real_plane, camp.namespace, may(*verbs), tmp_path)
    ran = await Shell(run, config, camp.namespace)("train", "--timeout", PATIENCE)
    told = f"cannot {lacks} jobsets.jobset.x-k8s.io in namespace {camp.namespace}"
    assert (ran.code, told in ran.err) == (1, True)


@REAL
async def test_without_a_right_to_configmaps_the_condition_tells(
    real_plane: Real, camp: StoredJobSet, run: RunCli, tmp_path: Path
) -> None:
    await camp.jobset()
    config = await kubeconfig_of(real_plane, camp.namespace, may("get", "list", "watch"), tmp_path)
    waiting = asyncio.create_task(Shell(run, config, camp.namespace)("train", "--timeout", PATIENCE))
    await camp.condition(names.REASON_STARTED, f"2/2 pods started (uid {camp.uid}, attempt 0, epoch 0)", "True")
    ran = await waiting
    assert (ran.code, ran.out) == (0, f"{SUBJECT} released: 2/2 pods started\n")
    assert f"cannot get configmaps in namespace {camp.namespace}: what was decided is known from" in ran.err
