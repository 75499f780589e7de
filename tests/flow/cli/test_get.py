"""`get jobsets` and `get gangs`: what waits for what in a cluster, as a table and for programs."""

import re

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import JOBSETS
from tests.fakes.cli_process import started
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import NO_ROOM, StoredJobSet, store_half
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.plane.planes import Plane


def cells(text: str) -> list[list[str]]:
    """Columns stand at least three blanks apart; without what time does to them."""
    return [re.split(r" {3,}", re.sub(r"[0-9]+s\b", "N", line)) for line in text.splitlines()]


async def test_a_gang_that_waits_says_how_many_how_long_and_for_what(stored: StoredJobSet, cli: CliShell) -> None:
    await store_half(stored)
    ran = await cli("get", "jobsets")
    head, row = cells(ran.out)
    assert ran.code == 0
    assert head == ["NAME", "STATE", "STARTED", "LEFT", "MISSING", "AGE"]
    assert row == ["train", "Waiting", "1/2", "4mN", "1 Unscheduled", "N"]

    (bare,) = cells((await cli("get", "jobsets", "--no-headers")).out)
    assert bare == row
    _, wide = cells((await cli("get", "jobsets", "-o", "wide")).out)
    assert wide == [*row, "5m", NO_ROOM]
    everywhere = cells((await cli("get", "jobsets", "-A")).out)
    assert everywhere[0] == ["NAMESPACE", *head]
    assert [stored.namespace, *row] in everywhere


async def test_what_is_not_there_is_reported(stored: StoredJobSet, cli: CliShell) -> None:
    ran = await cli("get", "jobsets")
    assert (ran.code, ran.out) == (0, "")
    assert f"No JobSets with a gate found in namespace {stored.namespace}." in ran.err
    for how in ("--no-headers", "--watch"):
        ran = await cli("get", "gangs", "moon", how)
        assert (ran.code, ran.out) == (1, "")
        assert f"error: gang moon not found in namespace {stored.namespace}" in ran.err


async def test_a_watch_prints_what_changes_of_jobsets_and_groups_until_it_is_interrupted(
    stored: StoredJobSet, groups: StoredPodGroups, plane: Plane
) -> None:
    await stored.jobset()
    job = await stored.job()
    await stored.started(0, job)
    await groups.group("ring", 2)
    async with started(plane.kubeconfig, "get", "gangs", "-w", "-n", stored.namespace) as watch:
        assert cells(await watch.line())[0][2:5] == ["NAME", "STATE", "STARTED"]
        assert cells(await watch.line())[0][:5] == ["JobSet", "jobset", "train", "Waiting", "1/2"]
        assert cells(await watch.line())[0][:5] == ["PodGroup", "-", "ring", "Gathering", "0/2"]
        await groups.held("ring", "a", "b")
        while (shown := cells(await watch.line())[0])[3] != "WaitingForCapacity":
            assert shown[:4] == ["PodGroup", "-", "ring", "Gathering"]
        await stored.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        assert cells(await watch.line())[0][:5] == ["JobSet", "jobset", "train", "Released", "1/2"]
        await stored.client.delete(JOBSETS, "train", stored.namespace)
        while (shown := cells(await watch.line())[0])[3] != "Deleted":
            assert shown[3] in ("Deleting", "Released")
        assert shown[:5] == ["JobSet", "jobset", "train", "Deleted", "1/2"]
        assert await watch.interrupted() == 130
    assert "Traceback" not in watch.err


async def test_a_reader_that_leaves_ends_a_watch_without_a_word(stored: StoredJobSet, plane: Plane) -> None:
    await stored.jobset()
    async with started(plane.kubeconfig, "get", "jobsets", "-w", "-n", stored.namespace) as watch:
        await watch.line()
        await watch.line()
        watch.leave()
        await stored.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        assert await watch.ended() == 1
    assert "Error" not in watch.err
