"""The webhook configurations: which requests an API server sends to the webhook, and which never (A3, G2, K3).

Pods of groups, and pods that get a barrier of their own, have a configuration each, so that an uninstallation can
delete it before anything else. No pod is sent that names no group: an outage of the webhook refuses no other pod.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Final, TypedDict, Unpack

from jobset_gate import names
from jobset_gate.barrier.source import Source
from jobset_gate.objects.template import GROUP_PATH, LEADER_TEMPLATE, WORKER_TEMPLATE
from jobset_gate.objects.unstructured import Json
from jobset_gate.podgroups.formats import NAME_KEYS
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Gangs, Groups
from jobset_gate.sources.table import JOBSET, LWS, START_GROUP, TEMPLATE_SOURCES, WORKLOAD_SOURCES

MUTATING: Final = "zz-jobset-gate"
"""API servers call mutating webhooks in the order of their configurations' names. The last one sees the suspension that
Kueue's webhook sets, which starts a new epoch (A5), and the init containers that other webhooks add."""
VALIDATING: Final = "jobset-gate"
MUTATING_HOOK: Final = "mutate.jobset-gate.dev"
VALIDATING_HOOK: Final = "validate.jobset-gate.dev"
POD_HOOK: Final = "pods.jobset-gate.dev"
START_GROUP_HOOK: Final = "start-groups.jobset-gate.dev"
LWS_HOOK: Final = "leaderworkerset-pods.jobset-gate.dev"
MUTATE_PATH: Final = "/mutate"
VALIDATE_PATH: Final = "/validate"
POD_PATH: Final = "/mutate-pods"
BARRIER_POD_PATH: Final = "/mutate-barrier-pods"
TIMEOUT_SECONDS: Final = 5
EXEMPT_NAMESPACE: Final = "kube-system"
_ONLY_JOBSETS: Final = Gangs(sources=(JOBSET.name,))

Conditions = Sequence[tuple[str, str]]
"""(Name, CEL expression); all must hold for a request to be sent, evaluated in order."""

POD_RULE: Final[Json] = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
    "scope": "Namespaced",
}

_HAS_BARRIER: Final = [source.gated for source in TEMPLATE_SOURCES.values()]
START_GROUP_SELECTOR: Final[Json] = {
    "matchExpressions": [
        {"key": names.START_GROUP, "operator": "Exists"},
        {"key": names.GATED, "operator": "NotIn", "values": _HAS_BARRIER},
    ]
}
"""Pods of start groups, without those that got a barrier from their template."""
LWS_SELECTOR: Final[Json] = {"matchExpressions": [{"key": names.GATED, "operator": "In", "values": [LWS.gated]}]}
_POD_HOOKS: Final[dict[str, tuple[str, Json]]] = {
    LWS.name: (LWS_HOOK, LWS_SELECTOR),
    START_GROUP.name: (START_GROUP_HOOK, START_GROUP_SELECTOR),
}
"""Of each source whose pods are gated one by one: name of the webhook, and which pods it is sent."""
_IS_NO_MIRROR: Final = (
    "is-no-mirror",
    f"!has(object.metadata.annotations) || !('{names.MIRROR_POD}' in object.metadata.annotations)",
)

DEFAULT_SERVICE_PORT: Final = 443
"""That of a service reference without one, as in the API."""


@dataclass(frozen=True, slots=True)
class ServiceReference:
    namespace: str
    name: str
    port: int = DEFAULT_SERVICE_PORT


class HookOptions(TypedDict, total=False):
    """How the configurations are written. Exactly one of `url` ("https://host:port", no path) and `service`."""

    ca_bundle: str | None
    """PEM in base64; None leaves it to the manager of the certificate."""
    url: str | None
    service: ServiceReference | None
    own_namespace: str | None
    """Exempt like kube-system."""
    failure_policy: str
    timeout_seconds: int
    suffix: str
    """Appended to the configurations' names, so that one cluster can hold several installations."""


def rule(source: Source) -> Json:
    """The requests for the workloads of a source."""
    group, _, version = source.api_version.rpartition("/")
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [source.plural],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Namespaced",
    }


def _has_config(source: Source, which: str) -> str:
    """CEL: this version of the object has a config, as field or as annotation.

    No object that could be stored makes it fail: a spec may be missing or null, and the schema refuses any other type.
    """
    spec, notes = f"{which}.spec", f"{which}.metadata.annotations"
    field = f"(has({spec}) && {spec} != null && has({spec}.{names.CONFIG_FIELD})) || "
    return f"{field if source.has_config_field else ''}(has({notes}) && '{names.CONFIG}' in {notes})"


def _has_mark(which: str) -> str:
    """CEL: one of the pod templates of a LeaderWorkerSet has our label, maybe copied from another one."""
    group = ".".join((which, *GROUP_PATH))
    marks = (
        f"({_are_there(group, kind, 'metadata', 'labels')} && '{names.GATED}' in {group}.{kind}.metadata.labels)"
        for kind in (WORKER_TEMPLATE, LEADER_TEMPLATE)
    )
    return f"{_are_there(which, *GROUP_PATH)} && ({' || '.join(marks)})"


def _are_there(root: str, *keys: str) -> str:
    """CEL: no member on this way is missing or null."""
    places = [*accumulate(keys, lambda place, key: f"{place}.{key}", initial=root)][1:]
    return " && ".join(f"has({it}) && {it} != null" for it in places)


def _changes(holder: str, key: str) -> str:
    """CEL: the label or annotation is added, removed or changed."""
    new, old = (f"has({which}.metadata.{holder}) && '{key}' in {which}.metadata.{holder}" for which in _VERSIONS)
    now, before = (f"{which}.metadata.{holder}['{key}']" for which in _VERSIONS)
    return f"(({new}) != ({old}) || (({new}) && {now} != {before}))"


_VERSIONS: Final = ("object", "oldObject")
_SPEC_CHANGES: Final = "has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec)"


def match_conditions(source: Source) -> Conditions:
    """An object without a gate fails the first one."""
    new, old = (_has_config(source, which) for which in _VERSIONS)
    changes = [_changes("annotations", key) for key in names.OUR_JOBSET_ANNOTATIONS]
    gated = f"{new} || (oldObject != null && ({old}))"
    if source.marks_templates:
        gated += f" || ({_has_mark('object')})"
    elif not source.has_targets:
        changes.append(_changes("labels", names.GATED))  # it is its own template, so it carries our label itself
    return (
        ("has-a-gate", gated),
        ("is-not-being-deleted", "!has(object.metadata.deletionTimestamp)"),
        ("changes-what-matters", f"oldObject == null || {_SPEC_CHANGES} || {' || '.join(changes)}"),
    )


def pod_match_conditions(groups: Groups) -> Conditions:
    """A pod that names no group fails the first one.

    Every field is guarded by has(): an error in a condition would refuse the pod. podgroups.admission checks the same.
    Settings allow no character in keys and scheduler names that would need an escape in CEL.
    """
    owners = "object.metadata.ownerReferences"
    schedulers = ", ".join(f"'{it}'" for it in groups.scheduler_names)
    return (
        ("names-a-group", _names_a_group(groups.ways)),
        ("is-for-our-scheduler", f"!has(object.spec.schedulerName) || object.spec.schedulerName in [{schedulers}]"),
        ("is-not-bound", "!has(object.spec.nodeName) || object.spec.nodeName == ''"),
        _IS_NO_MIRROR,
        (
            "is-no-daemon",
            f"!has({owners}) || !{owners}.exists(it, it.kind == 'DaemonSet' && has(it.controller) && it.controller)",
        ),
        ("has-no-native-group", "!has(object.spec.schedulingGroup)"),
    )


def configurations(gangs: Gangs = _ONLY_JOBSETS, **options: Unpack[HookOptions]) -> tuple[Json, Json]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration, one webhook for each enabled source."""
    enabled = [source for source in WORKLOAD_SOURCES.values() if source.name in gangs.sources]
    mutating, validating = (
        [_hook(hook_name(hook, it), path, rule(it), match_conditions(it), options) for it in enabled]
        for hook, path in ((MUTATING_HOOK, MUTATE_PATH), (VALIDATING_HOOK, VALIDATE_PATH))
    )
    name = VALIDATING + options.get("suffix", "")
    return _mutating(MUTATING, mutating, options), configuration("ValidatingWebhookConfiguration", name, *validating)


def hook_name(hook: str, source: Source) -> str:
    """`mutate.jobset-gate.dev` for JobSets, `mutate-jobs.jobset-gate.dev` for Jobs: unique in a configuration."""
    return hook if source is JOBSET else hook.replace(".", f"-{source.plural}.", 1)


def pod_configuration(groups: Groups, **options: Unpack[HookOptions]) -> Json:
    """The MutatingWebhookConfiguration for pods of groups."""
    hook = _hook(POD_HOOK, POD_PATH, POD_RULE, pod_match_conditions(groups), options)
    return _mutating(names.POD_WEBHOOK, [hook], options)


def barrier_pod_configuration(gangs: Gangs, **options: Unpack[HookOptions]) -> Json:
    """The MutatingWebhookConfiguration for pods that are gated one by one, by its own failure policy.

    For an installation with such a source only. The object selectors send no other pod.
    """
    given: HookOptions = {**options, "failure_policy": gangs.pod_failure_policy}
    hooks = [
        _hook(hook, BARRIER_POD_PATH, POD_RULE, (_IS_NO_MIRROR,), given) | {"objectSelector": selector}
        for name, (hook, selector) in _POD_HOOKS.items()
        if name in gangs.sources
    ]
    return _mutating(names.BARRIER_POD_WEBHOOK, hooks, options)


def _mutating(name: str, hooks: Sequence[Json], options: HookOptions) -> Json:
    again = [hook | {"reinvocationPolicy": "IfNeeded"} for hook in hooks]
    return configuration("MutatingWebhookConfiguration", name + options.get("suffix", ""), *again)


def configuration(kind: str, name: str, *hooks: Json) -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {names.MANAGED_BY_LABEL: names.PROGRAM}},
        "webhooks": list(hooks),
    }


def _hook(name: str, path: str, requests: Json, conditions: Conditions, options: HookOptions) -> Json:
    own = options.get("own_namespace")
    exempt = list(dict.fromkeys(filter(None, (EXEMPT_NAMESPACE, own))))
    selector = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": exempt}
    return {
        "name": name,
        "clientConfig": _client_config(path, options),
        "admissionReviewVersions": ["v1"],
        "rules": [dict(requests)],
        "namespaceSelector": {"matchExpressions": [selector]},
        "matchConditions": [{"name": name, "expression": text} for name, text in conditions],
        "matchPolicy": "Equivalent",
        "failurePolicy": options.get("failure_policy", "Fail"),
        "sideEffects": "None",
        "timeoutSeconds": options.get("timeout_seconds", TIMEOUT_SECONDS),
    }


def _client_config(path: str, options: HookOptions) -> Json:
    service, ca_bundle = options.get("service"), options.get("ca_bundle")
    where: Json = (
        {"service": asdict(service) | {"path": path}}
        if service
        else {"url": f"{options.get('url')}".rstrip("/") + path}
    )
    return where if ca_bundle is None else {**where, "caBundle": ca_bundle}


def _names_a_group(formats: Collection[Format]) -> str:
    """CEL: the pod has a label or annotation of one of these formats, whatever its value."""
    holders = {"labels": "object.metadata.labels", "annotations": "object.metadata.annotations"}
    parts = []
    for holder, place in holders.items():
        keys = [key for each, (where, key) in NAME_KEYS.items() if where == holder and each in formats]
        if keys:
            named = " || ".join(f"'{key}' in {place}" for key in keys)
            parts.append(f"(has({place}) && ({named}))")
    return " || ".join(parts)
