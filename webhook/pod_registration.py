"""The webhook configuration for pods of groups, which sends no pod that names no group (G2).

It is one of its own, so that an uninstallation can take it away before anything else. All that decides whether a pod is
ours stands in its match conditions: an outage of ours refuses no other pod. `jobset_gate.podgroups.admission` says it
again for whatever comes in all the same.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final

from jobset_gate import names
from jobset_gate.podgroups.formats import NAME_KEYS
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups
from webhook.registration import TIMEOUT_SECONDS, ServiceReference, client_config, configuration, other_namespaces

POD_HOOK: Final = "pods.jobset-gate.dev"
POD_PATH: Final = "/mutate-pods"
RULE: Final = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
    "scope": "Namespaced",
}

Json = dict[str, Any]


def match_conditions(groups: Groups) -> tuple[tuple[str, str], ...]:
    """(Name, CEL), all of which must hold for a pod to be sent. A pod that names no group fails the first.

    Every field is asked for with has() first: an error in a condition would refuse the pod in our name.
    """
    notes, owners = "object.metadata.annotations", "object.metadata.ownerReferences"
    return (
        ("names-a-group", _names_a_group(groups.ways)),
        (
            "is-for-our-scheduler",
            f"!has(object.spec.schedulerName) || object.spec.schedulerName in [{_listed(groups.scheduler_names)}]",
        ),
        ("is-not-bound", "!has(object.spec.nodeName) || object.spec.nodeName == ''"),
        ("is-no-mirror", f"!has({notes}) || !({_quoted(names.MIRROR_POD)} in {notes})"),
        (
            "is-no-daemon",
            f"!has({owners}) || !{owners}.exists(it, it.kind == 'DaemonSet' && has(it.controller) && it.controller)",
        ),
        ("has-no-native-group", "!has(object.spec.schedulingGroup)"),
    )


def pod_configuration(
    groups: Groups,
    *,
    ca_bundle: str | None = None,
    url: str | None = None,
    service: ServiceReference | None = None,
    own_namespace: str | None = None,
    failure_policy: str = "Fail",
    timeout_seconds: int = TIMEOUT_SECONDS,
    suffix: str = "",
) -> Json:
    """The MutatingWebhookConfiguration for pods; arguments as for the configurations for JobSets."""
    hook = {
        "name": POD_HOOK,
        "clientConfig": client_config(POD_PATH, url=url, service=service, ca_bundle=ca_bundle),
        "admissionReviewVersions": ["v1"],
        "rules": [RULE],
        "namespaceSelector": other_namespaces(own_namespace),
        "matchConditions": [{"name": name, "expression": text} for name, text in match_conditions(groups)],
        "matchPolicy": "Equivalent",
        "failurePolicy": failure_policy,
        "sideEffects": "None",
        "timeoutSeconds": timeout_seconds,
        "reinvocationPolicy": "IfNeeded",
    }
    return configuration("MutatingWebhookConfiguration", names.POD_WEBHOOK + suffix, hook)


def _names_a_group(ways: Collection[Format]) -> str:
    """CEL: the pod has a key of one of these ways, whatever stands in it."""
    holders = {"labels": "object.metadata.labels", "annotations": "object.metadata.annotations"}
    parts = []
    for holder, place in holders.items():
        keys = [key for way, (where, key) in NAME_KEYS.items() if where == holder and way in ways]
        if keys:
            told = " || ".join(f"{_quoted(key)} in {place}" for key in keys)
            parts.append(f"(has({place}) && ({told}))")
    return " || ".join(parts)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A CEL string. Keys and names of schedulers hold nothing that means anything in one; settings see to that."""
    return f"'{word}'"
