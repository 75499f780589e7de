"""The words of opening: groups that wait for it, groups that were opened, and what is decided of each (G3)."""

from enum import StrEnum

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.fit.anti_affinity import LabelledPod
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.model import PodGroupKey


class CapacityCheck(StrEnum):
    """The setting capacityCheck."""

    FIT = "Fit"
    PROBE = "Probe"
    OFF = "Off"


class Candidate(Value, frozen=True):
    """A gathered group, with the others of its GangGroup, that waits to be opened."""

    requests: tuple[GroupRequest, ...]
    """One for each gang; the first is the one that the others are told of."""
    priority: int
    created: float
    ready_since: float
    """When it was gathered and under nobody else's gate."""
    domain: frozenset[str]
    unsupported: tuple[str, ...] = ()
    """What of its pods is not reckoned with."""
    preempts: int | None = None
    """Pods of lower priority than this may lose their place to any of its own; None: none may."""
    labelled_pods: frozenset[LabelledPod] = frozenset()
    """What decides whether others keep its pods away."""
    backs_off: str = ""
    """Why it was taken back and is not opened yet: meanwhile it keeps its rank. "": it may be opened."""

    @property
    def key(self) -> PodGroupKey:
        """The group it is known by."""
        return self.requests[0].key


class AdmittedGroup(Value, frozen=True):
    """A group whose gates are removed and whose minimum is not bound yet."""

    requests: tuple[GroupRequest, ...]
    """Of what is not bound yet."""
    domain: frozenset[str]
    proven: bool
    """It was known to have room when it was opened."""
    best_effort: bool = False
    """Its minimum was bound, and this is the rest: it takes what it finds, and needs no place of its own."""
    labelled_pods: frozenset[LabelledPod] = frozenset()
    priority: int = 0
    admitted_at: float = 0.0
    """When that was decided."""

    @property
    def key(self) -> PodGroupKey:
        """The group it is known by."""
        return self.requests[0].key


class Admit(Value, frozen=True):
    """To be opened now."""

    candidate: Candidate
    proven: bool


class Hold(Value, frozen=True):
    """To be held on, and why."""

    candidate: Candidate
    reason: str
    message: str
    must_yield: tuple[PodGroupKey, ...] = ()
    """Groups of lower priority that are being tried and have to make way for it."""


def admission_order(candidate: Candidate) -> tuple[int, float, str, str]:
    """The higher priority first, then the older; the name so that the order is the same every time."""
    return -candidate.priority, candidate.created, candidate.key.path, candidate.key.design
