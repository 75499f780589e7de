"""The controller's Deployment, as the chart labels it: what speaks for a controller that no Lease tells of."""

from enum import StrEnum

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import DEPLOYMENTS
from jobset_gate.template import Json, dig, items, whole

LABELS = f"app.kubernetes.io/name={names.PROGRAM},app.kubernetes.io/component=controller"


class Election(StrEnum):
    """What its command line says about leader election."""

    ON = "--leader-elect"
    OFF = "--no-leader-elect"
    UNSAID = ""


async def available(client: Client, namespaces: tuple[str, ...]) -> list[Json]:
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
    return [it for it in found if whole(dig(it, "status", "availableReplicas"), 0) > 0]


def election(deployment: Json) -> Election:
    """The last word counts, as it does for the program."""
    containers = items(dig(deployment, "spec", "template", "spec", "containers"))
    words = [str(word) for one in containers for part in ("command", "args") for word in items(dig(one, part))]
    said = [it for word in words for it in (Election.ON, Election.OFF) if word == it]
    return said[-1] if said else Election.UNSAID


def place(deployment: Json) -> str:
    """`namespace/name`."""
    return f"{dig(deployment, 'metadata', 'namespace')}/{dig(deployment, 'metadata', 'name')}"


async def _listed(client: Client, namespace: str | None) -> list[Json]:
    try:
        return items((await client.list(DEPLOYMENTS, namespace, label_selector=LABELS)).get("items"))
    except NotFound:
        return []
