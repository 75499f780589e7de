"""Whether somebody looks after the gangs: a controller that decides, and the webhook that holds new pods.

Three answers: it runs (its Lease is renewed, or it works without one), it does not (its Lease is old or missing, and
would be seen), or that is not known: a right is missing, or what is seen does not tell.
"""

from dataclasses import dataclass

from jobset_gate import names
from jobset_gate.cli.fetch import deployments
from jobset_gate.cli.fetch.deployments import LeaderElectionFlag
from jobset_gate.cli.fetch.leases import FoundLeases, find_leases, holder, overdue, place
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden
from jobset_gate.kube.resources import MUTATING_WEBHOOKS
from jobset_gate.objects.unstructured import as_list, nested

CLOCK_MARGIN = 5.0
"""Seconds by which clocks may differ before a lease counts as run out."""
USUAL_NAMESPACE = "jobset-gate-system"


@dataclass(frozen=True, slots=True)
class ControllerState:
    """A controller, as far as can be told. `leads` None: that is not known."""

    leads: bool | None
    message: str
    """In words, for people."""


async def controller_state(client: Client, *namespaces: str) -> ControllerState:
    """The controller of the cluster; where leases may not be listed, of the usual namespace and of these."""
    places = (USUAL_NAMESPACE, *namespaces)
    seen = await find_leases(client, places)
    held = sorted((it for it in seen.found if holder(it)), key=overdue)
    if held and overdue(held[0]) <= CLOCK_MARGIN:
        return ControllerState(True, f"a controller runs: {holder(held[0])} holds the Lease {place(held[0])}")
    return await _deployed(client, places, seen) or _by_lease(seen)


async def pod_webhooks(client: Client) -> list[str]:
    """Configurations by which pods of groups are held, as far as they may be listed."""
    try:
        listed = await client.list(MUTATING_WEBHOOKS)
    except Forbidden:
        return []
    found = (nested(it, "metadata", "name") for it in as_list(listed.get("items")))
    return sorted(it for it in found if isinstance(it, str) and it.startswith(names.POD_WEBHOOK))


async def _deployed(client: Client, places: tuple[str, ...], seen: FoundLeases) -> ControllerState | None:
    """What a Deployment whose pods are ready says against the Leases; None if there is none, or it needs one."""
    ways = {deployments.leader_election_flag(it): it for it in await deployments.available_deployments(client, places)}
    if one := ways.get(LeaderElectionFlag.OFF):
        return ControllerState(True, f"a controller runs: Deployment {deployments.place(one)}, without leader election")
    one = ways.get(LeaderElectionFlag.UNSAID) or (
        ways.get(LeaderElectionFlag.ON) if seen.hidden and not seen.found else None
    )
    if one is None:
        return None
    told = f"Deployment {deployments.place(one)} is available, but {_lacking(seen)}"
    return ControllerState(None, f"whether a controller runs is not known: {told}")


def _lacking(seen: FoundLeases) -> str:
    """Why no Lease tells."""
    if seen.refused:
        return f"there is no right to read the Lease {names.LEASE}"
    return f"its Lease {names.LEASE} " + ("is not renewed" if seen.found else "was not found")


def _by_lease(seen: FoundLeases) -> ControllerState:
    held = sorted((it for it in seen.found if holder(it)), key=overdue)
    if held:
        who = f"{holder(held[0])} holds the Lease {place(held[0])}, which ran out {overdue(held[0]):.0f}s ago"
        return ControllerState(False, f"no controller runs: {who}; nobody opens groups")
    if seen.found:
        return ControllerState(
            False, f"no controller runs: nobody holds the Lease {place(seen.found[0])}; nobody opens groups"
        )
    if seen.refused:
        return ControllerState(
            None, f"whether a controller runs is not known: no right to read the Lease {names.LEASE}"
        )
    if seen.hidden:
        why = f"no Lease {names.LEASE} was found, and no right to look for it in all namespaces"
        return ControllerState(None, f"whether a controller runs is not known: {why}")
    return ControllerState(False, f"no controller runs: there is no Lease {names.LEASE}; nobody opens groups")
