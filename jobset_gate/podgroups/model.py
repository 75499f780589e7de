"""Model of pod groups: what pods and PodGroups say of a group in any format, and the one merged group (G1)."""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.objects.field_error import FieldError, child_path
from jobset_gate.objects.unstructured import Json, as_map, nested


class Format(StrEnum):
    """The five formats, in order of precedence for a pod that has the same name in two."""

    KOORDINATOR_ANNOTATIONS = "koordinator-annotations"
    KOORDINATOR_POD_GROUP = "koordinator-podgroup"
    SCHEDULER_PLUGINS = "scheduler-plugins"
    ALIBABA = "alibaba"
    KEP_24 = "kep-24"


class Flavor(StrEnum):
    """Whose group it is. Koordinator's two formats name the same gangs, so that annotations can win over its CRD."""

    KOORDINATOR = "koordinator"
    SCHEDULER_PLUGINS = "scheduler-plugins"
    ALIBABA = "alibaba"
    KEP_24 = "kep-24"


FLAVOR_OF: Final[Mapping[Format, Flavor]] = MappingProxyType(
    {
        Format.KOORDINATOR_ANNOTATIONS: Flavor.KOORDINATOR,
        Format.KOORDINATOR_POD_GROUP: Flavor.KOORDINATOR,
        Format.SCHEDULER_PLUGINS: Flavor.SCHEDULER_PLUGINS,
        Format.ALIBABA: Flavor.ALIBABA,
        Format.KEP_24: Flavor.KEP_24,
    }
)

POD_GROUP_APIS: Final[Mapping[Flavor, tuple[str, ...]]] = MappingProxyType(
    {
        Flavor.KOORDINATOR: (names.SIGS_GROUP, names.PLUGINS_GROUP),
        Flavor.SCHEDULER_PLUGINS: (names.PLUGINS_GROUP,),
        Flavor.ALIBABA: (),
        Flavor.KEP_24: (names.KEP24_GROUP,),
    }
)
"""The API groups in which a flavor looks for its PodGroup; the first one found wins."""

NEEDS_POD_GROUP: Final = frozenset({Format.KEP_24, Format.SCHEDULER_PLUGINS, Format.KOORDINATOR_POD_GROUP})
"""The formats whose groups have a PodGroup."""


class GangMode(StrEnum):
    """What happens to a group that missed its minimum within its limit (G4)."""

    STRICT = "Strict"
    NON_STRICT = "NonStrict"


class PodGroupKey(Value, frozen=True):
    """Identity of a group; its JSON is part of the admission record. An empty name: the pod's value is empty."""

    flavor: Flavor = msgspec.field(name="design")
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """`namespace/name`, as in Koordinator's lists of gangs."""
        return f"{self.namespace}/{self.name}"


class GroupSpec(Value, frozen=True):
    """What one source wants of a group; None: this source does not say."""

    minimum: int | None = None
    total: int | None = None
    wait: Fraction | None = None
    """Seconds."""
    mode: GangMode | None = None
    gangs: tuple[str, ...] | None = None
    """`namespace/name` of each gang of its GangGroup, sorted; () is a gang of its own."""
    resources: tuple[tuple[str, Fraction], ...] | None = None
    """minResources or totalResources: (resource, quantity), sorted."""


class Membership(Value, frozen=True):
    """What one pod says of its group."""

    format: Format
    key: PodGroupKey
    spec: GroupSpec = GroupSpec()
    problems: tuple[FieldError, ...] = ()
    """Field paths of the pod."""
    ignored: tuple[str, ...] = ()
    """Koordinator's annotations that have no effect here."""


class PodGroupSource(Value, frozen=True):
    """What a PodGroup of one of the three kinds says."""

    api: str
    """Its API group."""
    namespace: str
    name: str
    uid: str = ""
    spec: GroupSpec = GroupSpec()
    problems: tuple[FieldError, ...] = ()
    annotated_spec: GroupSpec = GroupSpec()
    """From Koordinator's annotations, which count for Koordinator's gangs alone."""
    annotation_problems: tuple[FieldError, ...] = ()
    ignored: tuple[str, ...] = ()
    """Koordinator's annotations that have no effect here."""


class MemberSource(Value, frozen=True):
    """A pod of a group, and what it says."""

    pod: str
    membership: Membership


class MergedGroup(Value, frozen=True):
    """The one group that all its sources make."""

    key: PodGroupKey
    formats: tuple[Format, ...]
    minimum: int | None
    """None: no source says it; one of the problems, unless the PodGroup is still missing."""
    wait: Fraction
    mode: GangMode
    gangs: tuple[str, ...]
    resources: tuple[tuple[str, Fraction], ...]
    pod_group: PodGroupSource | None
    pod_group_missing: bool
    """Its format needs a PodGroup, and none exists."""
    present: int
    """Members that count for gathering."""
    problems: tuple[FieldError, ...] = ()
    """Of the group as a whole or of its PodGroup."""
    blamed: tuple[tuple[str, FieldError], ...] = ()
    """(Pod, its problem), by name."""

    @property
    def valid(self) -> bool:
        """Whether it can be admitted at all."""
        return not self.problems and not self.blamed

    @property
    def gathered(self) -> bool:
        """Whether its minimum of members exists."""
        return self.minimum is not None and self.present >= self.minimum


class RawMetadata(Value, frozen=True):
    """Unvalidated metadata of a pod, of a pod template or of a PodGroup."""

    namespace: str
    labels: Mapping[str, Any] = MappingProxyType({})
    annotations: Mapping[str, Any] = MappingProxyType({})
    path: str = "metadata"
    """Its field path in the object."""

    @property
    def labels_path(self) -> str:
        return child_path(self.path, "labels")

    @property
    def annotations_path(self) -> str:
        return child_path(self.path, "annotations")

    @classmethod
    def of_object(cls, holder: Json, namespace: str, path: str = "metadata") -> "RawMetadata":
        """The metadata of an object as JSON; a value of the wrong shape counts as absent."""
        meta = holder.get("metadata")
        return cls(
            namespace=namespace,
            labels=as_map(nested(meta, "labels")),
            annotations=as_map(nested(meta, "annotations")),
            path=path,
        )


# --- The label -------------------------------------------------------------------------------------------------------

LABEL_LENGTH: Final = 40
"""Hexadecimal digits, 160 bits, so that no two groups share a label. A label's value may have 63 characters."""


def group_label(key: PodGroupKey) -> str:
    """Value of the label on every pod of the group: a hash, since label selectors cannot match annotations (G2)."""
    # JSON, since "a" in "b/c" and "a/b" in "c" differ.
    text = msgspec.json.encode([key.flavor.value, key.namespace, key.name])
    return hashlib.sha256(text).hexdigest()[:LABEL_LENGTH]
