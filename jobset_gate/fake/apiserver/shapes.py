"""How the lists and maps of an object merge: what server-side apply needs to know of a schema, and no more.

Facts of the built-in kinds as Kubernetes publishes them in its OpenAPI (x-kubernetes-list-type and so on).
What is not named here is the default: a struct merges by field, a list is atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """The merge rule of one place in an object.

    fields: the declared fields of a struct. items: the shape of a map's values or a list's items.
    keys: the list is a map by these keys; `key_defaults` stand in for missing ones. a_set: a list that is a set.
    atomic: one value, owned as a whole. open: the keys of the mapping are data, not declared fields.
    always: a built-in struct that exists even when empty, so nobody owns its mere existence.
    """

    fields: Mapping[str, Shape] = field(default_factory=dict)
    items: Shape | None = None
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=dict)
    a_set: bool = False
    atomic: bool = False
    open: bool = False
    always: bool = False

    def at(self, name: str) -> Shape:
        """The shape under a field or map key."""
        return self.fields.get(name) or self.items or (DEDUCED if self.open else GRANULAR)

    def item(self) -> Shape:
        """The shape of a list's items."""
        return self.items or (DEDUCED if self.open else GRANULAR)

    def declares(self, name: str) -> bool:
        return name in self.fields or not self.open


#: A built-in struct without anything special in it.
GRANULAR = Shape()
#: Content without a schema: keys are data, lists atomic.
DEDUCED = Shape(open=True)
MAP = Shape(open=True)
ATOMIC = Shape(atomic=True)
SET = Shape(a_set=True)


def struct(**fields: Shape) -> Shape:
    return Shape(fields=fields)


def always(shape: Shape) -> Shape:
    return replace(shape, always=True)


def by(*keys: str, items: Shape = GRANULAR, **key_defaults: Any) -> Shape:
    """A list that is a map by `keys`."""
    return Shape(items=items, keys=keys, key_defaults=key_defaults)


OBJECT_META = always(struct(labels=MAP, annotations=MAP, finalizers=SET, ownerReferences=by("uid")))
_CONDITIONS = by("type")
_SELECTOR = Shape(atomic=True)
_RESOURCES = struct(limits=MAP, requests=MAP, claims=by("name"))
_CONTAINER = struct(
    env=by("name", items=struct(valueFrom=struct(configMapKeyRef=ATOMIC, fieldRef=ATOMIC, secretKeyRef=ATOMIC))),
    ports=by("containerPort", "protocol", protocol="TCP"),
    volumeMounts=by("mountPath"),
    volumeDevices=by("devicePath"),
    resources=_RESOURCES,
)
_VOLUME = struct(
    configMap=struct(items=ATOMIC),
    downwardAPI=struct(items=ATOMIC),
    projected=struct(sources=ATOMIC),
)
POD_SPEC = struct(
    containers=always(by("name", items=_CONTAINER)),
    initContainers=by("name", items=_CONTAINER),
    ephemeralContainers=by("name", items=_CONTAINER),
    volumes=by("name", items=_VOLUME),
    imagePullSecrets=by("name"),
    hostAliases=by("ip"),
    topologySpreadConstraints=by("topologyKey", "whenUnsatisfiable"),
    schedulingGates=by("name"),
    resourceClaims=by("name"),
    nodeSelector=Shape(atomic=True),
    overhead=MAP,
)
_TEMPLATE = always(struct(metadata=OBJECT_META, spec=always(POD_SPEC)))
_IP = by("ip")
_POD_STATUS = struct(
    conditions=_CONDITIONS,
    podIPs=_IP,
    hostIPs=ATOMIC,
    resourceClaimStatuses=by("name"),
)
_JOB_SPEC = struct(selector=_SELECTOR, template=_TEMPLATE)
_WEBHOOKS = struct(
    webhooks=by("name", items=struct(matchConditions=by("name"), namespaceSelector=_SELECTOR, objectSelector=_SELECTOR))
)
_WORKLOAD = struct(spec=struct(selector=_SELECTOR, template=_TEMPLATE), status=struct(conditions=_CONDITIONS))

_BUILTIN: dict[tuple[str, str], Shape] = {
    ("", "Pod"): struct(spec=POD_SPEC, status=_POD_STATUS),
    ("", "ConfigMap"): struct(data=MAP, binaryData=MAP),
    ("", "Secret"): struct(data=MAP, stringData=MAP),
    ("", "Service"): struct(
        spec=struct(ports=by("port", "protocol", protocol="TCP"), selector=Shape(atomic=True)),
        status=struct(conditions=_CONDITIONS),
    ),
    ("", "ServiceAccount"): struct(secrets=by("name"), imagePullSecrets=ATOMIC),
    ("", "Namespace"): struct(status=struct(conditions=_CONDITIONS)),
    ("", "Node"): struct(
        spec=struct(podCIDRs=SET),
        status=struct(conditions=_CONDITIONS, addresses=by("type"), allocatable=MAP, capacity=MAP),
    ),
    ("", "Event"): struct(involvedObject=ATOMIC),
    ("", "ResourceQuota"): struct(spec=struct(hard=MAP), status=struct(hard=MAP, used=MAP)),
    # A Job's status.conditions really are an atomic list.
    ("batch", "Job"): struct(
        spec=_JOB_SPEC,
        status=struct(uncountedTerminatedPods=struct(failed=SET, succeeded=SET)),
    ),
    ("batch", "CronJob"): struct(spec=struct(jobTemplate=always(struct(metadata=OBJECT_META, spec=always(_JOB_SPEC))))),
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "StatefulSet"): _WORKLOAD,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("policy", "PodDisruptionBudget"): struct(spec=struct(selector=_SELECTOR), status=struct(conditions=_CONDITIONS)),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): struct(status=struct(conditions=_CONDITIONS)),
}


def builtin_shape(group: str, kind: str) -> Shape:
    """The shape of a built-in kind's whole object. Its spec and status exist even when empty."""
    shape = _BUILTIN.get((group, kind), GRANULAR)
    sides = {name: always(shape.at(name)) for name in ("spec", "status")}
    return with_metadata(struct(**{**shape.fields, **sides}))


def with_metadata(shape: Shape) -> Shape:
    return Shape(fields={**shape.fields, "metadata": OBJECT_META}, open=shape.open)
