"""What an operator may configure: the barrier that is put into pods (A3, A7), and the rules of pod groups."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from jobset_gate import names
from jobset_gate.errors import JobsetGateError
from jobset_gate.objects.field_error import child_path, format_value
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

_Seconds = Annotated[int, Field(ge=1, le=2**31 - 1)]
_Id = Annotated[int, Field(ge=1, le=2**31 - 1)]
_Quantity = str | int | float
_Scheduler = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9._]{0,251}[A-Za-z0-9])?$")]
"""The name of a scheduler, which stands in an expression of the pod webhook's registration."""


_BASE_URL: Final = re.compile(
    r"http://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?)(:(?P<port>[0-9]{1,5}))?(/[0-9A-Za-z._~-]+)*/?"
)
"""Nothing in it means anything to a shell, or to the kubelet that writes it into the environment."""


def _base_url(url: str) -> str:
    """A URL to which paths are added, asked by the simplest of clients: no TLS, no user, no query."""
    parts = _BASE_URL.fullmatch(url)
    if parts is None or not 1 <= int(parts["port"] or 80) <= 65_535:
        raise ValueError("must be http://host[:port][/path]")
    return url.removesuffix("/")


def _switch(value: Any) -> Any:
    """On and Off without quotes are booleans to YAML 1.1, which Helm and kubectl read."""
    return {True: "On", False: "Off"}[value] if isinstance(value, bool) else value


class Native(StrEnum):
    """Whether groups are handed over to a scheduler that places them; opt-in, never detected (G6)."""

    OFF = "Off"
    ON = "On"


class BadSettings(JobsetGateError, ValueError):
    """Settings that cannot be used; one line per bad value, each with its path."""


class Section(BaseModel):
    """Part of the settings file: keys in camelCase, and no others."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,  # most commands need one section of them, if any
    )


class Resources(Section):
    """A container's requests and limits, by resource name, as Kubernetes writes them."""

    requests: dict[str, _Quantity] = {}
    limits: dict[str, _Quantity] = {}


class Barrier(Section):
    """The init container that holds a pod."""

    image: Annotated[str, Field(pattern=r"^\S+$")] = DEFAULT_IMAGE
    """Needs a POSIX shell, sleep and head; for the gate stream wget, dd; for prefetching uname, chmod, mv, rm."""
    resources: Resources | None = None
    """None: those of the pod's first main container, so that QoS class, LimitRange and quota stay as they were."""
    run_as_user: _Id | None = DEFAULT_USER
    """None: not set, so that the platform chooses (OpenShift)."""
    run_as_group: _Id | None = DEFAULT_USER
    """The same for its group."""
    grace_seconds: Annotated[int, Field(ge=0, le=86_400)] = DEFAULT_GRACE_SECONDS
    """How long after the gang's timeout a barrier that gets no verdict gives up."""
    max_wait_seconds: _Seconds | None = None
    """The barrier's own limit where the gang has no timeout; None: it waits for ever."""
    poll_seconds: Annotated[float, Field(ge=0.05, le=10)] = DEFAULT_POLL_SECONDS
    """How often the barrier looks at its files."""
    stream_url: Annotated[str, AfterValidator(_base_url)] | None = None
    """Where pods reach the gate stream, e.g. http://jobset-gate-stream.jobset-gate-system.svc:8082; None: no stream."""


DEFAULT_SOURCES: Final = (JOBSET.name, JOB.name)


def _known_sources(given: tuple[str, ...]) -> tuple[str, ...]:
    """Each source once, in the order of the table, and `jobset` among them."""
    if unknown := [name for name in given if name not in SOURCES]:
        raise ValueError(f"unknown source {', '.join(unknown)}; there are {', '.join(SOURCES)}")
    if JOBSET.name not in given:
        raise ValueError(f"must contain {JOBSET.name}")
    return tuple(name for name in SOURCES if name in given)


class Gangs(Section):
    """Gangs with a start barrier."""

    sources: Annotated[tuple[str, ...], Strict(False), AfterValidator(_known_sources)] = DEFAULT_SOURCES
    """Kinds of workloads whose pods may start as a gang. Of another kind nothing is sent, watched or changed."""
    pod_failure_policy: Literal["Fail", "Ignore"] = "Fail"
    """What becomes of pods with a barrier of their own while the webhook is down: refused, or created without it."""

    @property
    def gates_pods(self) -> bool:
        """Whether a source is enabled whose pods get the barrier one by one."""
        return any(SOURCES[name].gates_pods for name in self.sources)


class Groups(Section):
    """Pod groups: whose pods are held, and when a group is opened (G2, G3, G4, G6)."""

    enabled: bool = True
    """Without it no pod is held, and none is watched for a group."""
    ways: Annotated[tuple[Annotated[Format, Strict(False)], ...], Strict(False), Field(min_length=1)] = tuple(Format)
    """Those that are switched on; without any, `enabled` is what to set."""
    scheduler_names: Annotated[tuple[_Scheduler, ...], Strict(False), Field(min_length=1)] = (names.DEFAULT_SCHEDULER,)
    """Pods for other schedulers are not ours: theirs read the same keys."""
    capacity_check: Annotated[CapacityCheck, Strict(False), BeforeValidator(_switch)] = CapacityCheck.FIT
    """What must be known before a group is opened: Fit (it has room), Probe (or it is the first in order), Off
    (nothing)."""
    starvation_seconds: Annotated[float, Field(ge=0, le=86_400)] = DEFAULT_STARVATION_SECONDS
    """How long an earlier group of the same domain may be passed by later ones."""
    wait_seconds: _Seconds = DEFAULT_GROUP_WAIT_SECONDS
    """The wait limit of the designs that have none of their own: KEP-24's and Alibaba's."""
    across_namespaces: bool = False
    """Whether a GangGroup may reach beyond its namespace."""
    native: Annotated[Native, Strict(False), BeforeValidator(_switch)] = Native.OFF
    """On: groups are handed over to a scheduler with the feature GangScheduling."""
    gate_concurrency: Annotated[int, Field(ge=1, le=1024)] = 32
    """Gates removed at once."""


class Settings(Section):
    """Settings of the webhook, and those that it shares with the controller."""

    barrier: Barrier = Field(default_factory=Barrier)
    gangs: Gangs = Field(default_factory=Gangs)
    groups: Groups = Field(default_factory=Groups)


def load(values: Mapping[str, Any] | None) -> Settings:
    """Settings from a mapping as YAML gives it, keys in camelCase; raises BadSettings naming every bad value."""
    return load_section(Settings, values)


def load_section(section: type[AnySection], values: Any, path: str = "") -> AnySection:
    """The same of the section at that path."""
    try:
        return section.model_validate({} if values is None else values)
    except ValidationError as problem:
        lines = (_error_line(detail, path) for detail in problem.errors(include_url=False))
        raise BadSettings("\n".join(lines)) from problem


def _error_line(detail: ErrorDetails, path: str) -> str:
    for key in detail["loc"]:
        path = child_path(path, key)
    message = detail["msg"]
    return f"{path or 'settings'}: {format_value(detail['input'])}: {message[:1].lower()}{message[1:]}"
