"""What users of pod groups write, and what can be read off their pods."""

from collections.abc import Mapping, Sequence
from typing import Any

from jobset_gate import names
from jobset_gate.podgroups.formats import NAME_KEYS
from jobset_gate.podgroups.model import FLAVOR_OF, Format, PodGroupKey, group_label

Json = dict[str, Any]

MINIMUM_ON_POD = {
    Format.ALIBABA: ("labels", names.ALIBABA_MINIMUM),
    Format.KOORDINATOR_ANNOTATIONS: ("annotations", names.KOORDINATOR_MINIMUM),
}
"""Ways whose pods say the minimum themselves."""
API_GROUP = {
    Format.SCHEDULER_PLUGINS: names.PLUGINS_GROUP,
    Format.KOORDINATOR_POD_GROUP: names.SIGS_GROUP,
    Format.KEP_24: names.KEP24_GROUP,
}
"""Of the PodGroups of the ways that have one."""


def membership_metadata(
    group: str, way: Format = Format.SCHEDULER_PLUGINS, minimum: int | None = None, **notes: str
) -> Json:
    """The metadata by which a pod or a template names its group; `notes` are Koordinator's other keys (`mode=`)."""
    meta: Json = {"labels": {}, "annotations": {}}
    where, key = NAME_KEYS[way]
    meta[where][key] = group
    if minimum is not None:
        where, key = MINIMUM_ON_POD[way]
        meta[where][key] = str(minimum)
    meta["annotations"] |= {names.KOORDINATOR_PREFIX + key.replace("_", "-"): value for key, value in notes.items()}
    return meta


def pod(
    name: str,
    group: str = "",
    way: Format = Format.SCHEDULER_PLUGINS,
    minimum: int | None = None,
    *,
    cpu: str = "1",
    gates: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A pod of that group, or of none. `gates` are those of others, `spec` further fields of its spec."""
    meta = {"name": name, **_membership(group, way, minimum, **(notes or {}))}
    held = {"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template_spec(cpu, **held, **spec)}


def _membership(group: str, way: Format, minimum: int | None, **notes: str) -> Json:
    return membership_metadata(group, way, minimum, **notes) if group else {"labels": {}, "annotations": {}}


def template_spec(cpu: str = "1", **spec: Any) -> Json:
    """The spec of a pod with one container that asks for so much."""
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}


def job(
    name: str,
    group: str,
    pods: int,
    way: Format = Format.SCHEDULER_PLUGINS,
    minimum: int | None = None,
    *,
    template: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """An Indexed Job whose pods are of that group, or of none."""
    body = {"metadata": _membership(group, way, minimum), "spec": template_spec(**(template or {}))}
    wanted = {"completionMode": "Indexed", "parallelism": pods, "completions": pods, "backoffLimit": 0, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {**wanted, "template": body}}


def owner(kind: str, like: Json, **spec: Any) -> Json:
    """Another controller with the name and the template of a Job, and as many replicas as that has pods."""
    template, labels = like["spec"]["template"], {"app": like["metadata"]["name"]}
    template["metadata"]["labels"] |= labels
    template["spec"]["restartPolicy"] = "Always"
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    wanted = {"replicas": like["spec"]["parallelism"], "selector": selector, "template": template, **spec}
    if kind == "StatefulSet":
        wanted["serviceName"] = labels["app"]
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": like["metadata"], "spec": wanted}


def pod_group(
    name: str,
    minimum: int | None,
    way: Format = Format.SCHEDULER_PLUGINS,
    *,
    wait: int | None = None,
    resources: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    kep24 = way is Format.KEP_24
    spec: Json = {} if minimum is None else {"minMembers" if kep24 else "minMember": minimum}
    if resources:
        spec["totalResources" if kep24 else "minResources"] = dict(resources)
    if wait is not None:
        spec["scheduleTimeoutSeconds"] = wait
    version = f"{API_GROUP[way]}/{names.POD_GROUP_VERSION}"
    meta = {"name": name, "annotations": dict(annotations or {})}
    return {"apiVersion": version, "kind": names.POD_GROUP, "metadata": meta, "spec": spec}


def held(manifest: Json, namespace: str, group: str, way: Format = Format.SCHEDULER_PLUGINS) -> Json:
    """A pod as the webhook would have made it: for stages without one."""
    meta, spec = manifest["metadata"], manifest["spec"]
    name = group_label(PodGroupKey(flavor=FLAVOR_OF[way], namespace=namespace, name=group))
    gates = [*spec.get("schedulingGates", ()), {"name": names.POD_GROUP_GATE}]
    labels = {**meta.get("labels", {}), names.POD_GROUP_LABEL: name}
    return {**manifest, "metadata": {**meta, "labels": labels}, "spec": {**spec, "schedulingGates": gates}}


# --- Facts about pods ------------------------------------------------------------------------------------------------


def gated(one: Json) -> bool:
    return any(gate["name"] == names.POD_GROUP_GATE for gate in one["spec"].get("schedulingGates") or ())


def bound(one: Json) -> bool:
    return bool(one["spec"].get("nodeName"))


def runs(one: Json) -> bool:
    return bool((one.get("status") or {}).get("phase") == "Running")


def opened(one: Json) -> int:
    """In which generation it was opened; 0: never."""
    return int((one["metadata"].get("annotations") or {}).get(names.POD_GROUP_OPENED, "0").split()[0])


def of_group(pods: Sequence[Json], group: str, way: Format = Format.SCHEDULER_PLUGINS) -> list[Json]:
    where, key = NAME_KEYS[way]
    return [one for one in pods if (one["metadata"].get(where) or {}).get(key) == group]


def record_text(home: Json) -> str:
    """The record that stands on a PodGroup or a ConfigMap, "" if none does."""
    notes, data = home["metadata"].get("annotations") or {}, home.get("data") or {}
    return str(notes.get(names.POD_GROUP_RECORD) or data.get(names.KEY_RECORD) or "")
