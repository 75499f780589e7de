"""JAX, torchrun and mpirun give up without the gate, and meet behind it, where a member gets its node late."""

from pathlib import Path

import pytest

from e2e import commands
from e2e import scenario as scenarios
from e2e.nodes import Nodes
from e2e.programs.program import PROGRAMS, Program, run_both, save
from e2e.scenario import Scenario
from jobset_gate.kube.resources import SECRETS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.title)
async def test_a_program_gives_up_without_the_gate_and_meets_behind_it(
    program: Program, scenario: Scenario, nodes: Nodes, tmp_path: Path
) -> None:
    async with scenarios.open_scenario(scenario.environment, f"{scenario.namespace}-ungated") as ungated:
        for each in (scenario, ungated):
            await each.client.create(SECRETS, mpi_key(each.namespace, tmp_path / each.namespace))
        found = await run_both(program, scenario, ungated, nodes)
    save(scenario.environment.reports, program.title, found)


def mpi_key(namespace: str, file: Path) -> dict[str, object]:
    """The secret that examples/mpi.yaml says to make first."""
    commands.run("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(file))
    private, public = file.read_text(), file.with_suffix(".pub").read_text()
    data = {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
    return {"metadata": {"name": "mpi-ssh", "namespace": namespace}, "stringData": data}
