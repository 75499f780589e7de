"""Whether Kubernetes and JobSet are new enough."""

import re
from typing import Final

from jobset_gate.cli.doctor.cluster_reader import ClusterReader
from jobset_gate.cli.doctor.findings import Finding, error, ok, unknown
from jobset_gate.kube.resources import DEPLOYMENTS
from jobset_gate.objects.unstructured import Json, as_list, nested

KUBERNETES: Final = (1, 30)
"""Webhooks have match conditions from then on."""
JOBSET: Final = (0, 9)
"""Older ones drop unknown fields at admission, and their pods lack the JobSet's UID."""
_VERSION: Final = re.compile(r"v?([0-9]+)\.([0-9]+)")
_IMAGE: Final = re.compile(r"(?:^|/)jobset(?:-controller)?:(v?[0-9][^@]*)")


async def kubernetes(patient: ClusterReader) -> list[Finding]:
    """The API server's."""
    found = await patient.document("/version", "version") or {}
    told = str(found.get("gitVersion", ""))
    number = _number(told)
    if number is None:
        return [unknown("Kubernetes' version", f"the API server says {told!r}", "ask `kubectl version`")]
    if number < KUBERNETES:
        why = (
            "API servers know match conditions from 1.30 on; older ones send every JobSet to the webhook, or refuse it"
        )
        return [error(f"Kubernetes {told} is too old", why, "use Kubernetes 1.30 or newer")]
    return [ok(f"Kubernetes {told}")]


async def jobset(patient: ClusterReader) -> list[Finding]:
    """That of JobSet's controller, by the tag of its image."""
    tags = {tag for one in await patient.list_objects(DEPLOYMENTS) for tag in tags_of(one)}
    if not tags:
        why = "no Deployment has an image jobset:VERSION"
        return [unknown("JobSet's version", why, "make sure that JobSet is 0.9 or newer")]
    return [_judged(tag) for tag in sorted(tags)]


def tags_of(deployment: Json) -> list[str]:
    """The tags of JobSet's image in it."""
    images = (str(nested(it, "image")) for it in as_list(nested(deployment, "spec", "template", "spec", "containers")))
    return [found[1] for image in images if (found := _IMAGE.search(image))]


def _judged(tag: str) -> Finding:
    number = _number(tag)
    if number is None:
        return unknown("JobSet's version", f"its image has the tag {tag}", "make sure that JobSet is 0.9 or newer")
    if number < JOBSET:
        why = (
            "it drops unknown fields at admission, and its pods lack the label with the JobSet's UID: nothing is gated"
        )
        return error(f"JobSet {tag} is too old", why, "use JobSet 0.9 or newer")
    return ok(f"JobSet {tag}")


def _number(told: str) -> tuple[int, int] | None:
    found = _VERSION.match(told)
    return (int(found[1]), int(found[2])) if found else None
