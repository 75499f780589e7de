"""Pod groups of a namespace for a person: read and told as `get groups` does it."""

import time

from jobset_gate.cli.groups import reading, telling
from jobset_gate.cli.looking.rights import Rights
from jobset_gate.explained import Controller
from jobset_gate.groups.report import Report
from jobset_gate.kube.client import Client
from jobset_gate.settings import Groups


async def groups(
    client: Client, namespace: str | None, rights: Rights, settings: Groups, controller: Controller
) -> list[Report]:
    """By namespace and name; None: of all namespaces."""
    read = await reading.read(client, settings, namespace)
    made_by = await telling.makers(client, read)
    rights.missing += [it for it in read.missing if it not in rights.missing]
    if not read.members:
        rights.hidden.add("pod groups")
    return telling.reports(read, settings, made_by, time.time(), controlled=bool(controller.leads))
