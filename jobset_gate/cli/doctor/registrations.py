"""The three webhook configurations that send JobSets and pods to the door: there, strict, and with a CA."""

from typing import Final

from jobset_gate import names
from jobset_gate.cli.doctor.findings import Finding, error, ok, warning
from jobset_gate.cli.doctor.patient import Patient
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from jobset_gate.template import Json, dig, items, mapping
from webhook.pod_registration import POD_HOOK
from webhook.registration import MUTATING, MUTATING_HOOK, VALIDATING, VALIDATING_HOOK

Found = tuple[str, Json]
"""The configuration's name, and our webhook in it."""

KEPT: Final = ((MUTATING_WEBHOOKS, MUTATING_HOOK, MUTATING), (VALIDATING_WEBHOOKS, VALIDATING_HOOK, VALIDATING))
_INSTALL: Final = "install or repair jobset-gate: `helm upgrade --install` makes it anew"


async def check(patient: Patient) -> list[Finding]:
    """Those for JobSets, and that for pods of groups."""
    found: list[Finding] = []
    for resource, hook, name in KEPT:
        ours = await _hooks(patient, resource, hook)
        what = "JobSets start without a barrier" if hook == MUTATING_HOOK else "wrong settings of gates are not refused"
        if not ours:
            found.append(error(f"{resource.kind} {name} is missing", what, _INSTALL))
        found += [_judged(resource, it) for it in ours]
    pods = await for_pods(patient)
    found += [_judged(MUTATING_WEBHOOKS, it) for it in pods]
    if not pods:
        why = "pods of groups are not held: each is scheduled as it comes; right if pod groups are switched off"
        remedy = "set groups.enabled in the chart's values, or leave it if you want no pod groups"
        found.append(warning(f"{MUTATING_WEBHOOKS.kind} {names.POD_WEBHOOK} is missing", why, remedy))
    return found


async def for_pods(patient: Patient) -> list[Found]:
    """Those by which pods of groups are held."""
    return await _hooks(patient, MUTATING_WEBHOOKS, POD_HOOK)


async def for_jobsets(patient: Patient) -> list[Found]:
    """Those to which JobSets are sent."""
    return [it for resource, hook, _ in KEPT for it in await _hooks(patient, resource, hook)]


async def ours(patient: Patient) -> list[Found]:
    """All of them."""
    return await for_jobsets(patient) + await for_pods(patient)


async def _hooks(patient: Patient, resource: Resource, hook: str) -> list[Found]:
    """By the webhook's name: that of the configuration may have something appended."""
    return [
        (str(dig(one, "metadata", "name")), mapping(it))
        for one in await patient.all(resource)
        for it in items(one.get("webhooks"))
        if dig(it, "name") == hook
    ]


def _judged(resource: Resource, found: Found) -> Finding:
    name, hook = found
    if not dig(hook, "clientConfig", "caBundle"):
        why = "API servers trust nobody there, so every gated JobSet or pod of a group is refused"
        remedy = "see whether the webhook's pods run: they write it; or cert-manager, if that keeps the certificate"
        return error(f"{resource.kind} {name} has no caBundle", why, remedy)
    if hook.get("failurePolicy") == "Ignore":
        why = "what is created while the webhook is down is not held"
        return warning(f"{resource.kind} {name} has the failurePolicy Ignore", why, "set webhook.failurePolicy to Fail")
    return ok(f"{resource.kind} {name} is there")
