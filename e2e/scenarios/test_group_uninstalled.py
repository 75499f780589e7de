"""`helm uninstall` ungates the pods of groups: none waits for a gate that nobody would ever remove.

After all other scenarios, for jobset-gate is gone then.
"""

import pytest

from e2e import groups
from e2e.release_admin import ReleaseAdmin
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT

pytestmark = [pytest.mark.alone, pytest.mark.last]


async def test_held_pods_of_a_group_run(scenario: Scenario, release_admin: ReleaseAdmin) -> None:
    await release_admin.apply()  # another scenario may have removed it before
    await scenario.apply(groups.job(scenario.image, 2, metadata=groups.labelled(3)))
    await groups.until_held(scenario, 2)
    await release_admin.remove()
    await scenario.until_running(2)
    assert await release_admin.left_behind(TIMEOUT) == set()
    # A new pod is neither held nor sent to a webhook.
    late = groups.job(scenario.image, 1, metadata=groups.labelled(3))
    await scenario.apply({**late, "metadata": {"name": "late"}})
    await scenario.until_running(3)
