"""The chart's admission policies on the real plane: which objects they are, and when they are in force."""

from typing import Any, Final

import pytest

from jobset_gate.kube.errors import Forbidden
from tests.plane.planes import Real

Json = dict[str, Any]
POLICIES: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
REFUSED: Final = "ValidatingAdmissionPolicy"
"""In what an API server says of a write that a policy has refused; RBAC has other words."""


def refused() -> Any:
    """A policy has to refuse what is done within, and RBAC lets it pass."""
    return pytest.raises(Forbidden, match=REFUSED)


def probed_last(manifests: list[Json]) -> list[Json]:
    """The same objects, to be made in this order: an API server hears of each kind in the order they were made in."""
    last = [(kind, "jobset-gate-controller-configmaps") for kind in POLICIES]
    named = {place: number for number, place in enumerate(last, 1)}
    return sorted(manifests, key=lambda one: named.get((one["kind"], one["metadata"]["name"]), 0))


async def in_force(plane: Real, namespace: str, account: str) -> None:
    """An API server reads policies some time after they were made, and tells nobody when; so it is called.

    About the policy and the binding that were made last: then it knows them all.
    """
    user = f"system:serviceaccount:{namespace}:{account}"
    probe = ("create", "configmap", "is-no-gang", "-n", namespace, "--dry-run=server", f"--as={user}")
    reported = ""
    for _ in range(600):
        reported = (await plane.kubectl(*probe, check=False)).stderr
        if REFUSED in reported:
            return
    raise AssertionError(f"the policies are not in force: {reported}")
