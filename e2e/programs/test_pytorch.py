"""PyTorch: torchrun's c10d rendezvous on four nodes, then an all-reduce by gloo."""

from typing import Final

from e2e.nodes import Nodes
from e2e.programs import real_images
from e2e.programs.program import Program, run_both
from e2e.scenario import Scenario

PYTORCH: Final = Program(
    "PyTorch",
    "pytorch.yaml",
    real_images.PYTHON,
    ("workers",),
    "`join_timeout` of torchrun's rendezvous, 600 s by default (60 s, if rank 0 is the late one)",
    missed=r"RendezvousTimeout|RendezvousConnectionError|timed out",
    met=r"^rank \d: 4 of 4 have added their one$",
    lines=4,
    hurry=("--rdzv_conf=", "--rdzv_conf=join_timeout={},"),
)


async def test_torchrun_gives_up_without_the_gate_and_meets_behind_it(
    scenario: Scenario, ungated: Scenario, nodes: Nodes
) -> None:
    (await run_both(PYTORCH, scenario, ungated, nodes)).save(scenario.environment.reports)
