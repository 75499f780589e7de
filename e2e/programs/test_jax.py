"""JAX: four processes in two Jobs, jax.distributed.initialize, then a sum over all devices by gloo."""

from typing import Final

from e2e.nodes import Nodes
from e2e.programs import real_images
from e2e.programs.program import Program, run_both
from e2e.scenario import Scenario

JAX: Final = Program(
    "JAX",
    "jax.yaml",
    real_images.PYTHON,
    ("workers",),
    "`initialization_timeout` of `jax.distributed.initialize`, 300 s by default",
    missed=r"DEADLINE_EXCEEDED|[Tt]imed out|missing",
    met=r"^process \d of 4 sees 4 devices$",
    lines=4,
    hurry=("process_id=job", "initialization_timeout={}, process_id=job"),
)


async def test_jax_gives_up_without_the_gate_and_meets_behind_it(
    scenario: Scenario, ungated: Scenario, nodes: Nodes
) -> None:
    (await run_both(JAX, scenario, ungated, nodes)).save(scenario.environment.reports)
