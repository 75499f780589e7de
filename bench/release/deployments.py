"""What the measurement puts into the cluster in addition to its gangs: one controller for each way, side by side.

Each looks after its own namespace only, has the same program and the same rights, asks for a little CPU and has no
limit. They run on a node without gangs where there is one. Idle ones cost next to nothing.
"""

from __future__ import annotations

from typing import Any, Final

from bench.release.gang import HOSTNAME
from bench.release.methods import METHODS, PREFIX, ReleaseMethod
from jobset_gate import names

Json = dict[str, Any]

SYSTEM: Final = PREFIX
"""The namespace of the controllers."""
STREAM_PORT: Final = 8082
HEALTH_PORT: Final = 8080
USER: Final = 65532
_LABEL: Final = "app"


def stream_url() -> str:
    """Under which barriers find the controller of the stream."""
    return f"http://{PREFIX}-stream.{SYSTEM}.svc:{STREAM_PORT}"


def manifests(image: str, node: str) -> list[Json]:
    """Everything, in the order in which it is to be made."""
    methods = [way for way in METHODS if way.has_controller]
    return [
        *(_object("v1", "Namespace", name) for name in (SYSTEM, *(way.namespace for way in METHODS))),
        _object("v1", "ServiceAccount", PREFIX, SYSTEM),
        _object("rbac.authorization.k8s.io/v1", "ClusterRole", PREFIX, rules=_rules()),
        _binding(),
        *(deployment(way, image, node) for way in methods),
        *(_service(way) for way in methods if way.stream),
    ]


def deployment(way: ReleaseMethod, image: str, node: str) -> Json:
    """The controller of one way."""
    labels = {_LABEL: way.namespace}
    container = {
        "name": "controller",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments(way),
        "ports": [{"name": "health", "containerPort": HEALTH_PORT}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    pod = {
        "serviceAccountName": PREFIX,
        "nodeSelector": {HOSTNAME: node},
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER},
        "containers": [container],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return _object("apps/v1", "Deployment", way.namespace, SYSTEM, spec=spec)


def arguments(way: ReleaseMethod) -> list[str]:
    """Of `jobset-gate`: what is switched off is all in which the ways' controllers differ."""
    common = ["controller", "--namespace", way.namespace, "--watch-namespace", way.namespace, "--no-extend-crd"]
    listen = ["--host", "0.0.0.0", "--port", str(HEALTH_PORT)]  # noqa: S104 - in a pod
    patches = [] if way.patches else ["--patch-concurrency", "0"]
    stream = ["--stream-host", "0.0.0.0", "--stream-port", str(STREAM_PORT)] if way.stream else []  # noqa: S104
    return [*common, *listen, *patches, *stream]


def _service(way: ReleaseMethod) -> Json:
    spec = {"selector": {_LABEL: way.namespace}, "ports": [{"name": "stream", "port": STREAM_PORT}]}
    return _object("v1", "Service", way.namespace, SYSTEM, spec=spec)


def _binding() -> Json:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PREFIX}
    subject = {"kind": "ServiceAccount", "name": PREFIX, "namespace": SYSTEM}
    return _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", PREFIX, roleRef=role, subjects=[subject])


def _rules() -> list[Json]:
    reads = ["get", "list", "watch"]

    def rule(group: str, resources: list[str], verbs: list[str]) -> Json:
        return {"apiGroups": [group], "resources": resources, "verbs": verbs}

    return [
        rule(names.JOBSET_GROUP, ["jobsets"], reads),
        rule(names.JOBSET_GROUP, ["jobsets/status"], ["patch"]),
        rule("batch", ["jobs"], reads),
        rule("", ["pods"], [*reads, "patch"]),
        rule("", ["configmaps"], [*reads, "create", "update", "delete"]),
        rule("", ["events"], [*reads, "create"]),
        rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], reads),
    ]


def _object(version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> Json:
    meta = {"name": name, "labels": {names.MANAGED_BY_LABEL: PREFIX}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": meta if namespace is None else {**meta, "namespace": namespace},
        **fields,
    }
