"""`watch`: one gang as it starts, on terminals and pipes, and how it ends (exit codes as `wait` has them)."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.fake.faults import Match
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.podgroups.record import AdmissionState
from tests.fakes import jobsets
from tests.fakes.cli_process import started
from tests.fakes.cli_terminal import on_terminal, plain
from tests.fakes.stored_gang import StoredJobSet, install_jobset_crd, workers
from tests.fakes.stored_pod_groups import StoredPodGroups, kubeconfig_of
from tests.plane.planes import Plane, Real
from tests.unit.cli.conftest import CliResult, RunCli

if TYPE_CHECKING:
    from tests.plane.embedded import Embedded

NO_ROOM = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
SUBJECT = "jobset.jobset.x-k8s.io/train"
embedded = pytest.mark.parametrize("plane", ["embedded"], indirect=True)
real = pytest.mark.parametrize("plane", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
PATIENCE = "90s"


class Shell:
    """`watch` while the test's loop goes on."""

    def __init__(self, run: RunCli, kubeconfig: Path, namespace: str) -> None:
        self._run, self._more = run, ("-n", namespace, "--kubeconfig", str(kubeconfig))

    async def __call__(self, *arguments: str) -> CliResult:
        return await asyncio.to_thread(self._run, "watch", *arguments, *self._more)


@pytest.fixture
async def camp(plane: Plane, namespace: str) -> AsyncIterator[StoredJobSet]:
    async with plane.client() as client:
        yield await install_jobset_crd(client, namespace)


@pytest.fixture
def watch(run: RunCli, plane: Plane, namespace: str) -> Shell:
    return Shell(run, plane.kubeconfig, namespace)


async def half(camp: StoredJobSet) -> str:
    """One of two has started, for the other there is no room."""
    await camp.jobset()
    job = await camp.job()
    await camp.started(0, job)
    await camp.unscheduled(1, job, NO_ROOM)
    await camp.config_map(since=time.time() - 100)
    return job


def told(line: str) -> str:
    """Without its date."""
    date, _, rest = line.partition("  ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)
    return rest


# --- Lines -----------------------------------------------------------------------------------------------------------


async def test_a_pipe_gets_a_line_for_every_change_and_then_the_verdict(camp: StoredJobSet, plane: Plane) -> None:
    await camp.jobset(workers(name="driver", job={"parallelism": 1, "completions": 1}), workers())
    job = await camp.job(replicated="driver")
    async with started(plane.kubeconfig, "watch", "train", "-n", camp.namespace) as process:
        assert told(await process.line()).startswith("Waiting 0/3 started (driver 0/1, workers 0/2); ")
        await camp.started(0, job, replicated="driver")
        assert told(await process.line()).startswith("Waiting 1/3 started (driver 1/1, workers 0/2); 2 pods: ")
        other = await camp.job()
        await camp.unscheduled(1, other, NO_ROOM)
        while f"1 pod: Unscheduled: {NO_ROOM}" not in (line := told(await process.line())):
            assert line.startswith("Waiting 1/3")
        await camp.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        rest = (await process.rest()).splitlines()
        assert await process.ended() == 0
    assert told(rest[-2]).startswith("Released ")
    assert rest[-1] == f"{SUBJECT} released: opened by hand"
    assert "Traceback" not in process.err


@embedded
async def test_a_watch_that_is_cut_goes_on_and_says_so(camp: StoredJobSet, plane: Embedded) -> None:
    await camp.jobset()
    async with started(plane.kubeconfig, "watch", "train", "-n", camp.namespace) as process:
        assert told(await process.line()).startswith("Waiting 0/2 started")
        plane.server.faults.fail(Match(verbs=("list", "watch")), times=6, status=503)
        assert plane.server.faults.close_watches() == 4
        await camp.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        assert (await process.rest()).splitlines()[-1] == f"{SUBJECT} released: opened by hand"
        assert await process.ended() == 0
    assert "warning: the API server does not answer, and is asked again: 503" in process.err


@embedded
async def test_the_exit_code_is_the_verdict(camp: StoredJobSet, watch: Shell) -> None:
    await camp.jobset()
    await camp.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "so be it")
    ran = await watch("train")
    assert (ran.code, ran.out.splitlines()[-1], "error" in ran.err) == (0, f"{SUBJECT} released: so be it", False)
    await camp.client.delete(CONFIGMAPS, names.config_map_name("train"), camp.namespace)
    await camp.config_map(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "too late")
    ran = await watch("train")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, f"error: {SUBJECT} timed out: too late")


@embedded
async def test_the_end_of_the_time_is_3_and_says_what_to_run(camp: StoredJobSet, watch: Shell) -> None:
    await half(camp)
    ran = await watch("train", "--timeout=1s")
    assert ran.code == 3
    why = rf"`jobset-gate why {re.escape(SUBJECT)} -n {camp.namespace} --kubeconfig \S+` says what it waits for"
    assert re.search(rf"error: {re.escape(SUBJECT)} is not released after 1s; {why}", ran.err)
    assert told(ran.out.splitlines()[0]) == f"Waiting 1/2 started; 1 pod: Unscheduled: {NO_ROOM}"


@embedded
async def test_what_goes_or_never_had_a_gate_is_not_watched_for_ever(camp: StoredJobSet, watch: Shell) -> None:
    await half(camp)
    watching = asyncio.create_task(watch("train"))
    await asyncio.sleep(0)
    await camp.client.delete(JOBSETS, "train", camp.namespace)
    ran = await watching
    assert (ran.code, "error: " in ran.err) == (1, True)
    ran = await watch("train")
    missing = f"error: JobSet train not found in namespace {camp.namespace}, and pod group train not found"
    assert (ran.code, ran.out, missing in ran.err) == (1, "", True)
    bare = jobsets.defaulted(jobsets.jobset(name="bare", config=False))
    bare["metadata"]["namespace"] = camp.namespace
    await camp.client.create(JOBSETS, bare, camp.namespace)
    ran = await watch("jobset/bare")
    assert (ran.code, "asks for no start barrier" in ran.err) == (1, True)


# --- Groups ----------------------------------------------------------------------------------------------------------


async def test_a_group_is_watched_until_its_minimum_is_bound(town: StoredPodGroups, plane: Plane) -> None:
    await town.group("ring", 3)
    await town.held("ring", "a")
    async with started(plane.kubeconfig, "watch", "podgroup/ring", "-n", town.namespace) as process:
        assert told(await process.line()).startswith("Gathering 0/3 bound; ")
        await town.held("ring", "b", "c")
        while not (line := told(await process.line())).startswith("WaitingForCapacity 0/3 bound; 3 pods: Held"):
            assert line.startswith("Gathering 0/3 bound; ")
        await town.decide("ring", 3, satisfied=time.time())
        rest = (await process.rest()).splitlines()
        assert await process.ended() == 0
    assert rest[-1].startswith("podgroup/ring satisfied: ")


@embedded
async def test_a_group_that_is_not_opened_again_and_one_that_is_not_there(town: StoredPodGroups, watch: Shell) -> None:
    decided = town.decided(
        "ring", stage=AdmissionState.CLOSED, retry=False, rolled_back=1, why="1 of 2 pods were bound"
    )
    await town.group("ring", 2, decided=decided)
    ran = await watch("gang/ring")
    assert (ran.code, "error: podgroup/ring timed out: " in ran.err) == (1, True)
    ran = await watch("podgroup/moon")
    assert (ran.code, f"error: pod group moon not found in namespace {town.namespace}" in ran.err) == (1, True)


@embedded
async def test_a_pod_stands_for_its_gang(camp: StoredJobSet, town: StoredPodGroups, watch: Shell) -> None:
    await half(camp)
    ran = await watch("pod/train-workers-0-1", "--timeout=1s")
    assert (ran.code, told(ran.out.splitlines()[0])[:19]) == (3, "Waiting 1/2 started")
    await town.group("ring", 2)
    await town.held("ring", "a")
    ran = await watch("pod/a", "--timeout=1s")
    assert (ran.code, told(ran.out.splitlines()[0])[:19]) == (3, "Gathering 0/2 bound")


# --- Terminals -------------------------------------------------------------------------------------------------------

SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


@embedded
async def test_a_terminal_gets_bars_that_move_and_is_left_as_it_was(camp: StoredJobSet, plane: Plane) -> None:
    job = await half(camp)
    async with on_terminal(plane.kubeconfig, "watch", "train", "-n", camp.namespace) as terminal:
        seen = await terminal.until("1/2", "Unscheduled", NO_ROOM)
        assert f"JobSet {camp.namespace}/train: Waiting, " in seen
        assert "left of 5m" in seen
        assert "━" in seen
        await camp.client.delete(PODS, "train-workers-0-1", camp.namespace)
        await camp.started(1, job)
        await terminal.until("2/2")
        assert await terminal.ended(signal.SIGINT) == 130
    assert "\x1b[33m" in terminal.drawn  # yellow
    assert terminal.drawn.rindex(SHOW_CURSOR) > terminal.drawn.rindex(HIDE_CURSOR)
    assert "Traceback" not in terminal.drawn


@embedded
async def test_a_narrow_terminal_without_colour_and_a_termination(camp: StoredJobSet, plane: Plane) -> None:
    await half(camp)
    more = {"NO_COLOR": "1"}
    words = ("watch", "train", "-n", camp.namespace)
    async with on_terminal(plane.kubeconfig, *words, size=(12, 34), environment=more) as terminal:
        await terminal.until("1/2 started", "Unscheduled")
        assert await terminal.ended(signal.SIGTERM) == 143
    assert set(re.findall(r"\x1b\[([0-9;]*)m", terminal.drawn)) <= {"0", "1"}  # bold is no colour
    lines = [line for part in plain(terminal.drawn).split("\r\n") for line in part.split("\r")]
    assert max(map(len, lines)) <= 34
    assert terminal.drawn.rindex(SHOW_CURSOR) > terminal.drawn.rindex(HIDE_CURSOR)


# --- With few rights -------------------------------------------------------------------------------------------------


@real
async def test_what_may_not_be_watched_is_named(
    real_plane: Real, camp: StoredJobSet, run: RunCli, tmp_path: Path
) -> None:
    await half(camp)
    rules = [{"apiGroups": [names.JOBSET_GROUP], "resources": ["jobsets"], "verbs": ["get", "list", "watch"]}]
    config = await kubeconfig_of(real_plane, camp.namespace, rules, tmp_path)
    ran = await Shell(run, config, camp.namespace)("train", "--timeout=20s")
    assert (ran.code, told(ran.out.splitlines()[0])[:19]) == (3, "Waiting ?/2 started")
    assert f"cannot list pods in namespace {camp.namespace}" in ran.err
