"""`install-crd-field`: on a cluster with JobSet, without it, twice, and back."""

from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CRDS
from jobset_gate_demo.fake import jobset_crd
from tests.fakes.cli_runner import CliShell, RunCli
from tests.plane.planes import Plane

COMMAND = ("install-crd-field",)


async def has_field(client: Client) -> bool:
    crd: dict[str, Any] = await client.get(CRDS, names.JOBSET_CRD)
    (version,) = [one for one in crd["spec"]["versions"] if one["name"] == names.JOBSET_VERSION]
    return names.CONFIG_FIELD in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


async def test_the_field_is_put_in_and_taken_out_once(plane: Plane, run: RunCli) -> None:
    install = CliShell(run, plane.kubeconfig, words=COMMAND)
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
    install = CliShell(run, embedded_plane.kubeconfig, words=COMMAND)
    ran = await install()
    error = "error: the CRD jobsets.jobset.x-k8s.io is not there: install JobSet first\n"
    assert (ran.code, ran.err) == (1, error)
    ran = await install("--remove")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "the CRD jobsets.jobset.x-k8s.io is not there, nor is the field\n"
