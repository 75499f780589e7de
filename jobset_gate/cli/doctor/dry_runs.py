"""Dry runs that show whether API servers reach the webhook and trust it. Nothing is stored."""

import re
from contextlib import suppress
from typing import Any, Final

from jobset_gate import names
from jobset_gate.cli.doctor.cluster_reader import ClusterReader, NotReadable
from jobset_gate.cli.doctor.findings import Finding, error, ok, unknown
from jobset_gate.cli.doctor.network_policies import matches
from jobset_gate.cli.doctor.webhook_configurations import FoundWebhook, for_jobsets, for_pods
from jobset_gate.kube.errors import ApiError, NotFound
from jobset_gate.kube.resources import JOBSETS, NAMESPACES, PODS, Resource
from jobset_gate.objects.jobset import replicated_jobs
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from webhook.registration import MUTATING_HOOK, VALIDATING_HOOK

_CALLING: Final = re.compile(r'failed calling webhook "([^"]+)"')
_DENIED: Final = re.compile(r'admission webhook "([^"]+)" denied the request')
_DOWN: Final = "see whether the webhook's pods are ready, and whether a NetworkPolicy or firewall keeps API servers out"
_UNTRUSTED: Final = "see the findings about caBundle; restart the webhook's Deployment, which writes it again"
_ELSEWHERE: Final = "name a namespace with -n in which it can be tried"
_LOOK: Final = "see the findings about the webhook configurations; `helm upgrade --install` writes them again"
_NAME: Final = f"{names.PROGRAM}-doctor"
_POD: Final[Json] = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
_SCHEDULER: Final = re.compile(r"schedulerName in \['([^']+)'")
_WAYS: Final[tuple[tuple[str, str, dict[str, str]], ...]] = (
    ("labels", names.PLUGINS_NAME, {}),
    ("labels", names.KOORDINATOR_LABEL, {}),
    ("labels", names.ALIBABA_NAME, {names.ALIBABA_MINIMUM: "1"}),
    ("annotations", names.KEP24_NAME, {}),
    ("annotations", names.KOORDINATOR_NAME, {names.KOORDINATOR_MINIMUM: "1"}),
)
"""Where a pod names its group, by which key, and what it has to say besides."""


async def good(reader: ClusterReader) -> list[Finding]:
    """A gated JobSet comes back with its barrier; the validating webhook is called on the way."""
    what = "a gated JobSet gets its barrier"
    if await exempt(reader, await _hooks(reader)):
        return [_exempted(what, reader)]
    try:
        made = await _tried(reader, JOBSETS, _jobset(300))
    except NotFound:
        return []  # there are no JobSets, which another check says
    except ApiError as no:
        return [_refused(what, no, reader.dry_run_namespace)]
    templates = [as_list(nested(job.pod_spec, "initContainers")) for job in replicated_jobs(made)]
    if all(any(nested(it, "name") == names.BARRIER_CONTAINER for it in inits) for inits in templates):
        return [ok(what, f"in namespace {reader.dry_run_namespace}, by a dry run")]
    why = f"for namespace {reader.dry_run_namespace} API servers do not ask our webhook, or do without its answer"
    return [error("a gated JobSet gets no barrier", why, _LOOK)]


async def bad(reader: ClusterReader) -> list[Finding]:
    """Wrong settings are refused, by us."""
    what = "wrong settings of a gate are refused"
    if await exempt(reader, await _hooks(reader)):
        return [_exempted(what, reader)]
    try:
        await _tried(reader, JOBSETS, _jobset(0))
    except NotFound:
        return []
    except ApiError as no:
        hook = _DENIED.search(no.message)
        if hook and hook[1] in (MUTATING_HOOK, VALIDATING_HOOK):
            return [ok(what, f"by the webhook {hook[1]}: it is reached and trusted")]
        return [_refused(what, no, reader.dry_run_namespace)]
    why = f"for namespace {reader.dry_run_namespace} API servers do not ask our webhook, or do without its answer"
    return [error("wrong settings of a gate are not refused", why, _LOOK)]


async def pod(reader: ClusterReader) -> list[Finding]:
    """A pod of a group comes back held."""
    hooks = await for_pods(reader)
    if not hooks:
        return []  # groups are off
    what = "a pod of a group is held"
    if await exempt(reader, hooks):
        return [_exempted(what, reader)]
    body = member(" ".join(str(nested(it, "expression")) for it in as_list(hooks[0][1].get("matchConditions"))))
    try:
        made = await _tried(reader, PODS, body)
    except ApiError as no:
        return [_refused(what, no, reader.dry_run_namespace)]
    if any(nested(it, "name") == names.POD_GROUP_GATE for it in as_list(nested(made, "spec", "schedulingGates"))):
        return [ok(what, f"in namespace {reader.dry_run_namespace}, by a dry run")]
    why = f"for namespace {reader.dry_run_namespace} API servers do not ask our webhook, or do without its answer"
    return [error("a pod of a group is not held", why, _LOOK)]


async def exempt(reader: ClusterReader, hooks: list[FoundWebhook]) -> bool:
    """Whether none of these webhooks, if there are any, is for the namespace of the dry runs."""
    labels = {"kubernetes.io/metadata.name": reader.dry_run_namespace}
    with suppress(NotReadable):
        labels |= as_map(nested(await reader.get_object(NAMESPACES, reader.dry_run_namespace), "metadata", "labels"))
    return bool(hooks) and not any(matches(it.get("namespaceSelector"), labels) for _, it in hooks)


def member(conditions: str) -> Json:
    """A pod that names a group in the first way that the webhook's match conditions know, for its first scheduler."""
    ways = [it for it in _WAYS if f"'{it[1]}'" in conditions]
    holder, key, more = ways[0] if ways else _WAYS[0]
    scheduler = _SCHEDULER.search(conditions)
    spec = _POD | ({"schedulerName": scheduler[1]} if scheduler else {})
    return {"metadata": {"name": _NAME, holder: {key: _NAME, **more}}, "spec": spec}


async def _hooks(reader: ClusterReader) -> list[FoundWebhook]:
    """Those for JobSets; none where they may not be seen."""
    with suppress(NotReadable):
        return await for_jobsets(reader)
    return []


def _exempted(what: str, reader: ClusterReader) -> Finding:
    return unknown(f"whether {what}", f"namespace {reader.dry_run_namespace} is exempt from our webhooks", _ELSEWHERE)


async def _tried(reader: ClusterReader, resource: Resource, body: Json) -> Json:
    """Not repeated: a webhook that does not answer takes its time already."""
    return await reader.client.without_retries().create(resource, body, reader.dry_run_namespace, dry_run=True)


def _refused(what: str, no: ApiError, namespace: str) -> Finding:
    """By whom, as far as the API server tells."""
    hook = _CALLING.search(no.message)
    if hook is None:
        return unknown(f"whether {what}", f"a dry run in namespace {namespace} was refused: {no.message}", _ELSEWHERE)
    reason = no.message.partition(f'webhook "{hook[1]}": ')[2] or no.message
    if not hook[1].endswith(names.DOMAIN):
        why = f"the webhook {hook[1]} of another project does not answer: {reason}"
        return error(f"whether {what} cannot be tried", why, f"repair whatever serves {hook[1]}")
    if "x509" in reason or "certificate" in reason:
        return error(f"API servers do not trust {hook[1]}", reason, _UNTRUSTED)
    return error(f"API servers do not reach {hook[1]}", reason, _DOWN)


def _jobset(timeout: int) -> dict[str, Any]:
    """By the annotation, which needs no CRD field."""
    job = {"name": "workers", "replicas": 1, "template": {"spec": {"template": {"spec": _POD}}}}
    notes = {names.CONFIG: f'{{"{names.TIMEOUT_FIELD}": {timeout}}}'}
    return {"metadata": {"name": _NAME, "annotations": notes}, "spec": {"replicatedJobs": [job]}}
