"""The chart's admission policies on the real plane: which objects they are, and when they are in force."""

from typing import Any, Final

import pytest

from jobset_gate import names
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
    last = [
        (kind, name)
        for name in ("jobset-gate-controller-kinds", "jobset-gate-controller-configmaps")
        for kind in POLICIES
    ]
    named = {place: number for number, place in enumerate(last, 1)}
    return sorted(manifests, key=lambda one: named.get((one["kind"], one["metadata"]["name"]), 0))


async def in_force(plane: Real, namespace: str, account: str) -> None:
    """Returns when the policies refuse. An API server reads them some time after they were made, without notice.

    Its part for built-in kinds and its part for CRDs read them on their own: each is probed by what was made last.
    """
    user = f"system:serviceaccount:{namespace}:{account}"
    dry_run = ("--dry-run=server", f"--as={user}")
    await _refuses(plane, "create", "configmap", "is-no-gang", "-n", namespace, *dry_run)
    change = '[{"op": "add", "path": "/metadata/labels", "value": {"theirs": "1"}}]'
    await _refuses(plane, "patch", "crd", names.JOBSET_CRD, "--type=json", "-p", change, *dry_run)


async def _refuses(plane: Real, *probe: str) -> None:
    """Until a policy does; or something else, where there is no such object or no right to it."""
    refusal = ""
    for _ in range(600):
        refusal = (await plane.kubectl(*probe, check=False)).stderr
        if REFUSED in refusal or ("crd" in probe and refusal):
            return
    raise AssertionError(f"the policies are not in force: {refusal}")
