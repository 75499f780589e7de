"""What jobset-gate stands on: versions, CRDs of JobSet (A2) and of PodGroups (G5), kubelets; and who else is there."""

import re
from contextlib import suppress
from typing import Final

from controllers.podgroups import crds
from jobset_gate import names
from jobset_gate.barrier import crd as crd_schema
from jobset_gate.cli.doctor.check import ClusterReader, Finding, NotReadable, error, ok, unknown, warning
from jobset_gate.cli.doctor.webhook_configurations import hooks_for
from jobset_gate.cli.fetch.controller_status import place
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import CRDS, DEPLOYMENTS, MUTATING_WEBHOOKS, NODES
from jobset_gate.objects.quantity import parse_duration
from jobset_gate.objects.unstructured import Json, as_list, nested

KUBERNETES: Final = (1, 30)
"""Webhooks have match conditions from then on."""
JOBSET: Final = (0, 9)
"""Older ones drop unknown fields at admission, and their pods lack the JobSet's UID."""
_VERSION: Final = re.compile(r"v?([0-9]+)\.([0-9]+)")
_IMAGE: Final = re.compile(r"(?:^|/)jobset(?:-controller)?:(v?[0-9][^@]*)")


async def kubernetes(reader: ClusterReader) -> list[Finding]:
    """The API server's."""
    version = await reader.server_version()
    doubt = unknown("Kubernetes' version", f"the API server says {version!r}", "ask `kubectl version`")
    why = "API servers know match conditions from 1.30 on; older ones send every JobSet to the webhook, or refuse it"
    return [_judged("Kubernetes", version, KUBERNETES, why, doubt)]


async def jobset(reader: ClusterReader) -> list[Finding]:
    """That of JobSet's controller, by the tag of its image."""
    tags = {tag for one in await reader.list_objects(DEPLOYMENTS) for tag in tags_of(one)}
    what, remedy = "JobSet's version", "make sure that JobSet is 0.9 or newer"
    if not tags:
        return [unknown(what, "no Deployment has an image jobset:VERSION", remedy)]
    why = "it drops unknown fields at admission, and its pods lack the label with the JobSet's UID: nothing is gated"
    doubts = {tag: unknown(what, f"its image has the tag {tag}", remedy) for tag in tags}
    return [_judged("JobSet", tag, JOBSET, why, doubts[tag]) for tag in sorted(tags)]


def _judged(what: str, version: str, least: tuple[int, int], why: str, doubt: Finding) -> Finding:
    """`why` an older one will not do; `doubt`: the finding on a version that says no number."""
    found = _VERSION.match(version)
    if found is None:
        return doubt
    if (int(found[1]), int(found[2])) < least:
        return error(f"{what} {version} is too old", why, f"use {what} {least[0]}.{least[1]} or newer")
    return ok(f"{what} {version}")


def tags_of(deployment: Json) -> list[str]:
    """The tags of JobSet's image in it."""
    return [found[1] for image in _images(deployment) if (found := _IMAGE.search(image))]


def _images(deployment: Json) -> list[str]:
    return [str(nested(it, "image")) for it in as_list(nested(deployment, "spec", "template", "spec", "containers"))]


# --- CRDs ------------------------------------------------------------------------------------------------------------


async def jobset_crd(reader: ClusterReader) -> list[Finding]:
    """Is JobSet there, and does it keep the field?"""
    crd = await reader.get_object(CRDS, crd_schema.CRD_NAME)
    place = f"spec.{names.CONFIG_FIELD}"
    if crd is None:
        return [
            error("JobSet is not installed", f"there is no CRD {crd_schema.CRD_NAME}", "install JobSet 0.9 or newer")
        ]
    if crd_schema.is_extended(crd):
        return [ok(f"JobSet's CRD has {place}")]
    if not crd_schema.can_be_extended(crd):
        why = f"it serves no {crd_schema.VERSION} with a schema for spec"
        return [error(f"JobSet's CRD has no place for {place}", why, "install JobSet 0.9 or newer")]
    why = f"the field is dropped from JobSets without a word; the annotation {names.CONFIG} works all the same"
    return [warning(f"JobSet's CRD lacks {place}", why, "run `kubectl jobset-gate install-crd-field`")]


async def podgroup_crds(reader: ClusterReader) -> list[Finding]:
    """Nothing to say where pod groups are off."""
    if not await hooks_for(reader, None):
        return []
    return [await _judge_kind(reader, name) for name in crds.GROUPS]


async def _judge_kind(reader: ClusterReader, name: str) -> Finding:
    crd = await reader.get_object(CRDS, name)
    if crd is None:
        why = "pods that name a group in that way wait for a PodGroup that nobody can create"
        return warning(
            f"there is no CRD {name}", why, "set crds.podGroups in the chart's values, or switch the way off"
        )
    whose = "ours" if crds.is_ours(crd) else "another project's"
    if why := crds.why_unusable(crd):
        remedy = "install a version of it that is known here, or switch the way off in groups.ways"
        return error(f"the CRD {name} cannot be used; it is {whose}", why, remedy)
    return ok(f"the CRD {name} can be used", f"it is {whose}")


# --- Kubelets --------------------------------------------------------------------------------------------------------

USUAL_SYNC_SECONDS: Final = 60
_SYNC: Final = "how often kubelets look at their pods"
_SYNC_REMEDY: Final = "look for syncFrequency in the kubelets' configuration; the usual value is 1m"


async def kubelet_sync(reader: ClusterReader) -> list[Finding]:
    """Asked of one node, and only where the API server passes the question on."""
    period = ""
    for node in (await reader.list_objects(NODES))[:1]:
        with suppress(KubeError, NotReadable):
            period = await reader.sync_frequency(str(nested(node, "metadata", "name")))
    return [judge_sync(period)]


def judge_sync(period: str) -> Finding:
    """By the kubelet's own words, `1m0s`."""
    seconds = parse_duration(period)
    if seconds is None:
        return unknown(_SYNC, "no kubelet says so through the API server", _SYNC_REMEDY)
    if seconds > USUAL_SYNC_SECONDS:
        why = f"a pod that neither the gate stream nor an annotation reaches may wait for {period} after the release"
        return warning(f"kubelets look at their pods every {period}", why, "set syncFrequency to 1m or less")
    return ok(f"kubelets look at their pods every {period}")


# --- Others ----------------------------------------------------------------------------------------------------------

KNOWN: Final = {
    "koord": "Koordinator",
    "volcano": "Volcano",
    "scheduler-plugins": "scheduler-plugins",
    "yunikorn": "YuniKorn",
    "kai-scheduler": "KAI Scheduler",
}
"""Words in names and images, and who it is."""
_APART: Final = "let each pod name one scheduler, and keep groups.schedulerNames and groups.ways to what is ours"


async def other_schedulers(reader: ClusterReader) -> list[Finding]:
    """Deployments of schedulers that place groups themselves."""
    found = [(who, one) for one in await reader.list_objects(DEPLOYMENTS) if (who := _scheduler(one))]
    why = "it reads the same labels and annotations as we do"
    return [warning(f"{who} runs here ({place(one)})", why, _APART) for who, one in found] or [
        ok("no other scheduler of groups is deployed")
    ]


async def other_webhooks(reader: ClusterReader) -> list[Finding]:
    """Mutating webhooks for pods that bear one of these names."""
    found: list[Finding] = []
    for one in await reader.list_objects(MUTATING_WEBHOOKS):
        name = str(nested(one, "metadata", "name"))
        who = _who(" ".join([name, *(str(nested(it, "name")) for it in as_list(one.get("webhooks")))]))
        rules = [rule for it in as_list(one.get("webhooks")) for rule in as_list(nested(it, "rules"))]
        if not any("pods" in as_list(nested(rule, "resources")) for rule in rules):
            continue
        if who:
            why = f"{who} may change the group, the scheduler or the gates of pods after us"
            found.append(warning(f"the webhook configuration {name} changes pods, too", why, _APART))
    return found


def _scheduler(deployment: Json) -> str:
    """Whose scheduler it is; "" for anything else, such as the rest of the same project."""
    words = [str(nested(deployment, "metadata", "name")), *_images(deployment)]
    return _who(" ".join(words)) if any("scheduler" in it for it in words) else ""


def _who(text: str) -> str:
    return next((who for word, who in KNOWN.items() if word in text), "")
