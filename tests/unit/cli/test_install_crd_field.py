"""`install-crd-field`: on a cluster with JobSet, without it, twice, and back."""

import asyncio
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS
from jobset_gate_demo.fake import jobset_crd
from tests.fakes.cli_runner import CliResult, RunCli
from tests.plane.planes import Plane


async def has_field(client: Client) -> bool:
    crd: dict[str, Any] = await client.get(CRDS, names.JOBSET_CRD)
    (version,) = [one for one in crd["spec"]["versions"] if one["name"] == names.JOBSET_VERSION]
    return names.CONFIG_FIELD in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


@pytest.fixture
def install(run: RunCli, plane: Plane) -> Any:
    """Runs the command in a thread, since the plane may live in this one."""

    async def call(*arguments: str) -> CliResult:
        return await asyncio.to_thread(run, "install-crd-field", "--kubeconfig", str(plane.kubeconfig), *arguments)

    return call


async def test_the_field_is_put_in_and_taken_out_once(plane: Plane, install: Any) -> None:
    async with plane.client() as client:
        await jobset_crd.install(client)
        await install("--remove")
        ran = await install()
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == "spec.groupSchedulingConfig is now part of the CRD jobsets.jobset.x-k8s.io\n"
        assert await has_field(client)
        assert "was already part" in (await install()).out
        assert "is no longer part" in (await install("--remove")).out
        assert not await has_field(client)
        assert "was not part" in (await install("--remove")).out


async def test_without_jobset_it_says_so_and_there_is_nothing_to_take_out(run: RunCli, embedded_plane: Plane) -> None:
    """So an uninstallation does not fail where JobSet went first."""
    where = ("install-crd-field", "--kubeconfig", str(embedded_plane.kubeconfig))
    ran = await asyncio.to_thread(run, *where)
    error = "error: the CRD jobsets.jobset.x-k8s.io is not there: install JobSet first\n"
    assert (ran.code, ran.err) == (1, error)
    ran = await asyncio.to_thread(run, *where, "--remove")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "the CRD jobsets.jobset.x-k8s.io is not there, nor is the field\n"
