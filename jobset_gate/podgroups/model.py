"""The words of pod groups: what pods and PodGroups say of a gang, and the one gang that comes of it (G1).

Every way of saying a group is parsed into the same words; from there on nothing asks which way it was.
"""

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.objects.field_error import FieldError, child_path
from jobset_gate.objects.unstructured import Json, as_map, nested


class Format(StrEnum):
    """The five ways of saying it, the one that wins first where a pod says the same name in two."""

    KOORDINATOR_ANNOTATIONS = "koordinator-annotations"
    KOORDINATOR_POD_GROUP = "koordinator-podgroup"
    SCHEDULER_PLUGINS = "scheduler-plugins"
    ALIBABA = "alibaba"
    KEP_24 = "kep-24"


class Flavor(StrEnum):
    """Whose group it is. Koordinator's two ways name the same gangs, or annotations could not win over its CRD."""

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
"""The API groups in which each design looks for its PodGroup, the first that is found wins."""


class GangMode(StrEnum):
    """What becomes of a gang that did not reach its minimum in time (G4)."""

    STRICT = "Strict"
    NON_STRICT = "NonStrict"


class PodGroupKey(Value, frozen=True):
    """Which group: whose, where, and its name. An empty name is a pod that names a group by an empty value."""

    design: Flavor
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """`namespace/name`, as Koordinator's lists of gangs have it."""
        return f"{self.namespace}/{self.name}"


class GroupSpec(Value, frozen=True):
    """What one source says a group shall be. None: it says nothing about that."""

    minimum: int | None = None
    total: int | None = None
    wait: Fraction | None = None
    """Seconds."""
    mode: GangMode | None = None
    gangs: tuple[str, ...] | None = None
    """`namespace/name` of each gang of its GangGroup, sorted; () is a gang of its own."""
    resources: tuple[tuple[str, Fraction], ...] | None = None
    """minResources or totalResources: (resource, amount), sorted."""


class Membership(Value, frozen=True):
    """What one pod says of its group."""

    format: Format
    key: PodGroupKey
    spec: GroupSpec = GroupSpec()
    problems: tuple[FieldError, ...] = ()
    """Field paths are those of the pod."""
    ignored: tuple[str, ...] = ()
    """Annotations of Koordinator's that nobody heeds here."""


class PodGroupSource(Value, frozen=True):
    """A PodGroup of one of the three kinds."""

    api: str
    """Its API group."""
    namespace: str
    name: str
    uid: str = ""
    spec: GroupSpec = GroupSpec()
    problems: tuple[FieldError, ...] = ()
    annotated_spec: GroupSpec = GroupSpec()
    """What Koordinator's annotations on it say; only Koordinator's gangs obey them."""
    annotation_problems: tuple[FieldError, ...] = ()
    ignored: tuple[str, ...] = ()
    """Annotations of Koordinator's that nobody heeds here."""


class MemberSource(Value, frozen=True):
    """A pod of a group, as far as gathering needs to know it."""

    pod: str
    membership: Membership
    alive: bool = True
    """Not Failed and not being deleted; one that has succeeded counts as there."""


class MergedGroup(Value, frozen=True):
    """The one gang that all sources together come to."""

    key: PodGroupKey
    formats: tuple[Format, ...]
    minimum: int | None
    """None: nobody says, which is one of the problems unless its PodGroup is still to come."""
    total: int | None
    wait: Fraction
    mode: GangMode
    gangs: tuple[str, ...]
    resources: tuple[tuple[str, Fraction], ...]
    pod_group: PodGroupSource | None
    pod_group_missing: bool
    """Its way needs a PodGroup, and there is none."""
    present: int
    """Members that are alive."""
    problems: tuple[FieldError, ...] = ()
    """What is wrong with the group as a whole or with its PodGroup."""
    blamed: tuple[tuple[str, FieldError], ...] = ()
    """(Pod, what is wrong with it), by name."""

    @property
    def valid(self) -> bool:
        """Whether it may ever be opened."""
        return not self.problems and not self.blamed

    @property
    def gathered(self) -> bool:
        """Its minimum of members exists."""
        return self.minimum is not None and self.present >= self.minimum


class RawMetadata(Value, frozen=True):
    """The metadata of a pod, of a pod template or of a PodGroup, before anybody has checked the values in it."""

    namespace: str
    labels: Mapping[str, Any] = MappingProxyType({})
    annotations: Mapping[str, Any] = MappingProxyType({})
    path: str = "metadata"
    """Where it stands in its object."""

    @property
    def labels_path(self) -> str:
        """Where the labels stand."""
        return child_path(self.path, "labels")

    @property
    def annotations_path(self) -> str:
        """Where the annotations stand."""
        return child_path(self.path, "annotations")

    @classmethod
    def of_object(cls, holder: Json, namespace: str, path: str = "metadata") -> "RawMetadata":
        """The metadata of an object as JSON; what has the wrong shape counts as absent."""
        meta = holder.get("metadata")
        return cls(
            namespace=namespace,
            labels=as_map(nested(meta, "labels")),
            annotations=as_map(nested(meta, "annotations")),
            path=path,
        )
