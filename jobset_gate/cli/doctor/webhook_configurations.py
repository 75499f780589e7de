"""The webhook configurations: whether they exist, with failurePolicy Fail, or as it is set, and a caBundle."""

from contextlib import suppress
from typing import Final

import yaml

from jobset_gate import names, settings
from jobset_gate.cli.doctor.check import (
    ClusterReader,
    Finding,
    FindingLevel,
    NotReadable,
    error,
    ok,
    warning,
    webhooks,
)
from jobset_gate.kube.resources import (
    CONFIGMAPS,
    CRDS,
    LEADER_WORKER_SETS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.sources.table import JOB, LWS, START_GROUP
from webhook.registration import (
    LWS_HOOK,
    MUTATING,
    MUTATING_HOOK,
    POD_HOOK,
    START_GROUP_HOOK,
    VALIDATING,
    VALIDATING_HOOK,
    hook_name,
)

FoundWebhook = tuple[str, Json]
"""The configuration's name, and our webhook in it."""

KEPT: Final = ((MUTATING_WEBHOOKS, MUTATING_HOOK, MUTATING), (VALIDATING_WEBHOOKS, VALIDATING_HOOK, VALIDATING))
_INSTALL: Final = "install or repair jobset-gate: `helm upgrade --install` writes it again"


async def check(reader: ClusterReader) -> list[Finding]:
    """Those for JobSets, Jobs and start groups, and that for pods of groups."""
    found: list[Finding] = []
    for resource, hook, name in KEPT:
        ours = await _hooks(reader, resource, hook)
        what = "JobSets start without a barrier" if hook == MUTATING_HOOK else "wrong settings of gates are not refused"
        if not ours:
            found.append(error(f"{resource.kind} {name} is missing", what, _INSTALL))
        found += [_judged(resource, it) for it in ours]
    found += await _check_jobs(reader)
    found += await _check_start_groups(reader)
    found += await _check_leader_worker_sets(reader)
    pods = await for_pods(reader)
    found += [_judged(MUTATING_WEBHOOKS, it) for it in pods]
    if not pods:
        why = "pods of groups are not held: each is scheduled as it comes; right if pod groups are switched off"
        remedy = "set groups.enabled in the chart's values, or leave it if you want no pod groups"
        found.append(warning(f"{MUTATING_WEBHOOKS.kind} {names.POD_WEBHOOK} is missing", why, remedy))
    return found


async def _check_jobs(reader: ClusterReader) -> list[Finding]:
    """Those for Jobs; nothing to say where Jobs are no gangs."""
    if not await for_jobs(reader):
        return []
    found: list[Finding] = []
    for resource, hook, name in KEPT:
        ours = await _hooks(reader, resource, hook_name(hook, JOB))
        if not ours:
            why = "the other configuration has one, so gangs of Jobs are half installed"
            found.append(error(f"{resource.kind} {name} has no webhook for Jobs", why, _INSTALL))
        found += [it for one in ours if (it := _judged(resource, one, " for Jobs")).level is not FindingLevel.OK]
    return found or [ok("Jobs are sent to the webhook")]


async def _check_start_groups(reader: ClusterReader) -> list[Finding]:
    """That for pods of start groups; nothing to say where they are switched off."""
    ours, wanted = await for_start_groups(reader), await installed_gangs(reader)
    if not ours and wanted is not None and START_GROUP.name in wanted.sources:
        what = f"{MUTATING_WEBHOOKS.kind} {names.BARRIER_POD_WEBHOOK} is missing"
        return [error(what, "pods of start groups start without a barrier, though gangs.sources has them", _INSTALL)]
    return [_judged_start_groups(it, wanted) for it in ours]


async def _check_leader_worker_sets(reader: ClusterReader) -> list[Finding]:
    """Those for LeaderWorkerSets and their pods; nothing to say where they are switched off."""
    pods, wanted = await for_leader_worker_sets(reader), await installed_gangs(reader)
    missing = [
        (resource, name) for resource, hook, name in KEPT if not await _hooks(reader, resource, hook_name(hook, LWS))
    ]
    missing += [] if pods else [(MUTATING_WEBHOOKS, names.BARRIER_POD_WEBHOOK)]
    if not pods and (wanted is None or LWS.name not in wanted.sources):
        return []
    why = "groups of LeaderWorkerSets start without a barrier, or are half installed, though gangs.sources has them"
    found = [error(f"{it.kind} {name} has no webhook for LeaderWorkerSets", why, _INSTALL) for it, name in missing]
    return found or [await _sent(reader)]


async def _sent(reader: ClusterReader) -> Finding:
    crd = f"{LEADER_WORKER_SETS.plural}.{LEADER_WORKER_SETS.group}"
    with suppress(NotReadable):
        if await reader.get_object(CRDS, crd) is None:
            return ok("LeaderWorkerSets will be sent to the webhook", f"there is no CRD {crd} yet, which is no error")
    return ok("LeaderWorkerSets are sent to the webhook")


async def installed_gangs(reader: ClusterReader) -> settings.Gangs | None:
    """What the settings of the webhook's Deployment say of gangs; None where they cannot be read."""
    with suppress(NotReadable, settings.BadSettings, yaml.YAMLError):
        for deployment in await webhooks(reader):
            namespace = str(nested(deployment, "metadata", "namespace"))
            for volume in as_list(nested(deployment, "spec", "template", "spec", "volumes")):
                if isinstance(name := nested(volume, "configMap", "name"), str):
                    config_map = await reader.get_object(CONFIGMAPS, name, namespace)
                    if isinstance(text := nested(config_map, "data", "settings.yaml"), str):
                        gangs = as_map(yaml.safe_load(text)).get("gangs")
                        return settings.load({"gangs": gangs or {}}).gangs
    return None


async def for_start_groups(reader: ClusterReader) -> list[FoundWebhook]:
    """That to which pods of start groups are sent; none where gangs.sources leaves them out."""
    return await _hooks(reader, MUTATING_WEBHOOKS, START_GROUP_HOOK)


async def for_leader_worker_sets(reader: ClusterReader) -> list[FoundWebhook]:
    """That to which pods of LeaderWorkerSets are sent; none where gangs.sources leaves them out."""
    return await _hooks(reader, MUTATING_WEBHOOKS, LWS_HOOK)


async def for_pods(reader: ClusterReader) -> list[FoundWebhook]:
    """Those by which pods of groups are held."""
    return await _hooks(reader, MUTATING_WEBHOOKS, POD_HOOK)


async def for_jobsets(reader: ClusterReader) -> list[FoundWebhook]:
    return [it for resource, hook, _ in KEPT for it in await _hooks(reader, resource, hook)]


async def for_jobs(reader: ClusterReader) -> list[FoundWebhook]:
    """Those to which Jobs are sent; none where gangs.sources leaves them out."""
    return [it for resource, hook, _ in KEPT for it in await _hooks(reader, resource, hook_name(hook, JOB))]


async def _hooks(reader: ClusterReader, resource: Resource, hook: str) -> list[FoundWebhook]:
    """By the webhook's name: that of the configuration may have something appended."""
    return [
        (str(nested(one, "metadata", "name")), as_map(it))
        for one in await reader.list_objects(resource)
        for it in as_list(one.get("webhooks"))
        if nested(it, "name") == hook
    ]


def _judged_start_groups(found: FoundWebhook, wanted: settings.Gangs | None) -> Finding:
    """Its failurePolicy is right as it is set; where nobody says how that is, Fail is."""
    policy, finding = found[1].get("failurePolicy"), _judged(MUTATING_WEBHOOKS, found)
    asked = "Fail" if wanted is None else wanted.pod_failure_policy
    if finding.level is FindingLevel.ERROR:
        return finding
    what = f"{MUTATING_WEBHOOKS.kind} {found[0]}"
    why = "a pod that is created while the webhook is down " + (
        "has no barrier, and its start group starts at once" if policy == "Ignore" else "is refused"
    )
    if policy == asked:
        return ok(f"{what} is there", why)
    remedy = f"set gangs.podFailurePolicy in the chart's values to what you want; now it is {asked} there"
    return warning(f"{what} has the failurePolicy {policy}", why, remedy)


def _judged(resource: Resource, found: FoundWebhook, part: str = "") -> Finding:
    """`part`: which of its webhooks that is, where it has several."""
    name, hook = f"{found[0]}{part}", found[1]
    if not nested(hook, "clientConfig", "caBundle"):
        why = "API servers trust nobody there, so every gated JobSet or pod of a group is refused"
        remedy = "see whether the webhook's pods run: they write it; or cert-manager, if that keeps the certificate"
        return error(f"{resource.kind} {name} has no caBundle", why, remedy)
    if hook.get("failurePolicy") == "Ignore":
        why = "what is created while the webhook is down is not held"
        return warning(f"{resource.kind} {name} has the failurePolicy Ignore", why, "set webhook.failurePolicy to Fail")
    return ok(f"{resource.kind} {name} is there")
