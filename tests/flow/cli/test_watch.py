"""`watch`: one gang as it starts, on terminals and pipes, and how it ends (exit codes as `wait` has them)."""

import asyncio
import re
import signal
import time

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.resources import JOBSETS, PODS
from tests.fakes.cli_process import on_terminal, started
from tests.fakes.cli_runner import CliShell
from tests.fakes.faults import Match
from tests.fakes.stored_gang import NO_ROOM, StoredJobSet, store_half, workers
from tests.fakes.stored_pod_groups import StoredPodGroups
from tests.plane.embedded import Embedded
from tests.plane.planes import Plane

SUBJECT = "jobset.jobset.x-k8s.io/train"


def shown(line: str) -> str:
    """Without its date."""
    date, _, rest = line.partition("  ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)
    return rest


async def test_a_pipe_gets_a_line_for_every_change_and_then_the_verdict(stored: StoredJobSet, plane: Plane) -> None:
    await stored.jobset(workers(name="driver", job={"parallelism": 1, "completions": 1}), workers())
    job = await stored.job(replicated="driver")
    async with started(plane.kubeconfig, "watch", "train", "-n", stored.namespace) as process:
        assert shown(await process.line()).startswith("Waiting 0/3 started (driver 0/1, workers 0/2); ")
        await stored.started(0, job, replicated="driver")
        assert shown(await process.line()).startswith("Waiting 1/3 started (driver 1/1, workers 0/2); 2 pods: ")
        other = await stored.job()
        await stored.unscheduled(1, other, NO_ROOM)
        while f"1 pod: Unscheduled: {NO_ROOM}" not in (line := shown(await process.line())):
            assert line.startswith("Waiting 1/3")
        await stored.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        rest = (await process.rest()).splitlines()
        assert await process.ended() == 0
    assert shown(rest[-2]).startswith("Released ")
    assert rest[-1] == f"{SUBJECT} released: opened by hand"
    assert "Traceback" not in process.err


async def test_a_watch_that_is_cut_goes_on_and_says_so(alone: StoredPodGroups, embedded_plane: Embedded) -> None:
    plane, stored = embedded_plane, StoredJobSet(alone.client, "team")
    await stored.jobset()
    async with started(plane.kubeconfig, "watch", "train", "-n", stored.namespace) as process:
        assert shown(await process.line()).startswith("Waiting 0/2 started")
        plane.faults.fail(Match(verbs=("list", "watch")), times=6, status=503)
        assert plane.faults.close_watches() == 4
        await stored.config_map(VerdictKind.RELEASE, names.REASON_BYPASSED, "opened by hand")
        assert (await process.rest()).splitlines()[-1] == f"{SUBJECT} released: opened by hand"
        assert await process.ended() == 0
    assert "warning: the API server does not answer; trying again: 503" in process.err


async def test_what_goes_or_never_had_a_gate_is_not_watched_for_ever(stored: StoredJobSet, cli: CliShell) -> None:
    await store_half(stored)
    late = await cli("watch", "train", "--timeout=0")
    assert (late.code, f"{SUBJECT} is not released after 0s; `jobset-gate why {SUBJECT} -n" in late.err) == (3, True)
    watching = asyncio.create_task(cli("watch", "train"))
    await asyncio.sleep(0)
    await stored.client.delete(JOBSETS, "train", stored.namespace)
    ran = await watching
    assert (ran.code, "error: " in ran.err) == (1, True)
    await stored.jobset(config=False, gated=False)
    ran = await cli("watch", "jobset/train")
    assert (ran.code, "asks for no start barrier" in ran.err) == (1, True)


async def test_a_group_is_watched_until_its_minimum_is_bound(groups: StoredPodGroups, plane: Plane) -> None:
    await groups.group("ring", 3)
    await groups.held("ring", "a")
    async with started(plane.kubeconfig, "watch", "podgroup/ring", "-n", groups.namespace) as process:
        assert shown(await process.line()).startswith("Gathering 0/3 bound; ")
        await groups.held("ring", "b", "c")
        while not (line := shown(await process.line())).startswith("WaitingForCapacity 0/3 bound; 3 pods: Held"):
            assert line.startswith("Gathering 0/3 bound; ")
        await groups.decide("ring", 3, satisfied=time.time())
        rest = (await process.rest()).splitlines()
        assert await process.ended() == 0
    assert rest[-1].startswith("podgroup/ring satisfied: ")


SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


async def test_a_terminal_gets_bars_that_move_and_is_left_as_it_was(stored: StoredJobSet, plane: Plane) -> None:
    job = await store_half(stored)
    async with on_terminal(plane.kubeconfig, "watch", "train", "-n", stored.namespace) as terminal:
        seen = await terminal.until("1/2", "Unscheduled", NO_ROOM)
        assert f"JobSet {stored.namespace}/train: Waiting, " in seen
        assert "left of 5m" in seen
        assert "━" in seen
        await stored.client.delete(PODS, "train-workers-0-1", stored.namespace)
        await stored.started(1, job)
        await terminal.until("2/2")
        assert await terminal.ended(signal.SIGINT) == 130
    assert "\x1b[33m" in terminal.drawn  # yellow
    assert terminal.drawn.rindex(SHOW_CURSOR) > terminal.drawn.rindex(HIDE_CURSOR)
    assert "Traceback" not in terminal.drawn
