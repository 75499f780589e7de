"""Open MPI: mpirun reaches two workers by ssh, which add up pi together."""

from pathlib import Path
from typing import Final

from e2e import commands
from e2e.nodes import Nodes
from e2e.programs import real_images
from e2e.programs.program import Program, run_both
from e2e.scenario import Scenario
from jobset_gate.kube.resources import SECRETS

MPI: Final = Program(
    "Open MPI",
    "mpi.yaml",
    real_images.MPI,
    ("workers",),
    "mpirun's first ssh to a worker whose name is not in DNS: at once",
    missed=r"ssh: |ORTE was unable|unable to reliably start",
    met=r"^rank \d of 2 on |^pi is 3\.14159",
    lines=3,
)


async def test_mpirun_fails_without_the_gate_and_reaches_all_workers_behind_it(
    scenario: Scenario, ungated: Scenario, nodes: Nodes, tmp_path: Path
) -> None:
    for each in (scenario, ungated):
        await each.client.create(SECRETS, mpi_key(each.namespace, tmp_path / each.namespace))
    (await run_both(MPI, scenario, ungated, nodes)).save(scenario.environment.reports)


def mpi_key(namespace: str, file: Path) -> dict[str, object]:
    """The secret that the example says to make first."""
    commands.run("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(file))
    private, public = file.read_text(), file.with_suffix(".pub").read_text()
    data = {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
    return {"metadata": {"name": "mpi-ssh", "namespace": namespace}, "stringData": data}
