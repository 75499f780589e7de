"""Each command over start groups: the pods of one name under one owner, with a ConfigMap of their own."""

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, PODS
from tests.fakes.cli_process import started
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import NO_ROOM, install_jobset_crd, store_half
from tests.fakes.stored_start_group import StoredStartGroup
from tests.flow.cli.test_schemas import check
from tests.plane.planes import Plane

pytestmark = pytest.mark.parametrize("plane", ["embedded"], indirect=True)


@pytest.fixture
async def ring(client: Client, namespace: str) -> StoredStartGroup:
    """One of two pods has started, for the other there is no room."""
    await install_jobset_crd(client, namespace)
    made = StoredStartGroup(client, namespace)
    await store_half(made)
    return made


async def test_pods_that_ask_for_something_else_are_named(ring: StoredStartGroup, cli: CliShell) -> None:
    ring.notes = ring.notes | {names.START_SIZE: "3"}
    await ring.started(2, "")
    ran = await cli("why", "startgroup/ring")
    assert "Waiting: 2/3 pods started" in ran.out
    assert "the most patient values count until these are deleted: ring-0, ring-1" in ran.out
    assert check("why", (await cli("why", "ring", "-o", "json")).out)["differing"] == ["ring-0", "ring-1"]


async def test_pods_that_were_all_replaced_are_the_next_attempt_until_the_first_release(
    ring: StoredStartGroup, cli: CliShell
) -> None:
    """The ConfigMap released other pods, and none of them is left."""
    await ring.client.delete(CONFIGMAPS, ring.config_map_name, ring.namespace)
    await ring.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "all 2 pods started", members=("u-1", "u-2"))
    assert "pods of PyTorchJob ring, attempt 1" in (await cli("why", "ring")).out
    late = await cli("wait", "startgroup/ring", "--timeout=0")
    assert (late.code, "startgroup/ring is not released after 0s; `jobset-gate why startgroup/ring -n" in late.err) == (
        3,
        True,
    )


async def test_a_watch_outlasts_the_moment_without_pods(client: Client, namespace: str, plane: Plane) -> None:
    """A restart as a whole deletes all pods first."""
    made = StoredStartGroup(client, namespace)
    await made.jobset()
    await made.unscheduled(0, "", NO_ROOM)
    async with started(plane.kubeconfig, "watch", "startgroup/ring", "-n", namespace) as watch:
        assert "Waiting 0/2" in await watch.line()
        await client.delete(PODS, "ring-0", namespace)
        while "has no pod now" not in await watch.line():
            pass
        await made.unscheduled(1, "", NO_ROOM)
        assert "Waiting 0/2" in await watch.line()


async def test_of_several_owners_one_has_to_be_named(
    ring: StoredStartGroup, client: Client, namespace: str, cli: CliShell
) -> None:
    other = StoredStartGroup(client, namespace, "mpi", kind="MPIJob")
    await store_half(other)
    shown = f"startgroup/ring in namespace {namespace} has 2 owners: mpijob/mpi (UID {other.uid}), pytorchjob/ring"
    for command in (["why"], ["describe"], ["watch"], ["wait"], ["timeline"], ["release", "--yes"]):
        ran = await cli(*command, "startgroup/ring")
        assert (ran.code, ran.out, shown in ran.err) == (2, "", True), command
    for owner in ("mpi", "mpijob/mpi", "MPIJob/mpi", other.uid):
        for name in ("startgroup/ring", "ring"):
            assert "pods of MPIJob mpi, attempt 0" in (await cli("why", name, "--owner", owner)).out
    ran = await cli("wait", "ring", "--owner=nobody", "--timeout=0")
    assert (ran.code, f"is not owned by nobody, but by mpijob/mpi (UID {other.uid})" in ran.err) == (1, True)
    ran = await cli("why", "jobset/ring", "--owner=mpi")
    assert (ran.code, "--owner is of start groups" in ran.err) == (2, True)
    rows = (await cli("get", "gangs", "--no-headers", "-o", "wide")).out.splitlines()
    assert [row.split()[:5] for row in rows] == [["StartGroup", "startgroup", "ring", "Waiting", "1/2"]] * 2
    owners = {it for row in rows for it in row.split() if it.endswith(("/mpi", "/ring"))}
    assert owners == {"MPIJob/mpi", "PyTorchJob/ring"}
    assert len((await cli("get", "gangs", "--no-headers", "-l", "team=mpi")).out.splitlines()) == 1
    found = check("timeline", (await cli("timeline", "ring", "--owner=ring", "-o", "json")).out)
    assert [it["name"] for it in found["pods"]] == ["ring-0", "ring-1"]


async def test_an_owner_whose_pods_are_all_gone_is_passed_over(
    ring: StoredStartGroup, client: Client, namespace: str, cli: CliShell
) -> None:
    """One that was deleted and made again, and an old pod that has ended."""
    old = StoredStartGroup(client, namespace, "ring-old")
    await old.jobset()
    await old.pod(0, phase="Failed")
    assert (await cli("why", "ring")).code == 0


async def test_release_writes_the_decision_with_its_members_and_annotates_the_pods(
    ring: StoredStartGroup, cli: CliShell
) -> None:
    asked, gate = await cli("release", "startgroup/ring"), f"the gate of StartGroup {ring.namespace}/ring"
    assert (asked.code, f"{gate} would be opened: say --yes" in asked.err) == (2, True)
    for form in ("server", "client"):
        ran = await cli("release", "ring", f"--dry-run={form}")
        assert (ran.code, ran.out.startswith("startgroup/ring released (")) == (0, True)
    assert "verdict" not in (await ring.stored_config_map())["data"]
    ran = await cli("release", "startgroup/ring", "--yes")
    assert (ran.code, ran.out) == (0, "startgroup/ring released: gate opened by hand with 1/2 pods started\n")
    made, pods = await ring.stored_config_map(), (await ring.client.list(PODS, ring.namespace))["items"]
    uids = sorted(it["metadata"]["uid"] for it in pods)
    data = made["data"]
    assert (data["attempt"], data["members"].split()) == ("0", uids)
    assert data["verdict"].startswith(f"release {ring.uid} 0 0 Bypassed\n")
    assert made["metadata"]["annotations"][names.GROUP_STARTED] == "True"
    verdicts = {it["metadata"]["annotations"][names.VERDICT].partition("\n")[0] for it in pods}
    assert verdicts == {f"release {uid} 0 0 Bypassed" for uid in uids}
    (event,) = (await ring.client.list(EVENTS, ring.namespace))["items"]
    assert (event["reason"], event["involvedObject"]["kind"]) == (names.REASON_RELEASED_BY_USER, "PyTorchJob")
    assert "has opened the gate of attempt 0 of startgroup/ring" in event["message"]
    again = await cli("release", "ring", "--yes")
    assert (again.code, "unchanged: its gate is open already" in again.out) == (0, True)


async def test_release_makes_the_config_map_where_there_is_none(ring: StoredStartGroup, cli: CliShell) -> None:
    await ring.client.delete(CONFIGMAPS, ring.config_map_name, ring.namespace)
    assert (await cli("release", "ring", "--yes")).code == 0
    made = await ring.stored_config_map()
    assert (made["metadata"]["labels"][names.START_GROUP], made["data"]["attempt"]) == ("ring", "0")
    assert made["metadata"]["ownerReferences"][0]["uid"] == ring.uid


async def test_a_start_group_that_has_timed_out_is_not_released(ring: StoredStartGroup, cli: CliShell) -> None:
    await ring.decide(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT, "1/2 pods started")
    ran = await cli("release", "ring", "--yes")
    assert (ran.code, "that stands until it has other pods only: 1/2 pods started" in ran.err) == (1, True)


async def test_bypass_is_refused_with_the_place_of_the_annotation(ring: StoredStartGroup, cli: CliShell) -> None:
    for name in ("startgroup/ring", "ring", "pod/ring-0"):
        ran = await cli("bypass", name, "--yes")
        assert (ran.code, ran.out) == (2, "")
        assert f'put the annotation {names.BYPASS}: "true" into the pod template of its owner' in ran.err


async def test_pods_without_an_owner_and_unknown_names_are_no_start_group(
    ring: StoredStartGroup, cli: CliShell
) -> None:
    meta = {"name": "bare", "labels": {names.START_GROUP: "lonely"}}
    spec = {"containers": [{"name": "main", "image": "x"}]}
    await ring.client.create(PODS, {"metadata": meta, "spec": spec}, ring.namespace)
    for name in ("lonely", "moon", "No_Label"):
        ran = await cli("why", f"startgroup/{name}")
        assert (ran.code, f"StartGroup {name} not found in namespace {ring.namespace}" in ran.err) == (1, True), name
    assert "lonely" not in (await cli("get", "gangs")).out
