"""The controller's Deployment, as the chart labels it: what speaks for a controller that no Lease tells of."""

from enum import StrEnum

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import DEPLOYMENTS
from jobset_gate.objects.unstructured import Json, as_int, as_list, nested

LABELS = f"app.kubernetes.io/name={names.PROGRAM},app.kubernetes.io/component=controller"


class LeaderElectionFlag(StrEnum):
    """What its command line says about leader election."""

    ON = "--leader-elect"
    OFF = "--no-leader-elect"
    UNSAID = ""


async def available_deployments(client: Client, namespaces: tuple[str, ...]) -> list[Json]:
    """Deployments with pods that are ready, as far as they may be seen."""
    try:
        found = await _listed(client, None)
    except Forbidden:
        found = []
        for namespace in dict.fromkeys(it for it in namespaces if it):
            try:
                found += await _listed(client, namespace)
            except Forbidden:
                continue
    return [it for it in found if as_int(nested(it, "status", "availableReplicas"), 0) > 0]


def leader_election_flag(deployment: Json) -> LeaderElectionFlag:
    """The last word counts, as it does for the program."""
    containers = as_list(nested(deployment, "spec", "template", "spec", "containers"))
    words = [str(word) for one in containers for part in ("command", "args") for word in as_list(nested(one, part))]
    said = [it for word in words for it in (LeaderElectionFlag.ON, LeaderElectionFlag.OFF) if word == it]
    return said[-1] if said else LeaderElectionFlag.UNSAID


def place(deployment: Json) -> str:
    """`namespace/name`."""
    return f"{nested(deployment, 'metadata', 'namespace')}/{nested(deployment, 'metadata', 'name')}"


async def _listed(client: Client, namespace: str | None) -> list[Json]:
    try:
        return as_list((await client.list(DEPLOYMENTS, namespace, label_selector=LABELS)).get("items"))
    except NotFound:
        return []
