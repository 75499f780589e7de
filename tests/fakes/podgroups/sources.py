"""Pods and PodGroups as the designs' users write them, and the groups that come of them."""

from typing import Any

from jobset_gate.podgroups import formats, merge
from jobset_gate.podgroups import formats as pods
from jobset_gate.podgroups.model import Membership, MemberSource, MergedGroup, PodGroupKey, PodGroupSource, RawMetadata

Json = dict[str, Any]

KEP24 = "scheduling.k8s.io/group-name"
PLUGINS = "scheduling.x-k8s.io/pod-group"
ALIBABA = "pod-group.scheduling.sigs.k8s.io/name"
ALIBABA_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"
KOORDINATOR = "pod-group.scheduling.sigs.k8s.io"
GANG = "gang.scheduling.koordinator.sh/"


def alibaba(name: str = "g", minimum: str | None = "3") -> Json:
    return {ALIBABA: name} | ({} if minimum is None else {ALIBABA_MINIMUM: minimum})


def koordinator(name: str | None = "g", **said: str) -> Json:
    """Annotations of a pod; `min_available="3"` is `min-available: "3"`."""
    named = {} if name is None else {f"{GANG}name": name}
    return named | {GANG + key.replace("_", "-"): value for key, value in said.items()}


def meta(*, labels: Json | None = None, notes: Json | None = None, namespace: str = "team") -> RawMetadata:
    return RawMetadata(namespace=namespace, labels=labels or {}, annotations=notes or {})


def claim(*, labels: Json | None = None, notes: Json | None = None, namespace: str = "team") -> Membership:
    """What a pod says that names a group."""
    said = pods.parse_membership(meta(labels=labels, notes=notes, namespace=namespace))
    assert said is not None
    return said


def member(pod: str, **said: Any) -> MemberSource:
    return MemberSource(pod=pod, membership=claim(**said))


def pod_group(api: str, name: str = "g", *, notes: Json | None = None, namespace: str = "team", **spec: Any) -> Json:
    """A PodGroup of an API group, of the version that is known or of the one given with it."""
    version = api if "/" in api else f"{api}/v1alpha1"
    made: Json = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name, "namespace": namespace}}
    if notes is not None:
        made["metadata"]["annotations"] = notes
    return made | {"spec": spec}


def read_pod_group_source(api: str, name: str = "g", **more: Any) -> PodGroupSource:
    read = formats.parse_pod_group(pod_group(api, name, **more))
    assert read is not None
    return read


def group(*members: MemberSource, pod_groups: tuple[PodGroupSource, ...] = ()) -> MergedGroup:
    """The group of the first member."""
    return merge.merge_group(members[0].membership.key, members, pod_groups)


def gang(
    name: str, gangs: str | None = None, *, namespace: str = "team", minimum: int = 2, pods: int = 2
) -> MergedGroup:
    """A gang of Koordinator's annotations, with so many pods and such a list of gangs."""
    notes = koordinator(name, min_available=str(minimum)) | ({} if gangs is None else {f"{GANG}groups": gangs})
    return group(*(member(f"{name}-{number}", notes=notes, namespace=namespace) for number in range(pods)))


def groups_by_key(*groups: MergedGroup) -> dict[PodGroupKey, MergedGroup]:
    return {each.key: each for each in groups}


def problem_lines(problems: Any) -> list[str]:
    return [str(it) for it in problems]
