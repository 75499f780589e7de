"""A PodGroup of any of the three kinds to what it says, and what another version of it is told (G1)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.groups import kep24, koordinator_podgroup, pods, scheduler_plugins
from jobset_gate.groups.model import Meta, PodGroupSeen, Terms
from jobset_gate.template import Json, dig
from jobset_gate.violation import Fault, Violation

Reading = tuple[Terms, tuple[Violation, ...]]

SPECS: Final[Mapping[str, Callable[[Json], Reading]]] = MappingProxyType(
    {
        names.KEP24_GROUP: kep24.terms,
        names.PLUGINS_GROUP: scheduler_plugins.terms,
        names.SIGS_GROUP: scheduler_plugins.terms,
    }
)
"""The API groups that we know a PodGroup of. Volcano's and the native one are others' business."""

KNOWN: Final = tuple(f"{group}/{names.POD_GROUP_VERSION}" for group in SPECS)


def api_group(kind: object, api_version: object) -> str | None:
    """The API group of a PodGroup of ours, whatever its version; None for every other object."""
    if kind != names.POD_GROUP or not isinstance(api_version, str):
        return None
    group = api_version.rpartition("/")[0]
    return group if group in SPECS else None


def seen(pod_group: Json) -> PodGroupSeen | None:
    """What a PodGroup says; None for an object of another kind or group.

    One of another version is a PodGroup, but what its fields mean is not known: it says nothing, and that is its
    problem.
    """
    group = api_group(pod_group.get("kind"), pod_group.get("apiVersion"))
    if group is None:
        return None
    meta = pod_group.get("metadata")
    bare = PodGroupSeen(
        api=group,
        namespace=_text(dig(meta, "namespace")),
        name=_text(dig(meta, "name")),
        uid=_text(dig(meta, "uid")),
    )
    version = _text(pod_group.get("apiVersion")).rpartition("/")[2]
    if version != names.POD_GROUP_VERSION:
        message = f"is not known here, only {group}/{names.POD_GROUP_VERSION}"
        unknown = Violation("apiVersion", pod_group.get("apiVersion"), message, Fault.NOT_SUPPORTED)
        return msgspec.structs.replace(bare, problems=(unknown,))
    terms, problems = SPECS[group](pod_group)
    said = msgspec.structs.replace(bare, terms=terms, problems=problems)
    if group == names.KEP24_GROUP:
        return said
    about = Meta.of(pod_group, bare.namespace)
    noted, noted_problems = koordinator_podgroup.noted(about)
    ignored = pods.ignored(about.annotations, koordinator_podgroup.NOTED)
    return msgspec.structs.replace(said, noted=noted, noted_problems=noted_problems, ignored=ignored)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
