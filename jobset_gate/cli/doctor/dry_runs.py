"""Dry runs that show whether API servers reach the webhook and trust it. Nothing is stored."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from jobset_gate import names
from jobset_gate.cli.doctor.check import ClusterReader, Finding, NotReadable, error, is_held, ok, unknown
from jobset_gate.cli.doctor.webhook_configurations import (
    FoundWebhook,
    for_jobs,
    for_jobsets,
    for_leader_worker_sets,
    for_pods,
    for_start_groups,
)
from jobset_gate.kube.errors import ApiError, NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, NAMESPACES, PODS, Resource
from jobset_gate.objects.template import templates_of
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested, selector_matches
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
"""Where a pod names its group, by which key, and what else the format requires."""


async def good(reader: ClusterReader) -> list[Finding]:
    """A gated JobSet comes back with its barrier; the validating webhook is called on the way."""
    return await _gets_barrier(reader, "a gated JobSet", await _hooks(reader), JOBSETS, _jobset(300))


async def job(reader: ClusterReader) -> list[Finding]:
    """A gated Job comes back with its barrier; nothing to say where Jobs are no gangs."""
    hooks = await for_jobs(reader)
    return await _gets_barrier(reader, "a gated Job", hooks, JOBS, _job(300)) if hooks else []


async def start_group(reader: ClusterReader) -> list[Finding]:
    """A pod of a start group comes back with its barrier; nothing to say where they are switched off."""
    hooks = await for_start_groups(reader)
    return await _gets_barrier(reader, "a pod of a start group", hooks, PODS, _starting_pod()) if hooks else []


async def leader_worker_set(reader: ClusterReader) -> list[Finding]:
    """A leader pod of a LeaderWorkerSet comes back with its barrier; nothing to say where they are switched off."""
    hooks = await for_leader_worker_sets(reader)
    return await _gets_barrier(reader, "a pod of a LeaderWorkerSet", hooks, PODS, _leader_pod()) if hooks else []


async def bad(reader: ClusterReader) -> list[Finding]:
    """Wrong settings are refused, by us."""
    what = "wrong settings of a gate are refused"
    made = await _dry_run(reader, what, await _hooks(reader), JOBSETS, _jobset(0), denial=True)
    return made if isinstance(made, list) else [_not_asked("wrong settings of a gate are not refused", reader)]


async def pod(reader: ClusterReader) -> list[Finding]:
    """A pod of a group comes back held; nothing to say where groups are switched off."""
    hooks = await for_pods(reader)
    if not hooks:
        return []
    conditions = " ".join(str(nested(it, "expression")) for it in as_list(hooks[0][1].get("matchConditions")))
    made = await _dry_run(reader, "a pod of a group is held", hooks, PODS, member(conditions))
    return _judged(reader, made, is_held, "a pod of a group is held", "a pod of a group is not held")


async def _gets_barrier(
    reader: ClusterReader, who: str, hooks: list[FoundWebhook], resource: Resource, body: Json
) -> list[Finding]:
    made = await _dry_run(reader, f"{who} gets its barrier", hooks, resource, body)
    return _judged(reader, made, _has_barriers, f"{who} gets its barrier", f"{who} gets no barrier")


def _judged(
    reader: ClusterReader, made: Json | list[Finding], fits: Callable[[Json], bool], good: str, bad: str
) -> list[Finding]:
    """What came of a dry run, if it was made."""
    if isinstance(made, list):
        return made
    at = f"in namespace {reader.dry_run_namespace}, by a dry run"
    return [ok(good, at) if fits(made) else _not_asked(bad, reader)]


async def exempt(reader: ClusterReader, hooks: list[FoundWebhook]) -> bool:
    """Whether none of these webhooks, if there are any, is for the namespace of the dry runs."""
    labels = {"kubernetes.io/metadata.name": reader.dry_run_namespace}
    with suppress(NotReadable):
        labels |= as_map(nested(await reader.get_object(NAMESPACES, reader.dry_run_namespace), "metadata", "labels"))
    return bool(hooks) and not any(selector_matches(it.get("namespaceSelector"), labels) for _, it in hooks)


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


async def _dry_run(
    reader: ClusterReader, what: str, hooks: list[FoundWebhook], resource: Resource, body: Json, *, denial: bool = False
) -> Json | list[Finding]:
    """The object as it would be stored, or else what there is to say: it is exempt, or was refused.

    `denial`: that our webhooks refuse it is right. Not repeated: a webhook that does not answer takes its time already.
    """
    namespace = reader.dry_run_namespace
    if await exempt(reader, hooks):
        return [unknown(f"whether {what}", f"namespace {namespace} is exempt from our webhooks", _ELSEWHERE)]
    try:
        return await reader.client.without_retries().create(resource, body, namespace, dry_run=True)
    except ApiError as no:
        if isinstance(no, NotFound) and resource == JOBSETS:
            return []  # there are no JobSets, which another check says
        hook = _DENIED.search(no.message)
        if denial and hook and hook[1] in (MUTATING_HOOK, VALIDATING_HOOK):
            return [ok(what, f"by the webhook {hook[1]}: it is reached and trusted")]
        return [_refused(what, no, namespace)]


def _not_asked(what: str, reader: ClusterReader) -> Finding:
    why = f"for namespace {reader.dry_run_namespace} API servers do not ask our webhook, or do without its answer"
    return error(what, why, _LOOK)


def _refused(what: str, no: ApiError, namespace: str) -> Finding:
    """Which webhook denied it, as far as the API server says."""
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


def _has_barriers(made: Json) -> bool:
    inits = (as_list(nested(it.pod_spec, "initContainers")) for it in templates_of(made))
    return all(any(nested(one, "name") == names.BARRIER_CONTAINER for one in some) for some in inits)


def _notes(timeout: int) -> Json:
    return {names.CONFIG: f'{{"{names.TIMEOUT_FIELD}": {timeout}}}'}


def _starting_pod() -> Json:
    """With an owner, which every start group has; in a dry run nobody asks whether it exists."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": _NAME, "uid": _NAME, "controller": True}
    meta = {"name": _NAME, "labels": {names.START_GROUP: _NAME}, "annotations": {names.START_SIZE: "1"}}
    return {"metadata": {**meta, "ownerReferences": [owner]}, "spec": _POD}


def _leader_pod() -> Json:
    """As LWS makes it, of a group of one."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": _NAME, "uid": _NAME, "controller": True}
    labels = {names.GATED: names.GATED_LWS, names.LWS_NAME: _NAME}
    labels |= {names.LWS_GROUP_INDEX: "0", names.LWS_WORKER_INDEX: "0"}
    notes = _notes(300) | {names.LWS_SIZE: "1"}
    meta = {"name": f"{_NAME}-0", "labels": labels, "annotations": notes, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": _POD}


def _job(timeout: int) -> Json:
    spec = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": {"spec": _POD}}
    kind = {"apiVersion": JOBS.api_version, "kind": JOBS.kind}
    return kind | {"metadata": {"name": _NAME, "annotations": _notes(timeout)}, "spec": spec}


def _jobset(timeout: int) -> dict[str, Any]:
    """By the annotation, which needs no CRD field."""
    job = {"name": "workers", "replicas": 1, "template": {"spec": {"template": {"spec": _POD}}}}
    return {"metadata": {"name": _NAME, "annotations": _notes(timeout)}, "spec": {"replicatedJobs": [job]}}
