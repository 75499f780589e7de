"""A PodGroup of any of the three kinds to what it says, and what another version of it is told (G1)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.objects.field_error import CauseType, FieldError
from jobset_gate.objects.unstructured import Json, nested
from jobset_gate.podgroups import format_kep24, format_koordinator_podgroup, format_scheduler_plugins, formats
from jobset_gate.podgroups.model import GroupSpec, PodGroupSource, RawMetadata

ParsedSpec = tuple[GroupSpec, tuple[FieldError, ...]]

SPEC_PARSERS: Final[Mapping[str, Callable[[Json], ParsedSpec]]] = MappingProxyType(
    {
        names.KEP24_GROUP: format_kep24.kep24_spec,
        names.PLUGINS_GROUP: format_scheduler_plugins.plugins_spec,
        names.SIGS_GROUP: format_scheduler_plugins.plugins_spec,
    }
)
"""The API groups that we know a PodGroup of. Volcano's and the native one are others' business."""

KNOWN_API_VERSIONS: Final = tuple(f"{group}/{names.POD_GROUP_VERSION}" for group in SPEC_PARSERS)


def api_group(kind: object, api_version: object) -> str | None:
    """The API group of a PodGroup of ours, whatever its version; None for every other object."""
    if kind != names.POD_GROUP or not isinstance(api_version, str):
        return None
    group = api_version.rpartition("/")[0]
    return group if group in SPEC_PARSERS else None


def parse_pod_group(pod_group: Json) -> PodGroupSource | None:
    """What a PodGroup says; None for an object of another kind or group.

    One of another version is a PodGroup, but what its fields mean is not known: it says nothing, and that is its
    problem.
    """
    group = api_group(pod_group.get("kind"), pod_group.get("apiVersion"))
    if group is None:
        return None
    meta = pod_group.get("metadata")
    bare = PodGroupSource(
        api=group,
        namespace=_text(nested(meta, "namespace")),
        name=_text(nested(meta, "name")),
        uid=_text(nested(meta, "uid")),
    )
    version = _text(pod_group.get("apiVersion")).rpartition("/")[2]
    if version != names.POD_GROUP_VERSION:
        message = f"is not known here, only {group}/{names.POD_GROUP_VERSION}"
        unknown = FieldError("apiVersion", pod_group.get("apiVersion"), message, CauseType.NOT_SUPPORTED)
        return msgspec.structs.replace(bare, problems=(unknown,))
    terms, problems = SPEC_PARSERS[group](pod_group)
    said = msgspec.structs.replace(bare, spec=terms, problems=problems)
    if group == names.KEP24_GROUP:
        return said
    about = RawMetadata.of_object(pod_group, bare.namespace)
    noted, noted_problems = format_koordinator_podgroup.annotated_spec(about)
    ignored = formats.ignored_annotations(about.annotations, format_koordinator_podgroup.ANNOTATION_KEYS)
    return msgspec.structs.replace(said, annotated_spec=noted, annotation_problems=noted_problems, ignored=ignored)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
