"""Each command over LeaderWorkerSets: all groups of one, or one group of it."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import EVENTS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from tests.fakes.cli_runner import CliShell
from tests.fakes.faults import ALWAYS, Match
from tests.fakes.leader_worker_sets import install_lws_crd
from tests.fakes.stored_gang import NO_ROOM, install_jobset_crd
from tests.fakes.stored_leader_worker_set import StoredLeaderWorkerSet
from tests.plane.embedded import Embedded

STARTED = (VerdictKind.RELEASE, names.REASON_STARTED, "all 2 pods started")
pytestmark = pytest.mark.parametrize("plane", ["embedded"], indirect=True)


@pytest.fixture
async def vllm(client: Client, namespace: str) -> StoredLeaderWorkerSet:
    """Of two groups one has started; of the other the worker has no room."""
    await install_jobset_crd(client, namespace)
    await install_lws_crd(client)
    made = StoredLeaderWorkerSet(client, namespace)
    await made.jobset()
    for index in range(2):
        await made.passed(index, "", 0)
    await made.decided(0, *STARTED)
    await made.started(0, "", 1)
    await made.unscheduled(1, "", NO_ROOM, 1)
    return made


async def test_why_of_all_groups_explains_those_that_have_not_started(
    vllm: StoredLeaderWorkerSet, cli: CliShell
) -> None:
    for name in ("lws/vllm", "vllm"):
        out = (await cli("why", name)).out
        assert out.startswith(
            f"LeaderWorkerSet {vllm.namespace}/vllm: Waiting: 3/4 pods started: 1 of 2 groups have st"
        )
        assert f"LeaderWorkerSet {vllm.namespace}/vllm/1: Waiting: 1/2 pods started" in out
        assert "vllm/0:" not in out
    found = json.loads((await cli("why", "lws/vllm", "-o", "json")).out)
    assert [it["name"] for it in found["items"]] == ["vllm", "vllm/1"]
    await vllm.decided(1, *STARTED)
    assert "vllm: Released: all 2 groups have started" in (await cli("why", "lws/vllm")).out
    scale = {"spec": {"replicas": 4}}
    await vllm.client.patch(LEADER_WORKER_SETS, "vllm", vllm.namespace, body=scale, patch=PatchType.MERGE)
    assert (
        "Waiting: 3/8 pods started: 2 of 4 groups have started; without a leader pod: 2, 3"
        in (await cli("why", "lws/vllm")).out
    )


async def test_a_worker_of_an_earlier_leader_does_not_count(vllm: StoredLeaderWorkerSet, cli: CliShell) -> None:
    """After a background deletion the next leader exists before the old workers go."""
    for index in range(2):
        await vllm.started(index, "", 2)
    assert "Due: 2/2 pods started" in (await cli("why", "lws/vllm/2")).out
    nobody = {"metadata": {"ownerReferences": None}}
    await vllm.client.patch(STATEFUL_SETS, "vllm-2", vllm.namespace, body=nobody, patch=PatchType.MERGE)
    vllm.uids["vllm-2"] = "another"
    await vllm.decided(2, *STARTED)
    out = (await cli("why", "lws/vllm/2")).out
    assert "Waiting: 1/2 pods started" in out
    assert "the LeaderWorkerSet vllm has not created it yet" in out
    facts = dict(re.findall(r"(?m)^([A-Z][A-Za-z ]+): +(.*)$", (await cli("describe", "lws/vllm/2")).out))
    assert facts["ConfigMap"].endswith("is of an earlier leader pod")


async def test_describe_shows_the_whole_and_each_group(vllm: StoredLeaderWorkerSet, cli: CliShell) -> None:
    await vllm.event("LeaderWorkerSet", "vllm", "GroupsProgressing", "Replicas are progressing")
    ran = await cli("describe", "lws/vllm")
    assert ran.code == 0
    assert (await cli("get", "gangs", "vllm", "-o", "name")).out == "lws/vllm/0\nlws/vllm/1\n"
    assert re.findall(r"(?m)^Name: +(.*)$", ran.out) == ["vllm", "vllm/0", "vllm/1"]
    assert re.search(r"(?m)^Replicas: +2$", ran.out)
    assert re.search(r"(?m)^vllm-1-1 +waiting +Pending$", ran.out)
    assert "GroupsProgressing: Replicas are progressing" in ran.out


async def test_wait_and_watch_end_when_every_group_below_replicas_has_started(
    vllm: StoredLeaderWorkerSet, cli: CliShell
) -> None:
    wrong = await cli("wait", "lws/vllm", "--for=opened")
    assert (wrong.code, "a LeaderWorkerSet's gate is released or timedout" in wrong.err) == (2, True)
    late = await cli("wait", "lws/vllm", "--timeout=0")
    assert (late.code, "lws/vllm is not released after 0s; `jobset-gate why lws/vllm -n" in late.err) == (3, True)
    assert (await cli("wait", "lws/vllm/0", "--timeout=0")).out == "lws/vllm/0 released: all 2 pods started\n"
    await vllm.decided(1, *STARTED)
    for command in ("wait", "watch"):
        for name in ("lws/vllm", "vllm"):
            ran = await cli(command, name)
            assert (ran.code, ran.out.splitlines()[-1]) == (0, "lws/vllm released: all 2 groups have started"), command


async def test_wait_goes_on_when_a_group_has_timed_out_since_it_is_created_again(
    vllm: StoredLeaderWorkerSet, cli: CliShell
) -> None:
    await vllm.decided(1, VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "1/2 pods started")
    assert (await cli("wait", "lws/vllm", "--for=timedout")).code == 0
    for command in (("wait", "--timeout=1s"), ("watch", "--timeout=1s")):
        assert (await cli(*command, "lws/vllm")).code == 3, command
    one = await cli("wait", "lws/vllm/1")
    assert (one.code, "lws/vllm/1 was not released but timed out: 1/2 pods started" in one.err) == (1, True)

    waiting = asyncio.create_task(cli("wait", "lws/vllm", "--timeout=1m"))
    await vllm.recreated(1)
    await vllm.decided(1, *STARTED)
    ran = await waiting
    assert (ran.code, ran.out) == (0, "lws/vllm released: all 2 groups have started\n")


async def test_timelines_are_of_each_group(vllm: StoredLeaderWorkerSet, cli: CliShell) -> None:
    ran = await cli("timeline", "lws/vllm")
    heads = [line for line in ran.out.splitlines() if line.startswith("LeaderWorkerSet ")]
    assert [head.split()[1] for head in heads] == [f"{vllm.namespace}/vllm/{n}:" for n in range(2)]
    picture = await cli("timeline", "lws/vllm", "-o", "svg")
    assert (picture.code, "a picture is of one" in picture.err) == (1, True)


async def test_sets_and_groups_that_are_not_there_are_named(vllm: StoredLeaderWorkerSet, cli: CliShell) -> None:
    where = f"in namespace {vllm.namespace}"
    for name, why in {
        "lws/moon": f"LeaderWorkerSet moon not found {where}",
        "lws/vllm/7": f"LeaderWorkerSet vllm/7 {where} has no leader pod",
    }.items():
        ran = await cli("why", name)
        assert (ran.code, why in ran.err) == (1, True), ran.err
    for name in ("lws/vllm/x", "lws/vllm/", "job/a/b"):
        assert (await cli("why", name)).code == 2


async def test_a_leader_worker_set_without_config_asks_for_no_gate(
    client: Client, namespace: str, cli: CliShell
) -> None:
    await install_lws_crd(client)
    await StoredLeaderWorkerSet(client, namespace).jobset(gated=False)
    ran = await cli("why", "lws/vllm")
    assert f"LeaderWorkerSet {namespace}/vllm: NotGated: asks for no start barrier" in ran.out
    assert f"kubectl describe leaderworkerset vllm -n {namespace}" in ran.out
    assert "asks for no start barrier: it has no gate" in (await cli("wait", "lws/vllm")).err
    assert (await client.list(EVENTS, namespace))["items"] == []


async def test_release_opens_every_group_that_waits_and_asks_with_their_numbers(
    vllm: StoredLeaderWorkerSet, cli: CliShell
) -> None:
    await vllm.started(0, "", 3)
    asked = await cli("release", "lws/vllm")
    gate = f"the gate of LeaderWorkerSet {vllm.namespace}/vllm, groups 1, 3 would be opened: say --yes"
    assert (asked.code, gate in asked.err) == (2, True)
    tried = await cli("release", "lws/vllm", "--dry-run=server")
    assert tried.out.splitlines() == [f"lws/vllm/{n} released (server dry run)" for n in (1, 3)]
    opened = "gate opened by hand with 1/2 pods started"
    one = await cli("release", "lws/vllm/3", "--yes")
    assert one.out == f"lws/vllm/3 released: {opened}\n"
    ran = await cli("release", "lws/vllm", "--yes")
    assert (ran.code, ran.out) == (0, f"lws/vllm/1 released: {opened}\n")
    made = await vllm.stored_config_map(1)
    leader = vllm.uids["vllm-1"]
    assert made["data"]["verdict"].startswith(f"release {leader} 0 0 Bypassed\n")
    assert made["data"].keys() == {"verdict", "waiting-since"}
    assert names.START_GROUP not in made["metadata"]["labels"]
    assert [(it["kind"], it["uid"]) for it in made["metadata"]["ownerReferences"]] == [("Pod", leader)]
    pods = (await vllm.client.list(PODS, vllm.namespace, label_selector=f"{names.LWS_GROUP_INDEX}=1"))["items"]
    verdicts = [it["metadata"]["annotations"][names.VERDICT].partition("\n")[0] for it in pods]
    assert verdicts == [f"release {it['metadata']['uid']} 0 0 Bypassed" for it in pods]
    events = (await vllm.client.list(EVENTS, vllm.namespace))["items"]
    assert {(it["involvedObject"]["kind"], it["involvedObject"]["uid"]) for it in events} == {
        ("LeaderWorkerSet", vllm.uid)
    }
    assert (await cli("release", "lws/vllm", "--yes")).out == "lws/vllm unchanged: no group of it waits\n"


async def test_bypass_is_of_the_whole(vllm: StoredLeaderWorkerSet, cli: CliShell) -> None:
    for name in ("lws/vllm/1", "pod/vllm-1"):
        ran = await cli("bypass", name, "--yes")
        assert (
            ran.code,
            "groups of a LeaderWorkerSet are bypassed together: `jobset-gate bypass lws/vllm" in ran.err,
        ) == (2, True)
    ran = await cli("bypass", "lws/vllm", "--yes")
    undone = f"kubectl annotate leaderworkerset vllm -n {vllm.namespace} {names.BYPASS}-"
    assert (ran.code, ran.out.startswith("lws/vllm bypassed for good; `")) == (0, True)
    assert undone in ran.out.replace("`", " ")
    made = await vllm.client.get(LEADER_WORKER_SETS, "vllm", vllm.namespace)
    assert made["metadata"]["annotations"][names.BYPASS] == "true"
    assert "is bypassed: it opens as soon as" in (await cli("release", "lws/vllm/1", "--yes")).err


async def test_without_the_rights_to_what_makes_its_pods_a_group_is_known_and_without_pods_nobody_needs_them(
    vllm: StoredLeaderWorkerSet, cli: CliShell, embedded_plane: Embedded
) -> None:
    for kind in (STATEFUL_SETS, LEADER_WORKER_SETS):
        embedded_plane.faults.fail(Match(kind, ("get", "list")), status=403, times=ALWAYS)
    ran = await cli("get", "gangs", "--no-headers")
    rows = [line.split()[2:5] for line in ran.out.splitlines()]
    assert (ran.code, rows) == (0, [["vllm/0", "Released", "2/2"], ["vllm/1", "Waiting", "1/2"]])
    for resource in ("statefulsets.apps", "leaderworkersets.leaderworkerset.x-k8s.io"):
        assert f"cannot list {resource} in namespace {vllm.namespace}" in ran.err
    assert "1 of 2 groups have started" in (await cli("why", "lws/vllm")).out
    assert "cannot list" not in (await cli("get", "gangs", "-n", "default")).err
