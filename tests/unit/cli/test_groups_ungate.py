"""`groups ungate`: what it asks before it acts, what it does with rights that are not enough, and what it says (G4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups.manifests import gated
from tests.fakes.stored_pod_groups import StoredPodGroups, install_pod_group_crds, kubeconfig_of, lease
from tests.plane.planes import Plane, Real
from tests.unit.cli.conftest import CliResult, RunCli

if TYPE_CHECKING:
    from tests.plane.embedded import Embedded

Json = dict[str, Any]
KINDS = ("pods", "jobs", "configmaps", "podgroups", "jobsets")


class Shell:
    """Command lines while the test's loop goes on."""

    def __init__(self, run: RunCli, kubeconfig: Path) -> None:
        self._run, self.kubeconfig = run, kubeconfig

    async def __call__(self, *arguments: str) -> CliResult:
        return await asyncio.to_thread(self._run, "groups", "ungate", *arguments, "--kubeconfig", str(self.kubeconfig))


@pytest.fixture
def ungate(run: RunCli, plane: Plane) -> Shell:
    return Shell(run, plane.kubeconfig)


@pytest.fixture
async def kinder(embedded_plane: Embedded) -> AsyncIterator[Client]:
    """The embedded plane with the kinds of PodGroup and two namespaces."""
    async with embedded_plane.client() as client:
        for name in ("sys", "team"):
            await embedded_plane.make_namespace(name)
        await install_pod_group_crds(client)
        yield client


async def held(town: StoredPodGroups) -> list[str]:
    """Names of the pods that our gate still holds."""
    found = await town.client.list(PODS, town.namespace)
    return sorted(it["metadata"]["name"] for it in found["items"] if gated(it))


@pytest.mark.parametrize("arguments", [(), ("ring", "--all")])
def test_it_must_be_plain_what_is_meant(run: RunCli, arguments: tuple[str, ...]) -> None:
    ran = run("groups", "ungate", *arguments)
    assert (ran.code, ran.err) == (2, "error: name groups, or say --all; not both\n")


async def test_named_groups_are_freed_whatever_their_way_and_nothing_else(town: StoredPodGroups, ungate: Shell) -> None:
    await town.held("ring", "a", "b", way=Format.KEP_24)
    await town.held("ring", "c", way=Format.ALIBABA, minimum=2)
    await town.held("star", "d")
    ran = await ungate("ring", "rign", "-n", town.namespace, "--yes")
    assert f"warning: no pod of a group rign is held in namespace {town.namespace}\n" in ran.err
    assert "a group ring is held" not in ran.err
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            f"group {town.namespace}/ring (alibaba): 1 pod freed",
            f"group {town.namespace}/ring (kep-24): 2 pods freed",
            "3 pods freed",
        ],
    )
    assert await held(town) == ["d"]


async def test_without_a_yes_or_with_a_dry_run_nothing_happens(town: StoredPodGroups, ungate: Shell) -> None:
    await town.held("ring", "a", "b")
    asked = await ungate("--all", "-n", town.namespace)
    assert (asked.code, asked.out) == (2, "")
    assert "2 pods would be freed: say --yes" in asked.err
    dry = await ungate("--all", "-n", town.namespace, "--dry-run")
    assert dry.out.splitlines()[-1] == "2 pods would be freed"
    assert await held(town) == ["a", "b"]


async def test_where_there_is_nothing_to_do_it_ends_well(embedded_plane: Embedded, run: RunCli) -> None:
    ran = await Shell(run, embedded_plane.kubeconfig)("--all", "--yes")  # no kind of PodGroup, no JobSet
    assert (ran.code, ran.out, ran.err) == (0, "0 pods freed\n", "")


async def test_what_was_decided_is_forgotten_if_no_controller_runs(
    kinder: Client, embedded_plane: Embedded, run: RunCli
) -> None:
    town, shell = StoredPodGroups(kinder, "team"), Shell(run, embedded_plane.kubeconfig)
    await town.group("ring", 2, decided=town.decided("ring"))
    await town.record("star", town.decided("star", Format.ALIBABA))
    assert "records of decisions would be removed: 2" in (await shell("--all", "--dry-run")).out
    ran = await shell("--all", "--yes")
    assert ran.out.splitlines() == ["records of decisions removed: 2", "0 pods freed"]
    left = await kinder.get(POD_GROUPS[names.PLUGINS_GROUP], "ring", "team")
    assert names.POD_GROUP_RECORD not in left["metadata"].get("annotations", {})
    assert (await kinder.list(CONFIGMAPS, "team"))["items"] == []


async def test_a_controller_that_runs_keeps_its_records_and_is_warned_of(
    kinder: Client, embedded_plane: Embedded, run: RunCli
) -> None:
    town, shell = StoredPodGroups(kinder, "team"), Shell(run, embedded_plane.kubeconfig)
    await lease(kinder, "sys", "replica-1")
    await town.record("star", town.decided("star", Format.ALIBABA))
    await town.held("star", "a", way=Format.ALIBABA, minimum=2)
    ran = await shell("--all", "--yes")
    assert ran.out.splitlines()[-1] == "1 pod freed"
    assert "warning: a controller runs: replica-1 holds the Lease sys/jobset-gate-controller" in ran.err
    assert len((await kinder.list(CONFIGMAPS, "team"))["items"]) == 1


REAL = pytest.mark.parametrize("plane", [pytest.param("real", marks=pytest.mark.real)], indirect=True)


@REAL
async def test_rights_on_pods_alone_are_enough_to_free_them(
    real_plane: Real, town: StoredPodGroups, run: RunCli, tmp_path: Path
) -> None:
    await town.held("ring", "a", "b")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]}]
    ran = await Shell(run, await kubeconfig_of(real_plane, town.namespace, rules, tmp_path))("ring", "--yes")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "2 pods freed")
    assert "whether Jobs and JobSets were suspended is not known" in ran.err
    assert await held(town) == []


@REAL
async def test_pods_that_may_not_be_patched_are_named_and_it_fails(
    real_plane: Real, town: StoredPodGroups, run: RunCli, tmp_path: Path
) -> None:
    await town.held("ring", "a", "b")
    rules = [{"apiGroups": ["", "batch", "jobset.x-k8s.io"], "resources": [*KINDS], "verbs": ["list"]}]
    rules += [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"], "resourceNames": ["a"]}]
    ran = await Shell(run, await kubeconfig_of(real_plane, town.namespace, rules, tmp_path))("ring", "--yes")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "1 pod freed")
    assert f"error: pod {town.namespace}/b: " in ran.err
    assert await held(town) == ["b"]
