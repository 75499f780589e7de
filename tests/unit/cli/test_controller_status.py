"""Whether a controller runs: yes, no, or not known, and never a no that nobody has seen."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from jobset_gate import names
from jobset_gate.cli.fetch.controller_status import DEFAULT_NAMESPACE, LABELS, NO_GROUPS, controller_status
from jobset_gate.explain.model import ControllerStatus
from jobset_gate.kube.errors import Forbidden, NotFound
from jobset_gate.kube.resources import DEPLOYMENTS, LEASES, Resource
from tests.fakes.podgroups.snapshots import timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobset_gate.kube.client import Client

Json = dict[str, Any]
EVERYWHERE = "*"
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
        if resource == DEPLOYMENTS:
            assert label_selector == LABELS
        self._check(namespace or EVERYWHERE)
        return {"items": [it for it in self._of(resource) if namespace in (None, it["metadata"]["namespace"])]}

    async def get(self, resource: Resource, name: str, namespace: str) -> Json:
        self._check(namespace)
        for one in self._of(resource):
            if (one["metadata"]["name"], one["metadata"]["namespace"]) == (name, namespace):
                return one
        raise NotFound(404, "NotFound", "there is none")

    def _of(self, resource: Resource) -> Sequence[Json]:
        return [dated(it) for it in self.leases] if resource == LEASES else self.deployments

    def _check(self, namespace: str) -> None:
        if namespace not in self.rights and EVERYWHERE not in self.rights:
            raise Forbidden(403, "Forbidden", "no")


def lease(ago: float = 0.0, *, namespace: str = "sys", holder: str = "one") -> Json:
    """Renewed so long before it is read."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "ago": ago}
    return {"metadata": {"name": names.LEASE, "namespace": namespace}, "spec": spec}


def dated(made: Json) -> Json:
    return made | {"spec": made["spec"] | {"renewTime": timestamp(time.time() - made["spec"]["ago"])}}


def deployment(*arguments: str, namespace: str = "sys", available: int = 1) -> Json:
    containers = [{"name": "controller", "args": ["controller", *arguments]}]
    spec = {"template": {"spec": {"containers": containers}}}
    meta = {"name": "gate", "namespace": namespace}
    return {"metadata": meta, "spec": spec, "status": {"availableReplicas": available}}


async def read_status(cluster: LeaseClient) -> ControllerStatus:
    return await controller_status(cast("Client", cluster), HOME, without=NO_GROUPS)


ON, OFF = "--leader-elect", "--no-leader-elect"
NO_LEASE = f"no controller runs: there is no Lease {names.LEASE}; {NO_GROUPS}"
RUNS_WITHOUT = "a controller runs: Deployment sys/gate, without leader election"
UNKNOWN = "whether a controller runs is not known: "


@pytest.mark.parametrize(
    ("cluster", "leads", "shown"),
    [
        (LeaseClient([lease()]), True, f"a controller runs: one holds the Lease sys/{names.LEASE}"),
        (LeaseClient([lease(600), lease(namespace=HOME, holder="two")]), True, "a controller runs: two holds"),
        (LeaseClient([lease(600)]), False, f"no controller runs: one holds the Lease sys/{names.LEASE}, which ran out"),
        (
            LeaseClient([lease(holder="")]),
            False,
            f"no controller runs: nobody holds the Lease sys/{names.LEASE}; {NO_GROUPS}",
        ),
        (LeaseClient(), False, NO_LEASE),
    ],
    ids=["leads", "two", "old", "given-back", "none"],
)  # fmt: skip
async def test_a_lease_shows_whether_a_controller_leads(cluster: LeaseClient, leads: bool, shown: str) -> None:
    status = await read_status(cluster)
    assert (status.leads, status.message[: len(shown)]) == (leads, shown)


@pytest.mark.parametrize("leases", [[], [lease(600)], [lease(holder="")]], ids=["none", "old", "given-back"])
async def test_without_leader_election_the_deployment_tells(leases: list[Json]) -> None:
    """A Lease of the time before stays behind where leader election was switched off."""
    status = await read_status(LeaseClient(leases, [deployment(OFF)]))
    assert (status.leads, status.message) == (True, RUNS_WITHOUT)
    assert (await read_status(LeaseClient(leases, [deployment(OFF, available=0)]))).leads is False
    assert (await read_status(LeaseClient(leases, [deployment(OFF, ON)]))).leads is False  # the last word counts


async def test_pods_that_do_not_get_the_lease_lead_nobody() -> None:
    status = await read_status(LeaseClient([], [deployment(ON)]))
    assert (status.leads, status.message) == (False, NO_LEASE)


async def test_a_deployment_that_does_not_say_leaves_it_open() -> None:
    status = await read_status(LeaseClient([], [deployment()]))
    words = f"Deployment sys/gate is available, but its Lease {names.LEASE} was not found"
    assert (status.leads, status.message) == (None, UNKNOWN + words)


@pytest.mark.parametrize(
    ("rights", "leases", "leads", "shown"),
    [
        ((), [lease()], None, f"{UNKNOWN}no right to read the Lease {names.LEASE}"),
        ((HOME,), [lease()], None, f"{UNKNOWN}no Lease {names.LEASE} was found, and no right to look for it"),
        ((HOME,), [lease(namespace=HOME)], True, "a controller runs"),
        ((USUAL,), [lease(namespace=USUAL)], True, "a controller runs"),
        ((USUAL,), [lease(600, namespace=USUAL)], False, "no controller runs"),
    ],
    ids=["nothing", "elsewhere", "at-home", "usual", "old"],
)
async def test_what_may_not_be_looked_into_is_not_taken_for_empty(
    rights: tuple[str, ...], leases: list[Json], leads: bool | None, shown: str
) -> None:
    status = await read_status(LeaseClient(leases, rights=rights))
    assert (status.leads, status.message[: len(shown)]) == (leads, shown)


async def test_a_visible_deployment_counts_where_its_lease_is_hidden() -> None:
    class Deployments(LeaseClient):
        """Whose Deployments everybody may list."""

        def _check(self, namespace: str) -> None:
            if namespace != EVERYWHERE:
                raise Forbidden(403, "Forbidden", "no")

        async def list(self, resource: Resource, namespace: str | None = None, **more: Any) -> Any:
            if resource == LEASES:
                raise Forbidden(403, "Forbidden", "no")
            return await super().list(resource, namespace, **more)

    status = await read_status(Deployments([lease()], [deployment(ON)]))
    words = f"Deployment sys/gate is available, but there is no right to read the Lease {names.LEASE}"
    assert (status.leads, status.message) == (None, UNKNOWN + words)
    assert (await read_status(Deployments([], [deployment(OFF)]))).leads is True
