"""The webhook configurations: whether they exist, are as they are set and trust the webhook; its certificates."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import yaml
from cryptography import x509

from jobset_gate import names, settings
from jobset_gate.barrier.source import Source
from jobset_gate.cli.doctor.check import ClusterReader, Finding, FindingLevel, NotReadable, error, ok, warning, webhooks
from jobset_gate.kube.resources import CONFIGMAPS, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.sources.table import JOB, JOBSET, LWS, START_GROUP
from webhook.certs.ca import certificates, decoded
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
_HALF_OF_JOBS: Final = "the other configuration has one, so gangs of Jobs are half installed"
_HALF_OF_LWS: Final = (
    "groups of LeaderWorkerSets start without a barrier, or are half installed, though gangs.sources has them"
)
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
    found += await _check_source(reader, JOB, _HALF_OF_JOBS)
    found += await _check_start_groups(reader)
    found += await _check_source(reader, LWS, _HALF_OF_LWS)
    pods = await hooks_for(reader, None)
    found += [_judged(MUTATING_WEBHOOKS, it) for it in pods]
    if not pods:
        why = "pods of groups are not held: each is scheduled as it comes; right if pod groups are switched off"
        remedy = "set groups.enabled in the chart's values, or leave it if you want no pod groups"
        found.append(warning(f"{MUTATING_WEBHOOKS.kind} {names.POD_WEBHOOK} is missing", why, remedy))
    return found


async def _check_source(reader: ClusterReader, source: Source, why: str) -> list[Finding]:
    """The webhooks for the workloads of a source and for their pods; nothing to say where it is switched off."""
    its, wanted = await hooks_for(reader, source), await installed_gangs(reader)
    if not its and (source is JOB or wanted is None or source.name not in wanted.sources):
        return []
    found: list[Finding] = []
    for resource, hook, name in KEPT:
        ours = await _hooks(reader, resource, hook_name(hook, source))
        if not ours:
            found.append(_lacks(resource, name, source, why))
        judged = [_judged(resource, one, f" for {source.kind}s") for one in ours]
        found += [it for it in judged if it.level is not FindingLevel.OK]
    if not its:
        found.append(_lacks(MUTATING_WEBHOOKS, names.BARRIER_POD_WEBHOOK, source, why))
    return found or [ok(f"{source.kind}s are sent to the webhook")]


def _lacks(resource: Resource, name: str, source: Source, why: str) -> Finding:
    return error(f"{resource.kind} {name} has no webhook for {source.kind}s", why, _INSTALL)


async def _check_start_groups(reader: ClusterReader) -> list[Finding]:
    """That for pods of start groups; nothing to say where they are switched off."""
    ours, wanted = await hooks_for(reader, START_GROUP), await installed_gangs(reader)
    if not ours and wanted is not None and START_GROUP.name in wanted.sources:
        what = f"{MUTATING_WEBHOOKS.kind} {names.BARRIER_POD_WEBHOOK} is missing"
        return [error(what, "pods of start groups start without a barrier, though gangs.sources has them", _INSTALL)]
    return [_judged_start_groups(it, wanted) for it in ours]


async def installed_gangs(reader: ClusterReader) -> settings.Gangs | None:
    """What the settings of the webhook's Deployment say of gangs; None where they cannot be read."""
    with suppress(NotReadable, settings.BadSettings, yaml.YAMLError):
        for namespace, name in await _volumes(reader, "configMap", "name"):
            text = nested(await reader.get_object(CONFIGMAPS, name, namespace), "data", "settings.yaml")
            if isinstance(text, str):
                return settings.load({"gangs": as_map(yaml.safe_load(text)).get("gangs") or {}}).gangs
    return None


async def _volumes(reader: ClusterReader, *path: str) -> list[tuple[str, str]]:
    """Namespace and name of the objects that the webhook's pods mount."""
    return [
        (str(nested(deployment, "metadata", "namespace")), name)
        for deployment in await webhooks(reader)
        for volume in as_list(nested(deployment, "spec", "template", "spec", "volumes"))
        if isinstance(name := nested(volume, *path), str)
    ]


async def hooks_for(reader: ClusterReader, source: Source | None) -> list[FoundWebhook]:
    """Our webhooks for the workloads or pods of a source, None: for pods of groups; none where they are left out."""
    if source in (JOBSET, JOB):
        wanted = [(resource, hook_name(hook, source)) for resource, hook, _ in KEPT]
    else:
        pods = {START_GROUP: START_GROUP_HOOK, LWS: LWS_HOOK, None: POD_HOOK}
        wanted = [(MUTATING_WEBHOOKS, pods[source])]
    return [it for resource, hook in wanted for it in await _hooks(reader, resource, hook)]


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


# --- Certificates -----------------------------------------------------------------------------------------------------

SOON: Final = timedelta(days=7)
_RENEW: Final = "read the log of the webhook, which renews its own; with cert-manager see its Certificate"


async def bundles(reader: ClusterReader) -> list[Finding]:
    """What stands in caBundle."""
    hooks = [it for source in (JOBSET, START_GROUP, None) for it in await hooks_for(reader, source)]
    found = [(name, nested(hook, "clientConfig", "caBundle")) for name, hook in hooks]
    return [judge(f"the CA that {name} trusts", certificates(decoded(text))) for name, text in found if text]


async def serving(reader: ClusterReader) -> list[Finding]:
    """Nothing to say where the webhook has its certificates from itself."""
    found: list[Finding] = []
    for namespace, name in await _volumes(reader, "secret", "secretName"):
        secret = await reader.get_object(SECRETS, name, namespace)
        leaf = certificates(decoded(nested(secret, "data", "tls.crt")))[:1]
        found.append(judge(f"the webhook's certificate in Secret {namespace}/{name}", leaf))
    return found


def judge(what: str, made: Sequence[x509.Certificate]) -> Finding:
    """By the dates of that of them which is valid longest."""
    now = datetime.now(UTC)
    valid = [it for it in made if it.not_valid_before_utc <= now < it.not_valid_after_utc]
    if not valid:
        ends = ", ".join(f"{it.not_valid_after_utc:%Y-%m-%d %H:%M} UTC" for it in made)
        return error(f"{what} is not valid now", f"valid until {ends}" if ends else "there is no certificate", _RENEW)
    last = max(valid, key=lambda it: it.not_valid_after_utc)
    life, left = last.not_valid_after_utc - last.not_valid_before_utc, last.not_valid_after_utc - now
    dates = f"valid until {last.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    return warning(f"{what} ends soon", dates, _RENEW) if left < min(SOON, life / 6) else ok(f"{what} is valid", dates)
