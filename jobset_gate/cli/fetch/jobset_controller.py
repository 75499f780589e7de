"""Whether a controller decides about JobSets, told from its Lease."""

from jobset_gate.cli.fetch import controller_status
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.client import Client

_OF_GROUPS = "; nobody opens groups"


async def jobset_controller_status(client: Client, *namespaces: str) -> ControllerStatus:
    """What its Lease says; `namespaces` are looked into besides the usual one where leases may not be listed."""
    keeper = await controller_status.controller_state(client, *namespaces)
    told = keeper.message
    if told.endswith(_OF_GROUPS):
        told = f"{told.removesuffix(_OF_GROUPS)}; nobody opens a gate or times a gang out"
    return ControllerStatus(leads=keeper.leads, told=told)
