"""`get jobsets` and `get gangs`: what waits for what in a cluster, as a table and for programs."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.podgroups.model import Format
from tests.fakes.cli_process import started
from tests.fakes.stored_gang import StoredJobSet, install_jobset_crd
from tests.fakes.stored_pod_groups import StoredPodGroups, kubeconfig_of, lease
from tests.plane.planes import Plane, Real
from tests.unit.cli.conftest import CliResult, RunCli

NOBODY = "warning: no controller runs: there is no Lease jobset-gate-controller"
embedded = pytest.mark.parametrize("plane", ["embedded"], indirect=True)
NO_ROOM = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."


class Shell:
    """`get` while the test's loop goes on."""

    def __init__(self, run: RunCli, kubeconfig: Path) -> None:
        self._run, self.kubeconfig = run, kubeconfig

    async def __call__(self, *arguments: str) -> CliResult:
        return await asyncio.to_thread(self._run, "get", *arguments, "--kubeconfig", str(self.kubeconfig))


@pytest.fixture
async def camp(plane: Plane, namespace: str) -> AsyncIterator[StoredJobSet]:
    async with plane.client() as client:
        yield await install_jobset_crd(client, namespace)


@pytest.fixture
def get(run: RunCli, plane: Plane) -> Shell:
    return Shell(run, plane.kubeconfig)


def cells(text: str) -> list[list[str]]:
    """Columns stand at least three blanks apart; without what time does to them."""
    return [re.split(r" {3,}", re.sub(r"[0-9]+s\b", "N", line)) for line in text.splitlines()]


async def half(camp: StoredJobSet) -> None:
    """One of two has started, for the other there is no room."""
    await camp.jobset()
    job = await camp.job()
    await camp.started(0, job)
    await camp.unscheduled(1, job, NO_ROOM)
    await camp.config_map(since=time.time())


async def test_a_gang_that_waits_says_how_many_how_long_and_for_what(camp: StoredJobSet, get: Shell) -> None:
    await half(camp)
    ran = await get("jobsets", "-n", camp.namespace)
    head, row = cells(ran.out)
    assert ran.code == 0
    assert head == ["NAME", "STATE", "STARTED", "LEFT", "MISSING", "AGE"]
    assert row == ["train", "Waiting", "1/2", "4mN", "1 Unscheduled", "N"]

    (bare,) = cells((await get("jobsets", "-n", camp.namespace, "--no-headers")).out)
    assert bare == row
    _, wide = cells((await get("jobsets", "-n", camp.namespace, "-o", "wide")).out)
    assert wide == [*row, "5m", NO_ROOM]
    everywhere = cells((await get("jobsets", "-A")).out)
    assert everywhere[0] == ["NAMESPACE", *head]
    assert [camp.namespace, *row] in everywhere


async def test_a_gang_that_is_decided_has_no_time_left(camp: StoredJobSet, get: Shell) -> None:
    await camp.jobset()
    await camp.config_map(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "timed out after 300s: 1/2 pods started")
    ran = await get("jobsets", "-n", camp.namespace, "-o", "wide", "--no-headers")
    (row,) = cells(ran.out)
    assert row[:4] == ["train", "TimedOut", "1/2", "-"]  # as many as when it was decided
    assert row[-1].startswith("timed out after")


async def test_gangs_are_jobsets_and_groups_in_one_table(camp: StoredJobSet, town: StoredPodGroups, get: Shell) -> None:
    await half(camp)
    await town.group("ring", 3, Format.KEP_24)
    await town.held("ring", "b-0", way=Format.KEP_24)
    ran = await get("gangs", "-n", camp.namespace)
    head, jobset, group = cells(ran.out)
    assert (ran.code, head[:4]) == (0, ["KIND", "NAME", "STATE", "STARTED"])
    assert jobset[:4] == ["JobSet", "train", "Waiting", "1/2"]
    assert group[:4] == ["PodGroup", "ring", "Gathering", "0/3"]
    named = await get("gangs", "-n", camp.namespace, "-o", "name")
    assert named.out == "jobset.jobset.x-k8s.io/train\ngroup/ring\n"
    one = await get("gangs", "ring", "-n", camp.namespace, "--no-headers")
    assert cells(one.out) == [group]


async def test_programs_get_json_or_yaml(camp: StoredJobSet, get: Shell) -> None:
    await half(camp)
    listed = json.loads((await get("jobsets", "-n", camp.namespace, "-o", "json")).out)
    (one,) = listed["items"]
    assert (listed["kind"], one["name"], one["state"], one["started"], one["expected"]) == (
        "GangList",
        "train",
        "Waiting",
        1,
        2,
    )
    assert [(it["reason"], it["message"]) for it in one["missing"]] == [("Unscheduled", NO_ROOM)]
    in_yaml = yaml.safe_load((await get("jobsets", "-n", camp.namespace, "-o", "yaml")).out)
    assert (in_yaml["kind"], [it["name"] for it in in_yaml["items"]]) == ("GangList", ["train"])


async def test_what_is_not_there_is_said(camp: StoredJobSet, get: Shell) -> None:
    ran = await get("jobsets", "-n", camp.namespace)
    assert (ran.code, ran.out) == (0, "")
    assert f"No JobSets with a gate found in namespace {camp.namespace}." in ran.err
    ran = await get("gangs", "moon", "-n", camp.namespace, "--no-headers")
    assert (ran.code, ran.out) == (1, "")
    assert f"error: gang moon not found in namespace {camp.namespace}" in ran.err


async def test_it_says_when_no_controller_runs(camp: StoredJobSet, get: Shell, plane: Plane) -> None:
    await camp.jobset()
    assert NOBODY in (await get("jobsets", "-n", camp.namespace)).err
    if plane.name == "embedded":  # a Lease is everybody's
        await lease(camp.client, camp.namespace)
        assert (await get("jobsets", "-n", camp.namespace)).err == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("jobsets", "train", "-A"), "names are those of one namespace"),
        (("groups", "ring", "-A"), "names are those of one namespace"),
        (("jobsets", "-o", "csv"), "--output"),
    ],
)
def test_wrong_usage(run: RunCli, arguments: tuple[str, ...], told: str) -> None:
    ran = run("get", *arguments)
    assert (ran.code, told in ran.err) == (2, True)


# --- Watched ---------------------------------------------------------------------------------------------------------


async def test_a_watch_prints_what_changes_until_it_is_interrupted(camp: StoredJobSet, plane: Plane) -> None:
    await camp.jobset()
    job = await camp.job()
    await camp.started(0, job)
    async with started(plane.kubeconfig, "get", "jobsets", "-w", "-n", camp.namespace) as watch:
        assert cells(await watch.line())[0][:3] == ["NAME", "STATE", "STARTED"]
        assert cells(await watch.line())[0][:3] == ["train", "Waiting", "1/2"]
        await camp.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        assert cells(await watch.line())[0][:3] == ["train", "Released", "1/2"]
        await camp.client.delete(JOBSETS, "train", camp.namespace)
        while (told := cells(await watch.line())[0])[1] != "Deleted":
            assert told[1] in ("Deleting", "Released")
        assert told[:3] == ["train", "Deleted", "1/2"]
        assert await watch.interrupted() == 130
    assert "Traceback" not in watch.err


@embedded
async def test_jobsets_and_groups_are_watched_together(camp: StoredJobSet, town: StoredPodGroups, plane: Plane) -> None:
    await camp.jobset()
    await town.group("ring", 2)
    async with started(plane.kubeconfig, "get", "gangs", "-w", "-n", camp.namespace, "--no-headers") as watch:
        assert cells(await watch.line())[0][:4] == ["JobSet", "train", "Waiting", "0/2"]
        assert cells(await watch.line())[0][:4] == ["PodGroup", "ring", "Gathering", "0/2"]
        await town.held("ring", "a", "b")
        while (told := cells(await watch.line())[0])[2] != "WaitingForCapacity":
            assert told[:3] == ["PodGroup", "ring", "Gathering"]
        await camp.config_map(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "late")
        assert cells(await watch.line())[0][:3] == ["JobSet", "train", "TimedOut"]


@embedded
async def test_a_watch_of_what_is_not_there_ends(camp: StoredJobSet, get: Shell) -> None:
    ran = await get("jobsets", "moon", "-w", "-n", camp.namespace)
    assert (ran.code, f"error: JobSet with a gate moon not found in namespace {camp.namespace}" in ran.err) == (1, True)


@embedded
async def test_a_reader_that_leaves_ends_a_watch_without_a_word(camp: StoredJobSet, plane: Plane) -> None:
    await camp.jobset()
    async with started(plane.kubeconfig, "get", "jobsets", "-w", "-n", camp.namespace) as watch:
        await watch.line()
        await watch.line()
        watch.leave()
        await camp.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        assert await watch.ended() == 1
    assert "Error" not in watch.err


# --- With few rights -------------------------------------------------------------------------------------------------

REAL = pytest.mark.parametrize("plane", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
JOBSETS_ONLY: list[dict[str, Any]] = [
    {"apiGroups": [names.JOBSET_GROUP], "resources": ["jobsets"], "verbs": ["list", "watch"]}
]


@REAL
async def test_what_may_not_be_read_is_named_and_the_rest_is_shown(
    real_plane: Real, camp: StoredJobSet, run: RunCli, tmp_path: Path
) -> None:
    await half(camp)
    config = await kubeconfig_of(real_plane, camp.namespace, JOBSETS_ONLY, tmp_path)
    ran = await Shell(run, config)("jobsets", "--no-headers")
    assert (ran.code, cells(ran.out)[0][:3]) == (0, ["train", "Waiting", "?/2"])
    for kind in ("pods", "jobs.batch", "configmaps"):
        assert f"warning: cannot list {kind} in namespace {camp.namespace}: " in ran.err
    async with started(config, "get", "jobsets", "-w", "--no-headers") as watch:
        assert cells(await watch.line())[0][:3] == ["train", "Waiting", "?/2"]

    config = await kubeconfig_of(real_plane, camp.namespace, [], tmp_path)
    for more in ((), ("-w",)):
        ran = await Shell(run, config)("jobsets", *more)
        told = f"error: cannot list jobsets.jobset.x-k8s.io in namespace {camp.namespace}"
        assert (ran.code, ran.out, told in ran.err) == (1, "", True)
