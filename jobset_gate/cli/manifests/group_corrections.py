"""What an API server refuses of a group's manifests as people write them, and the form that it takes (G1).

The designs' own texts print lists and numbers as annotations, namespaces with capitals, kinds without an API group, and
bits of metadata without an object. Each is reported and corrected.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.objects.field_error import CauseType, FieldError, child_path
from jobset_gate.objects.template import templates_of
from jobset_gate.objects.unstructured import Json, Path, as_map, as_text, format_path, nested
from jobset_gate.podgroups import fields, formats
from jobset_gate.podgroups.model import RawMetadata

_POD_GROUP_NUMBERS: Final = ("minMember", "minMembers", "scheduleTimeoutSeconds")
_DIGITS: Final = re.compile(r"[0-9]{1,10}")
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]+")


def correct_manifest(given: Json) -> "CorrectedManifest":
    """A copy in the form that an API server takes; unchanged without problems."""
    made = CorrectedManifest(copy.deepcopy(given))
    made.kind()
    is_pod_group = nested(made.manifest, "kind") == names.POD_GROUP
    if is_pod_group:
        made.api_version()
        made.numbers()
    made.metadata()
    for path, holder in pod_templates(made.manifest):
        made.texts(holder, format_path((*path, "metadata")))
    if is_pod_group:
        made.texts(made.manifest, "metadata")
    return made


def names_group(given: Any) -> bool:
    """Whether a manifest has to do with a group: a PodGroup, something that pods are made of, or a bit of metadata."""
    kind, version = nested(given, "kind"), nested(given, "apiVersion")
    if kind == names.POD_GROUP:
        return version == names.POD_GROUP_VERSION or formats.api_group(kind, version) is not None
    metas = [*pod_metadata(given)]
    if isinstance(given, dict) and kind is None and version is None:
        metas.append(RawMetadata.of_object(given, ""))
    return any(formats.parse_memberships(meta) or formats.minimum_without_name(meta) for meta in metas)


class CorrectedManifest:
    """One manifest, corrected step by step; every change is reported as a problem of what it was before."""

    def __init__(self, manifest: Json) -> None:
        self.manifest = manifest
        self.problems: list[FieldError] = []

    def kind(self) -> None:
        """Metadata alone that names a group: a pod's, since its keys are those of pods."""
        if "kind" in self.manifest or "apiVersion" in self.manifest:
            return
        self._tell(
            "kind", None, "must be given, with apiVersion: keys of a group alone are no object, here they are a Pod's"
        )
        self.manifest = {"apiVersion": "v1", "kind": "Pod", **self.manifest}
        if nested(self.manifest, "spec", "containers") is None:
            self._tell("spec.containers", None, "must be given: what the pods run is not known, so it is not put in")

    def api_version(self) -> None:
        """A PodGroup without an API group: KEP-24's by its field, else Koordinator's."""
        said = self.manifest.get("apiVersion")
        if said != names.POD_GROUP_VERSION:
            return
        kep24 = "minMembers" in as_map(self.manifest.get("spec"))
        right = f"{names.KEP24_GROUP if kep24 else names.SIGS_GROUP}/{said}"
        self._tell("apiVersion", said, f"must name the API group, too: {right}", CauseType.NOT_SUPPORTED)
        self.manifest["apiVersion"] = right

    def numbers(self) -> None:
        """Numbers of a PodGroup's spec in quotes."""
        spec = as_map(self.manifest.get("spec"))
        for key in _POD_GROUP_NUMBERS:
            said = spec.get(key)
            if isinstance(said, str) and _DIGITS.fullmatch(said):
                self._tell(f"spec.{key}", said, "must be a number: take the quotes away")
                spec[key] = int(said)

    def metadata(self) -> None:
        """Names that no object can have, or none."""
        meta = as_map(self.manifest.get("metadata"))
        for key, fits in (("namespace", fields.is_dns_label), ("name", fields.is_name)):
            said = meta.get(key)
            right = _lower(as_text(said))
            if isinstance(said, str) and not fits(said) and fits(right):
                self._tell(f"metadata.{key}", said, f"must be in lower case, without _: {right}")
                meta[key] = right
        if meta and not meta.get("name") and not meta.get("generateName"):
            if self.manifest.get("kind") == names.POD_GROUP:
                self._tell("metadata.name", None, "must be given: it is what the pods of the group name")
                return
            gang = _lower(as_text(as_map(meta.get("annotations")).get(names.KOORDINATOR_NAME))) or "member"
            self._tell("metadata.name", None, f"must be given, or metadata.generateName, such as {gang}-")
            meta["generateName"] = f"{gang}-"

    def texts(self, holder: Json, path: str) -> None:
        """Labels and annotations that are no strings; namespaces with capitals in a list of gangs."""
        for kind in ("labels", "annotations"):
            texts = as_map(as_map(holder.get("metadata")).get(kind))
            for key, said in list(texts.items()):
                place = child_path(child_path(path, kind), key)
                right = said if isinstance(said, str) else _text(said)
                if right != said:
                    self._tell(place, said, "must be a string: put it in quotes")
                if key == names.KOORDINATOR_GANGS:
                    right = self._gangs(place, right)
                texts[key] = right

    def _gangs(self, place: str, said: str) -> str:
        try:
            listed = msgspec.json.decode(said, type=list[str])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return said
        right = [_lower(namespace) + slash + name for namespace, slash, name in (it.partition("/") for it in listed)]
        if right == listed:
            return said
        self._tell(place, said, f"must name namespaces in lower case, without _: {', '.join(right)}")
        return msgspec.json.encode(right).decode()

    def _tell(self, path: str, value: Any, message: str, fault: CauseType = CauseType.INVALID) -> None:
        self.problems.append(FieldError(path, value, message, fault))


def _text(value: Any) -> str:
    """A value as a string: a list as JSON, a number by its digits, null as an empty string."""
    return "" if value is None else msgspec.json.encode(value).decode()


def _lower(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-.")


_TEMPLATE: Final[Path] = ("spec", "template")
_HOLDERS: Final[dict[tuple[str, str], Path]] = {
    ("v1", "Pod"): (),
    ("v1", "PodTemplate"): ("template",),
    ("v1", "ReplicationController"): _TEMPLATE,
    ("apps/v1", "Deployment"): _TEMPLATE,
    ("apps/v1", "ReplicaSet"): _TEMPLATE,
    ("apps/v1", "StatefulSet"): _TEMPLATE,
    ("batch/v1", "Job"): _TEMPLATE,
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind holds its pods' metadata. No DaemonSet: its pods are never taken (G2)."""


def pod_templates(obj: Any) -> list[tuple[Path, Json]]:
    """The pods or templates of pods of an object, each with its place in it; [] for every other kind."""
    kind = (nested(obj, "apiVersion"), nested(obj, "kind"))
    if kind == (names.JOBSET_API_VERSION, "JobSet"):
        return [(job.pod_path, job.pod_template) for job in templates_of(obj)]
    if not all(isinstance(it, str) for it in kind) or kind not in _HOLDERS:
        return []
    path = _HOLDERS[kind]
    return [(path, as_map(nested(obj, *(str(it) for it in path))))]


def pod_metadata(obj: Any) -> Iterator[RawMetadata]:
    """The metadata that the pods of an object have or will have."""
    namespace = as_text(nested(obj, "metadata", "namespace"))
    for path, holder in pod_templates(obj):
        yield RawMetadata.of_object(holder, namespace, format_path((*path, "metadata")))
