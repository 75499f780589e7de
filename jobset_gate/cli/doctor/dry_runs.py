"""Dry runs that show whether API servers reach the webhook and trust it. Nothing is stored."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.source import Source
from jobset_gate.cli.doctor.check import ClusterReader, Finding, NotReadable, error, is_held, ok, unknown
from jobset_gate.cli.doctor.webhook_configurations import FoundWebhook, hooks_for
from jobset_gate.kube.errors import ApiError, NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS, NAMESPACES, PODS, Resource
from jobset_gate.objects.template import templates_of
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested, selector_matches
from jobset_gate.sources.table import JOB, JOBSET, LWS, START_GROUP
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


async def gets_barrier(source: Source, reader: ClusterReader) -> list[Finding]:
    """A gated workload or pod comes back with its barrier; nothing to say where its source is switched off."""
    who, resource, body = _GATED[source]
    hooks = await (_of_jobsets(reader) if source is JOBSET else hooks_for(reader, source))
    if not hooks and source is not JOBSET:
        return []
    trial = _Trial(f"{who} gets its barrier", f"{who} gets no barrier", resource, body, _has_barriers)
    return await _dry_run(reader, hooks, trial)


async def bad(reader: ClusterReader) -> list[Finding]:
    """Wrong settings are refused, by us."""
    good, wrong = "wrong settings of a gate are refused", "wrong settings of a gate are not refused"
    return await _dry_run(reader, await _of_jobsets(reader), _Trial(good, wrong, JOBSETS, _jobset(0)))


async def pod(reader: ClusterReader) -> list[Finding]:
    """A pod of a group comes back held; nothing to say where groups are switched off."""
    hooks = await hooks_for(reader, None)
    if not hooks:
        return []
    conditions = " ".join(str(nested(it, "expression")) for it in as_list(hooks[0][1].get("matchConditions")))
    trial = _Trial("a pod of a group is held", "a pod of a group is not held", PODS, member(conditions), is_held)
    return await _dry_run(reader, hooks, trial)


async def _of_jobsets(reader: ClusterReader) -> list[FoundWebhook]:
    """None where they may not be seen."""
    with suppress(NotReadable):
        return await hooks_for(reader, JOBSET)
    return []


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


@dataclass(frozen=True, slots=True)
class _Trial:
    """What is tried. `fits`: whether the answer is right; None: our webhooks must refuse it."""

    good: str
    bad: str
    resource: Resource
    body: Json
    fits: Callable[[Json], bool] | None = None


async def _dry_run(reader: ClusterReader, hooks: list[FoundWebhook], its: _Trial) -> list[Finding]:
    """Not repeated: a webhook that does not answer takes its time already."""
    namespace = reader.dry_run_namespace
    if await exempt(reader, hooks):
        return [unknown(f"whether {its.good}", f"namespace {namespace} is exempt from our webhooks", _ELSEWHERE)]
    try:
        made = await reader.client.without_retries().create(its.resource, its.body, namespace, dry_run=True)
    except ApiError as no:
        if isinstance(no, NotFound) and its.resource == JOBSETS:
            return []  # there are no JobSets, which another check says
        hook = _DENIED.search(no.message)
        if its.fits is None and hook and hook[1] in (MUTATING_HOOK, VALIDATING_HOOK):
            return [ok(its.good, f"by the webhook {hook[1]}: it is reached and trusted")]
        return [_refused(its.good, no, namespace)]
    if its.fits is not None and its.fits(made):
        return [ok(its.good, f"in namespace {namespace}, by a dry run")]
    why = f"for namespace {namespace} API servers do not ask our webhook, or do without its answer"
    return [error(its.bad, why, _LOOK)]


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


def _owned(name: str, labels: Json, annotations: Json) -> Json:
    """A pod with an owner, which every gang of pods has; in a dry run nobody asks whether it exists."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": _NAME, "uid": _NAME, "controller": True}
    meta = {"name": name, "labels": labels, "annotations": annotations, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": _POD}


def _config(timeout: int) -> Json:
    return {names.CONFIG: f'{{"{names.TIMEOUT_FIELD}": {timeout}}}'}


def _jobset(timeout: int) -> Json:
    """By the annotation, which needs no CRD field."""
    job = {"name": "workers", "replicas": 1, "template": {"spec": {"template": {"spec": _POD}}}}
    return {"metadata": {"name": _NAME, "annotations": _config(timeout)}, "spec": {"replicatedJobs": [job]}}


_JOB: Final[Json] = {
    "apiVersion": JOBS.api_version,
    "kind": JOBS.kind,
    "metadata": {"name": _NAME, "annotations": _config(300)},
    "spec": {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": {"spec": _POD}},
}
_PLACE: Final = {names.LWS_NAME: _NAME, names.LWS_GROUP_INDEX: "0", names.LWS_WORKER_INDEX: "0"}
_LEADER: Final = _owned(f"{_NAME}-0", {names.GATED: names.GATED_LWS, **_PLACE}, _config(300) | {names.LWS_SIZE: "1"})
_GATED: Final[dict[Source, tuple[str, Resource, Json]]] = {
    JOBSET: ("a gated JobSet", JOBSETS, _jobset(300)),
    JOB: ("a gated Job", JOBS, _JOB),
    START_GROUP: ("a pod of a start group", PODS, _owned(_NAME, {names.START_GROUP: _NAME}, {names.START_SIZE: "1"})),
    LWS: ("a pod of a LeaderWorkerSet", PODS, _LEADER),
}
"""What is tried of each source."""
BARRIERS: Final = [
    (f"whether {who} gets its barrier", partial(gets_barrier, source)) for source, (who, _, _) in _GATED.items()
]
"""A check of each."""
