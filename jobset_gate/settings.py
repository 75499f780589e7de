"""What an operator may configure: the barrier that is put into pods (A3, A7), and the rules of pod groups."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from jobset_gate import names
from jobset_gate.errors import JobsetGateError
from jobset_gate.objects.bad_parts import REFUSALS, bad_parts
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.sources.table import JOB, JOBSET, SOURCES

AnySection = TypeVar("AnySection", bound="Section")
DEFAULT_IMAGE: Final = "busybox:1.37"
DEFAULT_USER: Final = 65532
DEFAULT_POLL_SECONDS: Final = 0.2
DEFAULT_GRACE_SECONDS: Final = 120
"""More than two kubelet sync periods: a release in the last second before the timeout that only the ConfigMap
delivers must reach every barrier before the first one gives up (A6)."""

DEFAULT_STARVATION_SECONDS: Final = 300.0
DEFAULT_GROUP_WAIT_SECONDS: Final = 600

_Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_Quantity = str | int | float
_Scheduler = Annotated[str, Meta(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9._]{0,251}[A-Za-z0-9])?\Z")]
"""The name of a scheduler, which stands in an expression of the pod webhook's registration."""

_PORT: Final = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_BaseUrl = Annotated[
    str,
    Meta(
        pattern=r"^http://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?)"
        rf"(:{_PORT})?(/[0-9A-Za-z._~-]+)*/?\Z",
        description="must be http://host[:port][/path]",
    ),
]
"""A URL to which paths are added, asked by the simplest of clients: no TLS, no user, no query. Nothing in it means
anything to a shell, or to the kubelet that writes it into the environment."""
_SWITCHES: Final = ("capacityCheck", "native")
"""On and Off without quotes are booleans to YAML 1.1, which Helm and kubectl read."""


class BadSettings(JobsetGateError, ValueError):
    """Settings that cannot be used; one line per bad value, each with its path."""


class Native(StrEnum):
    """Whether groups are handed over to a scheduler that places them; opt-in, never detected (G6)."""

    OFF = "Off"
    ON = "On"


class Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Part of the settings file: keys in camelCase, and no others."""


class Resources(Section, frozen=True):
    """A container's requests and limits, by resource name, as Kubernetes writes them."""

    requests: dict[str, _Quantity] = {}
    limits: dict[str, _Quantity] = {}


class Barrier(Section, frozen=True):
    """The init container that holds a pod."""

    image: Annotated[str, Meta(pattern=r"^\S+\Z")] = DEFAULT_IMAGE
    """Needs a POSIX shell, sleep and head; for the gate stream wget, dd; for prefetching uname, chmod, mv, rm."""
    resources: Resources | None = None
    """None: those of the pod's first main container, so that QoS class, LimitRange and quota stay as they were."""
    run_as_user: _Positive | None = DEFAULT_USER
    """None: not set, so that the platform chooses (OpenShift)."""
    run_as_group: _Positive | None = DEFAULT_USER
    """The same for its group."""
    grace_seconds: Annotated[int, Meta(ge=0, le=86_400)] = DEFAULT_GRACE_SECONDS
    """How long after the gang's timeout a barrier that gets no verdict gives up."""
    max_wait_seconds: _Positive | None = None
    """The barrier's own limit where the gang has no timeout; None: it waits for ever."""
    poll_seconds: Annotated[float, Meta(ge=0.05, le=10)] = DEFAULT_POLL_SECONDS
    """How often the barrier looks at its files."""
    stream_url: _BaseUrl | None = None
    """Where pods reach the gate stream, e.g. http://jobset-gate-stream.jobset-gate-system.svc:8082; None: no stream."""


DEFAULT_SOURCES: Final = (JOBSET.name, JOB.name)
_Source = Annotated[str, Meta(pattern=rf"^({'|'.join(SOURCES)})\Z", description=f"must be one of {', '.join(SOURCES)}")]


class Gangs(Section, frozen=True):
    """Gangs with a start barrier."""

    sources: tuple[_Source, ...] = DEFAULT_SOURCES
    """Kinds of workloads whose pods may start as a gang. Of another kind nothing is sent, watched or changed."""
    pod_failure_policy: Literal["Fail", "Ignore"] = "Fail"
    """What becomes of pods with a barrier of their own while the webhook is down: refused, or created without it."""

    def __post_init__(self) -> None:
        if JOBSET.name not in self.sources:
            raise ValueError(f"sources must contain {JOBSET.name}")

    @property
    def gates_pods(self) -> bool:
        """Whether a source is enabled whose pods get the barrier one by one."""
        return any(SOURCES[name].gates_pods for name in self.sources)


class Groups(Section, frozen=True):
    """Pod groups: whose pods are held, and when a group is opened (G2, G3, G4, G6)."""

    enabled: bool = True
    """Without it no pod is held, and none is watched for a group."""
    ways: Annotated[tuple[Format, ...], Meta(min_length=1)] = tuple(Format)
    """Those that are switched on; without any, `enabled` is what to set."""
    scheduler_names: Annotated[tuple[_Scheduler, ...], Meta(min_length=1)] = (names.DEFAULT_SCHEDULER,)
    """Pods for other schedulers are not ours: theirs read the same keys."""
    capacity_check: CapacityCheck = CapacityCheck.FIT
    """What must be known before a group is opened: Fit (it has room), Probe (or it is the first in order), Off
    (nothing)."""
    starvation_seconds: Annotated[float, Meta(ge=0, le=86_400)] = DEFAULT_STARVATION_SECONDS
    """How long an earlier group of the same domain may be passed by later ones."""
    wait_seconds: _Positive = DEFAULT_GROUP_WAIT_SECONDS
    """The wait limit of the designs that have none of their own: KEP-24's and Alibaba's."""
    across_namespaces: bool = False
    """Whether a GangGroup may reach beyond its namespace."""
    native: Native = Native.OFF
    """On: groups are handed over to a scheduler with the feature GangScheduling."""
    gate_concurrency: Annotated[int, Meta(ge=1, le=1024)] = 32
    """Gates removed at once."""


class Settings(Section, frozen=True):
    """Settings of the webhook, and those that it shares with the controller."""

    barrier: Barrier = msgspec.field(default_factory=Barrier)
    gangs: Gangs = msgspec.field(default_factory=Gangs)
    groups: Groups = msgspec.field(default_factory=Groups)


def load(values: Any) -> Settings:
    """Settings from a mapping as YAML gives it, keys in camelCase; raises BadSettings naming every bad value."""
    if isinstance(values, dict) and isinstance(groups := values.get("groups"), dict):
        switches = {key: "On" if groups[key] else "Off" for key in _SWITCHES if isinstance(groups.get(key), bool)}
        values = values | {"groups": groups | switches}
    return load_section(Settings, values)


def load_section(section: type[AnySection], values: Any, path: str = "", *, strict: bool = True) -> AnySection:
    """The same of the section at that path. Unless `strict`, a number or a boolean may stand in quotes."""
    try:
        return msgspec.convert({} if values is None else values, section, strict=strict)
    except REFUSALS as problem:
        wrong = bad_parts(values, section, path, strict=strict)
        raise BadSettings("\n".join(str(it) if it.path else f"settings{it}" for it in wrong)) from problem
