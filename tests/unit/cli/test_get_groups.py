"""`get groups`: every way in one table, read from the cluster itself, by anybody and without a controller (G5)."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
import yaml

from jobset_gate import names
from jobset_gate.cli.fetch import pod_groups
from jobset_gate.cli.printers.pod_group_table import age
from jobset_gate.cli.watch.pod_group_source import PodGroupWatch
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import JOBS, POD_GROUPS, Resource
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.runtime.decoder import WatchProblemKind as Problems
from jobset_gate.settings import Groups
from tests.fakes.cli_process import started
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.objects import pod_group
from tests.fakes.stored_pod_groups import StoredPodGroups, install_pod_group_crds, kubeconfig_of, lease
from tests.plane.planes import Plane, Real
from tests.unit.cli.conftest import CliResult, RunCli

if TYPE_CHECKING:
    from tests.plane.embedded import Embedded

TABLE = """\
NAME      WAY                       BOUND/MINIMUM   PHASE     REASON               AGE
a-room    scheduler-plugins         0/2             Pending   WaitingForCapacity   AGE
b-small   kep-24                    0/3             Pending   Gathering            AGE
c-lost    scheduler-plugins         0/?             Pending   PodGroupMissing      AGE
d-torn    koordinator-annotations   0/?             Pending   InvalidGroup         AGE
e-fine    alibaba                   2/2             Running   Running              AGE
f-back    koordinator-podgroup      1/2             Unknown   RollbackBlocked      AGE
g-none    scheduler-plugins         0/4             Pending   Gathering            AGE
"""
MESSAGES = [
    "needs 2 cpu, 0 free",
    "1/3 pods exist",
    "1 pods name PodGroup NAMESPACE/c-lost, which does not exist",
    "members contradict each other: 2 by d-0; 3 by d-1",
    "2 of 2 pods run",
    "nobody would make them again, so they are left to you to delete: f-0",
    "0/4 pods exist",
]


class Shell:
    """Command lines while the test's loop goes on."""

    def __init__(self, run: RunCli, kubeconfig: Path) -> None:
        self._run, self.kubeconfig = run, kubeconfig

    async def __call__(self, *arguments: str) -> CliResult:
        return await asyncio.to_thread(self._run, "get", "groups", *arguments, "--kubeconfig", str(self.kubeconfig))


@pytest.fixture
def get(run: RunCli, plane: Plane) -> Shell:
    return Shell(run, plane.kubeconfig)


def ageless(text: str) -> str:
    """Without what time does to it."""
    return re.sub(r"[0-9]+s$", "AGE", text, flags=re.MULTILINE)


async def test_all_ways_and_states_are_in_one_table(town: StoredPodGroups, get: Shell) -> None:
    await town.fill()
    ran = await get("-n", town.namespace)
    assert (ran.code, ageless(ran.out)) == (0, TABLE)

    bare = await get("-n", town.namespace, "--no-headers")
    assert [it.split() for it in ageless(bare.out).splitlines()] == [it.split() for it in TABLE.splitlines()[1:]]

    wide = await get("-n", town.namespace, "-o", "wide")
    lines = wide.out.splitlines()
    assert lines[0].split()[-3:] == ["MEMBERS", "RUNNING", "MESSAGE"]
    for line, message in zip(lines[1:], MESSAGES, strict=True):
        assert message.replace("NAMESPACE", town.namespace) in line

    everywhere = await get("-A")
    assert everywhere.out.splitlines()[0].split()[0] == "NAMESPACE"
    ours = [it for it in everywhere.out.splitlines() if it.split()[0] == town.namespace]
    assert [it.split()[1] for it in ours] == [it.split()[0] for it in TABLE.splitlines()[1:]]


async def test_programs_get_json_yaml_or_names(town: StoredPodGroups, get: Shell) -> None:
    await town.fill()
    listed = json.loads((await get("-n", town.namespace, "-o", "json")).out)
    assert yaml.safe_load((await get("-n", town.namespace, "-o", "yaml")).out) == listed
    by_name = {it["name"]: it for it in listed["items"]}
    fine = by_name["e-fine"]
    assert (fine["phase"], fine["bound"], fine["minimum"], fine["generation"]) == ("Running", 2, 2, 1)
    assert (fine["ways"], fine["design"], fine["podGroup"]) == (["alibaba"], "alibaba", None)
    assert by_name["a-room"]["podGroup"] == "scheduling.x-k8s.io/a-room"
    assert by_name["a-room"]["message"].startswith("needs 2 cpu, 0 free")
    bare = await get("-n", town.namespace, "-o", "name")
    assert bare.out.split() == [f"group/{it}" for it in by_name]


async def test_single_groups_are_asked_for_by_name(town: StoredPodGroups, get: Shell) -> None:
    await town.group("ring", 2)
    await town.group("star", 2)
    ran = await get("ring", "-n", town.namespace)
    assert [it.split()[0] for it in ran.out.splitlines()] == ["NAME", "ring"]
    ran = await get("ring", "moon", "-n", town.namespace)
    assert (ran.code, "group moon not found in namespace" in ran.err) == (1, True)


async def test_a_watch_tells_of_every_change_and_of_what_goes(town: StoredPodGroups, plane: Plane) -> None:
    await town.group("ring", 2)
    async with started(plane.kubeconfig, "get", "groups", "-w", "-n", town.namespace) as watch:
        assert (await watch.line()).split() == TABLE.splitlines()[0].split()
        assert (await watch.line()).split()[:5] == ["ring", "scheduler-plugins", "0/2", "Pending", "Gathering"]
        await town.held("ring", "a", "b")
        while (await watch.line()).split()[4] != "WaitingForCapacity":
            pass  # with one of its two pods it has changed, too
        await town.decide("ring", 2)
        assert (await watch.line()).split()[4] == "Placing"
        await town.client.delete(POD_GROUPS[names.PLUGINS_GROUP], "ring", town.namespace)
        while (told := (await watch.line()).split())[4] == "Placing":
            pass
        assert told[4] == "PodGroupMissing"  # its pods are there still
        assert await watch.interrupted() == 130


async def test_a_namespace_without_groups(town: StoredPodGroups, get: Shell) -> None:
    ran = await get("-n", town.namespace)
    assert (ran.code, ran.out) == (0, "")
    assert f"No groups found in namespace {town.namespace}." in ran.err


async def test_ways_whose_kind_is_not_installed_are_no_trouble(embedded_plane: Embedded, run: RunCli) -> None:
    await embedded_plane.make_namespace("team")
    async with embedded_plane.client() as client:
        await StoredPodGroups(client, "team").held("star", "a", way=Format.ALIBABA, minimum=2)
    ran = await Shell(run, embedded_plane.kubeconfig)("-n", "team")
    assert (ran.code, len(ran.out.splitlines())) == (0, 2)
    assert ran.err.splitlines() == [
        "warning: no controller runs: there is no Lease jobset-gate-controller; nobody opens groups"
    ]


async def test_groups_that_can_never_gather_say_so_without_a_controller(town: StoredPodGroups, get: Shell) -> None:
    made = manifests.job("work", "ring", 4, parallelism=2, suspend=True)
    job = await town.client.create(JOBS, made, town.namespace)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": job["metadata"]["uid"], "controller": True}
    await town.group("ring", 4)
    await town.held("ring", "a", owner=owner)
    wide = await get("-n", town.namespace, "-o", "wide", "--no-headers")
    assert wide.out.split()[4] == names.REASON_CANNOT_GATHER
    assert "needs 4 pods at once, 2 can be there: Job work makes 2" in wide.out


# --- Whether anybody looks after them --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holder", "ago", "told"),
    [
        ("one", 0.0, ""),
        ("one", 100.0, r"warning: no controller runs: one holds the Lease sys/.*, which ran out 8[0-9]s ago"),
        ("", 0.0, "warning: no controller runs: nobody holds the Lease sys/jobset-gate-controller"),
    ],
)
async def test_it_says_when_no_controller_runs(
    embedded_plane: Embedded, run: RunCli, holder: str, ago: float, told: str
) -> None:
    for name in ("sys", "team"):
        await embedded_plane.make_namespace(name)
    async with embedded_plane.client() as client:
        await lease(client, "sys", holder, ago)
        await install_pod_group_crds(client)
        await StoredPodGroups(client, "team").group("ring", 2)
    ran = await Shell(run, embedded_plane.kubeconfig)("-n", "team")
    assert (ran.code, "ring" in ran.out) == (0, True)
    assert re.match(told, ran.err) if told else ran.err == ""


# --- With few rights -------------------------------------------------------------------------------------------------


READ = [
    {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["list"]},
    {"apiGroups": ["*"], "resources": ["podgroups"], "verbs": ["list"]},
]


@pytest.mark.parametrize("plane", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_who_may_see_his_namespace_only_sees_its_groups_and_hears_what_is_missing(
    real_plane: Real, town: StoredPodGroups, run: RunCli, tmp_path: Path
) -> None:
    await town.fill()
    await town.status("z-told", 1, "BehindOther", "behind team/x, which has waited too long to be passed")
    ran = await Shell(run, await kubeconfig_of(real_plane, town.namespace, READ, tmp_path))()
    facts = {line.split()[0]: line.split()[4] for line in ran.out.splitlines()[1:]}
    assert (ran.code, facts["a-room"], facts["b-small"]) == (0, "Gathered", "Gathering")
    assert facts["z-told"] == "BehindOther"  # the controller knows, and has written it
    assert "no right to list nodes (they belong to no namespace): whether a group has room" in ran.err
    assert "no right to list pods in all namespaces: whether a group has room" in ran.err
    assert "whether a controller runs is not known: no right to read the Lease" in ran.err
    stranger = await kubeconfig_of(real_plane, town.namespace, [], tmp_path)
    blind = await Shell(run, stranger)()
    assert (blind.code, blind.out) == (1, "")
    told = f"no right to list pods in namespace {town.namespace}: no member can be seen"
    assert told in blind.err
    gangs = await asyncio.to_thread(run, "get", "gangs", "--kubeconfig", str(stranger))
    assert (gangs.code, gangs.out, told in gangs.err, "No gangs found" in gangs.err) == (1, "", True, False)
    watch = await asyncio.to_thread(run, "get", "gangs", "-w", "--kubeconfig", str(stranger))
    assert (watch.code, watch.out) == (1, "")
    assert f"error: {told}" in watch.err


async def test_settings_of_the_controller_are_gone_by(town: StoredPodGroups, get: Shell, tmp_path: Path) -> None:
    await town.group("ring", 1)
    await town.held("ring", "a")
    config = tmp_path / "settings.yaml"
    config.write_text(f"groups: {{capacityCheck: {CapacityCheck.OFF}}}\n")
    ran = await get("-n", town.namespace, "--no-headers", "--config", str(config))
    assert ran.out.split()[:5] == ["ring", "scheduler-plugins", "0/1", "Pending", "Gathered"]


class ListingClient:
    """A client of a cluster with one kind of PodGroup and two of them, one of which has no right form."""

    async def list(self, resource: Resource, *_: Any, type: Any, **__: Any) -> Any:  # noqa: A002 - kube.Client's word
        items: list[Any] = []
        if resource == POD_GROUPS[names.PLUGINS_GROUP]:
            items = [pod_group("good"), pod_group("odd", notes={"a": 1})]
        return msgspec.json.decode(msgspec.json.encode({"metadata": {}, "items": items}), type=type)


async def test_an_object_that_cannot_be_read_is_said_and_hides_no_other() -> None:
    read = await pod_groups.fetch_pod_groups(cast("Client", ListingClient()), Groups(), None)
    assert [it.name for it in iter(read.cache.keys())] == ["good"]
    assert len(read.missing) == 1
    assert read.missing[0].startswith("not readable: ")


async def test_who_may_see_no_members_hears_of_that_whatever_else_is_refused() -> None:
    """A watch ends with one sentence; the refusals come in any order."""
    for order in (1, -1):
        live = PodGroupWatch(Client(Access("http://127.0.0.1:1")), "team", Groups())
        for number, kind in [*enumerate(live._kinds)][::order]:
            assert live.lost(number, WatchProblem(Problems.LIST_FAILED, kind.resource, "403 Forbidden: no"))
        assert live.failed == "no right to list pods in namespace team: no member can be seen (403 Forbidden: no)"


# --- Words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (3599, "59m"),
        (3 * 3600, "3h"),
        (4 * 3600 + 120, "4h2m"),
        (30 * 3600, "30h"),
        (50 * 3600, "2d2h"),
        (30 * 86400, "30d"),
    ],
)
def test_ages_are_those_of_kubectl(seconds: float, text: str) -> None:
    assert age(seconds) == text
