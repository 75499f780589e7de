"""`helm uninstall` lets go of the pods of groups: none waits for a gate that nobody would ever remove.

After all other scenarios, for jobset-gate is gone then.
"""

import pytest

from e2e import groups
from e2e.release_admin import ReleaseAdmin
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT

pytestmark = [pytest.mark.alone, pytest.mark.last]


async def test_whoever_waits_for_a_group_runs_by_himself(world: Scenario, operator: ReleaseAdmin) -> None:
    await operator.apply()  # another scenario may have removed it before
    await world.apply(groups.job(world.image, 2, metadata=groups.labelled(3)))
    await groups.until_held(world, 2)
    await operator.remove()
    await world.until_running(2)
    assert await operator.left_behind(TIMEOUT) == set()
    # Who comes now is not held, and nobody is asked about him.
    late = groups.job(world.image, 1, metadata=groups.labelled(3))
    await world.apply({**late, "metadata": {"name": "late"}})
    await world.until_running(3)
