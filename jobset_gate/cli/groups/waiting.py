"""A pod group, live, until it is where it is wanted; for `wait`."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from jobset_gate.cli import settings_file
from jobset_gate.cli.groups.scene import About, GroupScene
from jobset_gate.cli.verbs.following import FIRST_LOOK
from jobset_gate.cli.verbs.standing import End, Standing
from jobset_gate.explained import Controller
from jobset_gate.groups.candidates import Check
from jobset_gate.kube.client import Client

if TYPE_CHECKING:
    from jobset_gate.cli.verbs.waiting import Wanted


async def until(client: Client, namespace: str, name: str, wanted: "Wanted", end: End) -> Standing:
    """How it stands when that has come, or nothing can come, or the time is over. Raises Failed if it is not there."""
    settings = settings_file.read(wanted.config).admission.groups
    # Nobody asks for free room here, so neither nodes nor what is bound to them have to be watched.
    settings = settings.model_copy(update={"capacity_check": Check.OFF})
    about = About(namespace, name, Controller(), settings)
    now = Standing()
    async with GroupScene(client, about) as scene:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(wanted.seconds, FIRST_LOOK)):
                await scene.ready()
                now = (await scene.look()).standing
            async with asyncio.timeout(wanted.seconds):
                while not now.is_over(end):
                    await scene.change()
                    now = (await scene.look()).standing
        wanted.rights.missing += [it for it in scene.reading.missing if it not in wanted.rights.missing]
    return now
