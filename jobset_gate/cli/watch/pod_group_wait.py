"""A pod group, live, until it is where it is wanted; for `wait`."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from jobset_gate.cli import settings_file
from jobset_gate.cli.watch.jobset_follower import FIRST_READ_TIMEOUT
from jobset_gate.cli.watch.outcome import WaitGoal, WaitOutcome
from jobset_gate.cli.watch.pod_group_view import PodGroupTarget, PodGroupView
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.candidate import CapacityCheck

if TYPE_CHECKING:
    from jobset_gate.cli.commands.wait_run import WaitOptions


async def wait_for_pod_group(
    client: Client, namespace: str, name: str, wanted: "WaitOptions", end: WaitGoal
) -> WaitOutcome:
    """How it stands when that has come, or nothing can come, or the time is over. Raises Failed if it is not there."""
    settings = settings_file.read(wanted.config).admission.groups
    # Nobody asks for free room here, so neither nodes nor what is bound to them have to be watched.
    settings = settings.model_copy(update={"capacity_check": CapacityCheck.OFF})
    about = PodGroupTarget(namespace, name, ControllerStatus(), settings)
    now = WaitOutcome()
    async with PodGroupView(client, about) as scene:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(wanted.seconds, FIRST_READ_TIMEOUT)):
                await scene.ready()
                now = (await scene.look()).standing
            async with asyncio.timeout(wanted.seconds):
                while not now.is_over(end):
                    await scene.change()
                    now = (await scene.look()).standing
        wanted.rights.missing += [it for it in scene.fetched.missing if it not in wanted.rights.missing]
    return now
