"""CustomResourceDefinitions of the three kinds of PodGroup, and whether those of a cluster are ours (G5).

Fields are those of the designs' types.
"""

from collections.abc import Collection, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import yaml

from jobset_gate import names
from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate.podgroups.model import FLAVOR_OF, NEEDS_POD_GROUP, POD_GROUP_APIS, Format

Json = dict[str, Any]

REVISION: Final = 1
"""Of the manifests; raised with every change, so that an older controller does not revert it."""
MANAGER: Final = f"{names.FIELD_MANAGER}-crds"
"""Our field manager for CRDs."""
MINIMUM_FIELD: Final[Mapping[str, str]] = MappingProxyType(
    {names.PLUGINS_GROUP: "minMember", names.SIGS_GROUP: "minMember", names.KEP24_GROUP: "minMembers"}
)
"""The required field of spec, by API group."""
GROUPS: Final[Mapping[str, str]] = MappingProxyType({f"podgroups.{it}": it for it in MINIMUM_FIELD})
"""API groups by the names of their CRDs."""


def crd_name(group: str) -> str:
    """The name of the CRD of an API group's PodGroups."""
    return f"podgroups.{group}"


def manifest(group: str) -> Json:
    text = files("jobset_gate.podgroups").joinpath("manifests", f"{group}.yaml").read_text(encoding="utf-8")
    found: Json = yaml.safe_load(text)
    return found


def is_ours(crd: Mapping[str, Any]) -> bool:
    """Whether this controller created it and no other field manager has changed its spec."""
    return nested(crd, "metadata", "labels", names.MANAGED_BY_LABEL) == names.PROGRAM and not any(
        entry.get("manager") != MANAGER and "f:spec" in as_map(entry.get("fieldsV1"))
        for entry in map(as_map, as_list(nested(crd, "metadata", "managedFields")))
        if not entry.get("subresource")
    )


def update(crd: Mapping[str, Any]) -> Json:
    """The manifest to apply to an outdated CRD of ours, at this resourceVersion only."""
    made = manifest(GROUPS[crd["metadata"]["name"]])
    return {**made, "metadata": {**made["metadata"], "resourceVersion": crd["metadata"]["resourceVersion"]}}


def needed_crds(ways: Collection[Format]) -> tuple[str, ...]:
    """The names of the CRDs that these formats need. Koordinator also reads those of scheduler-plugins."""
    return tuple(crd_name(POD_GROUP_APIS[FLAVOR_OF[it]][0]) for it in Format if it in ways and it in NEEDS_POD_GROUP)


def revision(crd: Mapping[str, Any]) -> int:
    """Its revision; 0 if it has none."""
    said = nested(crd, "metadata", "annotations", names.POD_GROUP_CRD_REVISION)
    return int(said) if isinstance(said, str) and said.isascii() and said.isdigit() else 0


def why_unusable(crd: Mapping[str, Any]) -> str:
    """Why PodGroups of this CRD cannot be used; "" if they can."""
    name, group = nested(crd, "metadata", "name"), nested(crd, "spec", "group")
    version = next((one for one in _served(crd) if one.get("name") == names.POD_GROUP_VERSION), None)
    if version is None:
        served = ", ".join(str(one.get("name")) for one in _served(crd)) or "nothing"
        return f"the CRD {name} serves {served}, and only {names.POD_GROUP_VERSION} is known here"
    schema = as_map(nested(version, "schema", "openAPIV3Schema"))
    spec = as_map(nested(schema, "properties", "spec"))
    if _is_open(schema) or _is_open(spec) or MINIMUM_FIELD.get(str(group), "") in as_map(spec.get("properties")):
        return ""
    return f"the CRD {name} has no spec.{MINIMUM_FIELD.get(str(group), '')} in {names.POD_GROUP_VERSION}"


def _served(crd: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in map(as_map, as_list(nested(crd, "spec", "versions"))) if one.get("served")]


def _is_open(schema: Mapping[str, Any]) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True
