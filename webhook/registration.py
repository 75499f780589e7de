"""The webhook configurations that tell an API server which requests to send to the door, and which never (A3)."""

from dataclasses import dataclass
from typing import Any, Final

from jobset_gate import names

MUTATING: Final = "zz-jobset-gate"
"""API servers call mutating webhooks in the order of their configurations' names. Ours goes last: it then sees the
suspension that Kueue's webhook decides upon, which starts a new epoch (A5), and the init containers that others add."""
VALIDATING: Final = "jobset-gate"
MUTATING_HOOK: Final = "mutate.jobset-gate.dev"
VALIDATING_HOOK: Final = "validate.jobset-gate.dev"
MUTATE_PATH: Final = "/mutate"
VALIDATE_PATH: Final = "/validate"
TIMEOUT_SECONDS: Final = 5
EXEMPT_NAMESPACE: Final = "kube-system"


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """Where the API server finds the door inside its cluster."""

    namespace: str
    name: str
    port: int = 443


Json = dict[str, Any]


def _has_config(which: str) -> str:
    """CEL: this version of the object carries a config, as field or as annotation.

    Errs on no object that could be stored: a spec may be missing or null, and anything else than an object is refused
    by its schema.
    """
    spec, notes = f"{which}.spec", f"{which}.metadata.annotations"
    return (
        f"(has({spec}) && {spec} != null && has({spec}.{names.CONFIG_FIELD}))"
        f" || (has({notes}) && '{names.CONFIG}' in {notes})"
    )


def _annotation_changes(key: str) -> str:
    """CEL: an annotation of ours is added, removed or changed between the two versions of the object."""
    new, old = (f"has({which}.metadata.annotations) && '{key}' in {which}.metadata.annotations" for which in _VERSIONS)
    return (
        f"(({new}) != ({old})"
        f" || (({new}) && object.metadata.annotations['{key}'] != oldObject.metadata.annotations['{key}']))"
    )


_VERSIONS: Final = ("object", "oldObject")
_SPEC_CHANGES: Final = "has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec)"

MATCH_CONDITIONS: Final = (
    ("has-a-gate", f"{_has_config('object')} || (oldObject != null && ({_has_config('oldObject')}))"),
    ("is-not-being-deleted", "!has(object.metadata.deletionTimestamp)"),
    (
        "changes-what-matters",
        f"oldObject == null || {_SPEC_CHANGES} || "
        + " || ".join(_annotation_changes(key) for key in names.OUR_JOBSET_ANNOTATIONS),
    ),
)
"""All must hold for a request to be sent. Told from the first to the last: a stranger's JobSet ends at the first."""


def configurations(
    *,
    ca_bundle: str | None = None,
    url: str | None = None,
    service: ServiceReference | None = None,
    own_namespace: str | None = None,
    failure_policy: str = "Fail",
    timeout_seconds: int = TIMEOUT_SECONDS,
    suffix: str = "",
) -> tuple[Json, Json]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration for one door.

    `ca_bundle`: PEM in base64, or None to leave it out (whoever manages the certificate fills it in).
    `url` ("https://host:port", no path) or `service`: exactly one. `own_namespace`: exempt beside kube-system.
    `suffix` is appended to both names, so that several doors can be registered in one cluster.
    """

    def hook(name: str, path: str) -> Json:
        return {
            "name": name,
            "clientConfig": client_config(path, url=url, service=service, ca_bundle=ca_bundle),
            "admissionReviewVersions": ["v1"],
            "rules": [
                {
                    "apiGroups": [names.JOBSET_GROUP],
                    "apiVersions": [names.JOBSET_VERSION],
                    "resources": ["jobsets"],
                    "operations": ["CREATE", "UPDATE"],
                    "scope": "Namespaced",
                }
            ],
            "namespaceSelector": other_namespaces(own_namespace),
            "matchConditions": [{"name": name, "expression": text} for name, text in MATCH_CONDITIONS],
            "matchPolicy": "Equivalent",
            "failurePolicy": failure_policy,
            "sideEffects": "None",
            "timeoutSeconds": timeout_seconds,
        }

    mutating = hook(MUTATING_HOOK, MUTATE_PATH) | {"reinvocationPolicy": "IfNeeded"}
    return (
        configuration("MutatingWebhookConfiguration", MUTATING + suffix, mutating),
        configuration("ValidatingWebhookConfiguration", VALIDATING + suffix, hook(VALIDATING_HOOK, VALIDATE_PATH)),
    )


def client_config(path: str, *, url: str | None, service: ServiceReference | None, ca_bundle: str | None) -> Json:
    """Where the door answers at this path, and whose certificate it shows. Raises ValueError unless one is given."""
    if (url is None) == (service is None):
        msg = "give either url or service"
        raise ValueError(msg)
    where: Json = {"url": url.rstrip("/") + path} if url is not None else {"service": _reference(service, path)}
    return where if ca_bundle is None else {**where, "caBundle": ca_bundle}


def configuration(kind: str, name: str, hook: Json) -> Json:
    """The object of that kind and name with this one webhook in it."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {names.MANAGED_BY_LABEL: names.PROGRAM}},
        "webhooks": [hook],
    }


def other_namespaces(own: str | None) -> Json:
    """The selector of all namespaces but the system's and our own."""
    exempt = [EXEMPT_NAMESPACE, *([own] if own and own != EXEMPT_NAMESPACE else [])]
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": exempt}]}


def _reference(service: ServiceReference | None, path: str) -> Json:
    assert service is not None  # noqa: S101 - client_config() has checked it; this tells the type checker.
    return {"namespace": service.namespace, "name": service.name, "port": service.port, "path": path}
