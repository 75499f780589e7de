"""What becomes of an opened group whose wait limit runs: satisfied, more time, marked, or taken back whole (G4)."""

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Final

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.model import Flavor, GangMode
from jobset_gate.podgroups.text import truncate_list

FIRST_BACKOFF: Final = 10.0
LONGEST_BACKOFF: Final = 300.0
MAX_PODS_NAMED: Final = 10
CLOSE_ENOUGH: Final = Fraction(1, 10)
"""Of the minimum: so small a gap gets scheduler-plugins' groups one more limit."""


class DeadlineInput(Value, frozen=True):
    """An opened group, as far as its limit needs to know it."""

    design: Flavor
    mode: GangMode
    minimum: int
    bound: int
    """Members bound in this generation, those that have finished since included."""
    started_at: float
    """When the last gate was removed."""
    wait: Fraction
    extended: bool = False
    """It has had one more limit already."""
    rolled_back: int = 0
    """How often this group was taken back before."""


class Satisfied(Value, frozen=True):
    """The minimum was bound once: from now on later members of this generation pass."""


class KeepWaiting(Value, frozen=True):
    """Look again in so many seconds."""

    requeue_after: float


class ExtendDeadline(Value, frozen=True):
    """One more limit, to be written down, or it would get another."""

    requeue_after: float


class MarkTimedOut(Value, frozen=True):
    """NonStrict: nothing is taken back; those that are not bound are marked."""


class Evict(Value, frozen=True):
    """Every opened member of the group and its GangGroup is taken back, bound or not."""

    retry: bool
    """False, and its pods are marked: Koordinator's gangs are not tried again."""
    backoff_seconds: float
    """Seconds until it may be opened again."""


def decide_deadline(seen: DeadlineInput, now: float) -> Satisfied | KeepWaiting | ExtendDeadline | MarkTimedOut | Evict:
    """What is to be done about the limit now."""
    if seen.bound >= seen.minimum:
        return Satisfied()
    wait = float(seen.wait)
    left = seen.started_at + wait * (2 if seen.extended else 1) - now
    if left > 0:
        return KeepWaiting(requeue_after=left)
    if seen.mode is GangMode.NON_STRICT:
        return MarkTimedOut()
    close = (seen.minimum - seen.bound) <= seen.minimum * CLOSE_ENOUGH
    if seen.design is Flavor.SCHEDULER_PLUGINS and close and not seen.extended:
        return ExtendDeadline(requeue_after=max(0.0, left + wait))
    return Evict(retry=seen.design is not Flavor.KOORDINATOR, backoff_seconds=eviction_backoff(seen.rolled_back))


def eviction_backoff(times: int) -> float:
    """The back-off after it was taken back so often before: 10 s, doubling to 5 min."""
    doubled: float = FIRST_BACKOFF * 2.0 ** min(times, 10)
    return min(LONGEST_BACKOFF, doubled)


# --- How members are taken back --------------------------------------------------------------------------------------


class EvictionMethod(StrEnum):
    """The way back that fails nothing of the member's owner."""

    SUSPEND = "suspend and resume"
    """Of a Job or JobSet: deletion of its pods would count against its backoffLimit."""
    DELETE = "disrupt and delete"
    """DisruptionTarget condition, then delete with UID precondition; its controller makes it anew."""
    BLOCKED = "blocked"


class EvictionOwner(Value, frozen=True):
    """What made some of a group's pods; the outermost of a chain that we know, so a JobSet and not its Jobs."""

    kind: str
    """"" for pods that nobody made."""
    name: str
    pods: tuple[str, ...]
    """Its pods in the group."""
    others: tuple[str, ...] = ()
    """Its living pods that are not in the group: they would be lost with the others."""
    by_kueue: bool = False
    """Kueue suspends and resumes it, and would undo ours."""
    managed_by: str = ""
    """The controller that looks after it instead of the usual one: nobody knows what that makes of a suspension."""


class OwnerEviction(Value, frozen=True):
    """How an owner's pods are taken back, and why not if not."""

    owner: EvictionOwner
    method: EvictionMethod
    why: str = ""


def eviction_of(owner: EvictionOwner) -> OwnerEviction:
    """The way back of one owner's pods."""
    if not owner.kind:
        return OwnerEviction(owner=owner, method=EvictionMethod.BLOCKED, why=bare_pods_message(owner.pods))
    if owner.kind not in ("Job", "JobSet"):
        return OwnerEviction(owner=owner, method=EvictionMethod.DELETE)
    title = f"{owner.kind} {owner.name}"
    if owner.by_kueue:
        return OwnerEviction(
            owner=owner, method=EvictionMethod.BLOCKED, why=f"{title} is suspended and resumed by Kueue"
        )
    if owner.managed_by:
        return OwnerEviction(
            owner=owner, method=EvictionMethod.BLOCKED, why=f"{title} is managed by {owner.managed_by}"
        )
    if owner.others:
        return OwnerEviction(
            owner=owner,
            method=EvictionMethod.BLOCKED,
            why=f"pods of {title} are not in the group: {list_pods(owner.others)}",
        )
    return OwnerEviction(owner=owner, method=EvictionMethod.SUSPEND)


def bare_pods_message(pods: Sequence[str]) -> str:
    """Of pods that nobody made: what is to become of them is for people to say."""
    return f"nobody would make them again, so they are left to you to delete: {list_pods(pods)}"


def list_pods(pods: Sequence[str]) -> str:
    """Their names, for people."""
    return truncate_list(sorted(pods), MAX_PODS_NAMED)
