"""Whether a controller runs: yes, no, or not known, and never a no that nobody has seen."""

import time
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from jobset_gate import names
from jobset_gate.cli.fetch.controller_status import DEFAULT_NAMESPACE, LABELS, NO_GROUPS, controller_status
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import DEPLOYMENTS, LEASES, Resource
from tests.fakes.podgroups.snapshots import timestamp

Json = dict[str, Any]
EVERYWHERE = "*"
DAY = 24 * 3600
HOME, USUAL = "team", DEFAULT_NAMESPACE


@dataclass
class LeaseClient:
    """A client of a cluster with these objects; `rights` are the namespaces that may be looked into."""

    leases: list[Json] = field(default_factory=list)
    deployments: list[Json] = field(default_factory=list)
    rights: tuple[str, ...] = (EVERYWHERE,)

    async def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", **_: Any
    ) -> Any:
        assert label_selector == (LABELS if resource == DEPLOYMENTS else "")
        if not {namespace, EVERYWHERE} & {*self.rights}:
            raise Forbidden(403, "Forbidden", "no")
        found = self.leases if resource == LEASES else self.deployments
        return {"items": [it for it in found if namespace in (None, it["metadata"]["namespace"])]}

    async def get(self, resource: Resource, name: str, namespace: str) -> Any:
        for one in (await self.list(resource, namespace))["items"]:
            if one["metadata"]["name"] == name:
                return one
        raise NotFound(404, "NotFound", "there is none")


def lease(days: int = 0, *, namespace: str = "sys", holder: str = "one") -> Json:
    """For a day, renewed so many days ago."""
    renewed = timestamp(time.time() - days * DAY)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": DAY, "renewTime": renewed}
    return {"metadata": {"name": names.LEASE, "namespace": namespace}, "spec": spec}


def deployment(*arguments: str, available: int = 1) -> Json:
    containers = [{"name": "controller", "args": ["controller", *arguments]}]
    spec = {"template": {"spec": {"containers": containers}}}
    return {"metadata": {"name": "gate", "namespace": "sys"}, "spec": spec, "status": {"availableReplicas": available}}


ON, OFF = "--leader-elect", "--no-leader-elect"
NO_LEASE = f"no controller runs: there is no Lease {names.LEASE}; {NO_GROUPS}"
OLD = f"no controller runs: one holds the Lease sys/{names.LEASE}, which ran out"
GIVEN_BACK = f"no controller runs: nobody holds the Lease sys/{names.LEASE}; {NO_GROUPS}"
RUNS_WITHOUT = "a controller runs: Deployment sys/gate, without leader election"
UNKNOWN = "whether a controller runs is not known: "
SEEN: dict[str, tuple[LeaseClient, bool | None, str]] = {
    "one leads": (LeaseClient([lease()]), True, f"a controller runs: one holds the Lease sys/{names.LEASE}"),
    "of two one leads": (
        LeaseClient([lease(2), lease(namespace=HOME, holder="two")]),
        True,
        "a controller runs: two holds",
    ),
    "an old Lease": (LeaseClient([lease(2)]), False, OLD),
    "one that was given back": (LeaseClient([lease(holder="")]), False, GIVEN_BACK),
    "nothing": (LeaseClient(), False, NO_LEASE),
    # A Lease of the time before stays behind where leader election was switched off.
    "no election, no Lease": (LeaseClient([], [deployment(OFF)]), True, RUNS_WITHOUT),
    "no election, an old Lease": (LeaseClient([lease(2)], [deployment(OFF)]), True, RUNS_WITHOUT),
    "no election, no pod": (LeaseClient([], [deployment(OFF, available=0)]), False, "no controller runs"),
    "a Deployment that needs its Lease": (LeaseClient([], [deployment(ON)]), False, NO_LEASE),
    "no rights": (LeaseClient([lease()], rights=()), None, f"{UNKNOWN}no right to read the Lease {names.LEASE}"),
    "rights elsewhere": (
        LeaseClient([lease()], rights=(HOME,)),
        None,
        f"{UNKNOWN}no Lease {names.LEASE} was found, and no right to look for it",
    ),
    "rights in the usual namespace": (
        LeaseClient([lease(namespace=USUAL)], rights=(USUAL,)),
        True,
        "a controller runs",
    ),
}


@pytest.mark.parametrize("what", SEEN)
async def test_a_controller_runs_or_not_and_what_may_not_be_looked_into_is_not_taken_for_empty(what: str) -> None:
    cluster, leads, shown = SEEN[what]
    status = await controller_status(cast("Client", cluster), HOME, without=NO_GROUPS)
    assert (status.leads, status.message[: len(shown)]) == (leads, shown)
