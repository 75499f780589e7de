"""The chart's admission policies on the real plane: which objects they are, and when they are in force."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Final

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Forbidden, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, CRDS
from tests.fakes.eventually import eventually
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
    change = [{"op": "add", "path": "/metadata/labels", "value": {"theirs": "1"}}]
    async with Client(replace(plane.access, headers=(("Impersonate-User", user),)), user_agent="a probe") as client:

        async def of_built_in_kinds() -> bool:
            probe = {"metadata": {"name": "is-no-gang"}}
            return await _refuses(client.create(CONFIGMAPS, probe, namespace, dry_run=True))

        async def of_crds() -> bool:
            patched = client.patch(CRDS, names.JOBSET_CRD, body=change, patch=PatchType.JSON, dry_run=True)
            return await _refuses(patched, also=(Forbidden, NotFound))

        await eventually(of_built_in_kinds)
        await eventually(of_crds)


async def _refuses(probe: Awaitable[Json], also: tuple[type[ApiError], ...] = ()) -> bool:
    """Whether a policy does; or something else, where there is no such object or no right to it."""
    try:
        await probe
    except ApiError as error:
        return REFUSED in str(error) or isinstance(error, also)
    return False
