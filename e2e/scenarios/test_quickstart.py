"""docs/quickstart.md, command by command, in a folder with the examples: three gangs break, one command tells why."""

import asyncio
import time
from pathlib import Path
from typing import Final

from e2e import commands, plugin, quickstart
from e2e.scenario import Scenario
from e2e.timeouts import TIMEOUT

WHY: Final = "kubectl jobset-gate why "
CAUSES: Final = {
    "too-large": ("Unscheduled", "nodes are available", "Insufficient cpu"),
    "wrong-image": ("ImagePull", "no-such-tag"),
    "first-gang": ("QuotaDenied", "exceeded quota", "limited: pods=3"),
}
"""Of the gangs that the document breaks, what the first lines about them say."""


async def test_every_command_does_what_the_document_says(scenario: Scenario, tmp_path: Path) -> None:
    small = f"{scenario.namespace}-small"
    quickstart.furnish(tmp_path, scenario.image, scenario.environment.kubeconfig)
    env = plugin.plugin_env(str(tmp_path / quickstart.KUBECONFIG))
    await typed(tmp_path, f"kubectl config set-context --current --namespace={scenario.namespace}", env)
    explained: set[str] = set()
    try:
        for line in quickstart.typed(quickstart.DOCUMENT.read_text()):
            command = quickstart.here(line, small, scenario.image)
            if line.startswith(WHY):
                gang = line.removeprefix(WHY).split()[0]
                await until_printed(tmp_path, command, env, CAUSES[gang])
                explained.add(gang)
                continue
            await typed(tmp_path, command, env)
    finally:
        await scenario.kubectl("delete", "namespace", small, "--ignore-not-found", "--wait=false")
    assert explained == set(CAUSES)


async def until_printed(place: Path, command: str, env: dict[str, str], words: tuple[str, ...]) -> None:
    """The document says to wait for a few seconds; on a busy machine they are more."""
    end = time.monotonic() + TIMEOUT
    while True:
        said = await typed(place, command, env)
        first = "\n".join(said.splitlines()[: plugin.FIRST_LINES])
        if all(word in first for word in words):
            return
        assert time.monotonic() < end, f"{words} is not in the first lines of {said}"
        await asyncio.sleep(plugin.LOOK_EVERY)


async def typed(place: Path, command: str, env: dict[str, str]) -> str:
    """As in a shell there. Raises commands.Failed."""
    line = f"cd {place} && {command}"
    return await asyncio.to_thread(commands.run, "bash", "-o", "pipefail", "-c", line, env=env, seconds=2 * TIMEOUT)
