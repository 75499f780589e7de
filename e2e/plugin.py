"""`kubectl jobset-gate`, as a user of a namespace types it: kubectl finds the plugin on the PATH."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from e2e import commands
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT

BIN: Final = Path(sys.executable).parent
"""Where kubectl-jobset_gate lies."""
FIRST_LINES: Final = 8
LOOK_EVERY: Final = 1.0


def plugin_env(kubeconfig: str) -> dict[str, str]:
    return {"KUBECONFIG": kubeconfig, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}


async def first_lines_of_why(scenario: Scenario, name: str, *expected: str) -> list[str]:
    """What it says at once, once it says all that is expected there: its sources need a moment to speak up."""
    command = ("kubectl", "jobset-gate", "why", name, "--namespace", scenario.namespace)
    said = ""
    try:
        async with asyncio.timeout(TIMEOUT):
            while True:
                said = await asyncio.to_thread(commands.run, *command, env=plugin_env(scenario.environment.kubeconfig))
                first = said.splitlines()[:FIRST_LINES]
                if all(word in "\n".join(first) for word in expected):
                    return first
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError:
        raise TimeoutError(f"{expected} is not in the first lines of {said}") from None
